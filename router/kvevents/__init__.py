"""What engines say about their KV caches: decoding, following, residency, discovery.

Three layers, each usable without the next. Decoding and following are sans-IO: bytes in, values out, no socket and no
clock. Residency counts what is where and re-hashes tokens, because hashes of two engines mean nothing to each other.
Only :mod:`router.kvevents.subscriber` and :mod:`router.kvevents.replay` touch a network.
"""
