"""Workloads, the policies that route them, and the immutable revisions of those."""
