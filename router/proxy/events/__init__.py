"""Exact residency in a worker: events followed, text learnt as tokens, both checked, and load that engines push.

:mod:`router.kvevents` understands what engines say; this package decides which engine is listened to, what its word
is worth, and lets the fleet know. Nothing here runs where a request is decided or a piece of an answer is passed on.
"""
