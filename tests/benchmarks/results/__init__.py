"""The results page: what is run, how it is measured, and how it is written down.

Run it with ``python -m tests.benchmarks.results``.
"""
