"""The data plane: OpenAI-compatible HTTP in, one decision, an engine's answer out, byte for byte.

``wire`` parses and frames HTTP without I/O; ``client`` and ``upstream`` are the two kinds of connections; ``exchange``
is the life of one request between them. No framework and no middleware stand on this path.
"""
