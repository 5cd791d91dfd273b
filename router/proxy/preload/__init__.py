"""Preloading: the text of the most frequent prefix classes, and requests that bring it to an instance.

The text stays in this process: the control plane names a class and an instance, and the worker sends the request. It
is kept only where the configuration allows it, only what at least two requests of a class have in common, in bounded
memory, and is never logged.
"""
