"""Traces: recorded or generated requests as lengths, block chains and times; never text."""
