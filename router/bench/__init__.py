"""Measuring: each benchmark is a module that returns one flat table of figures, with the units in their names.

Benchmarks drive the real code, print what they were given to do, and hold no opinion: targets are kept by
``tests/benchmarks``.
"""
