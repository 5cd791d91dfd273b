"""A simulated vLLM server: the real wire protocol over the simulator's continuous-batching model.

No model runs here. What a client sees (headers, chunks, usage, errors, metrics, KV events) follows recordings of vLLM
0.32; *when* it sees it follows :mod:`router.sim.engine`, sped up or slowed down by one factor. The text is
deterministic filler. Nothing here knows the router: an engine must behave the same whoever asks.
"""
