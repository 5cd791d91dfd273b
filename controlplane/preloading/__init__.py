"""Preloading: bringing the most frequent prefixes to instances that lack them, before users' requests do.

The text stays in the routers (:mod:`router.proxy.preload`); here is decided which class goes to which instance, and
rows say how far that is. A router that is asked sends one request of one token, pinned to the instance.
"""
