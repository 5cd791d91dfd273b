"""The hotspots page: bursts, joining and restarting instances, and how they are written down.

Run it with ``python -m tests.benchmarks.hotspots``.
"""
