"""What the web processes of one installation tell one another: every snapshot that a router worker delivers to one.

Each process keeps the whole picture (:mod:`controlplane.telemetry.hub`), fed by its own workers and by those of the
others; rows (roll-ups, usage) are written by the process that a snapshot was delivered to, and by no other. There is no
leader, so none has to be elected: what a process owns is what was delivered to it.

Without Redis there is one web process, and nothing here does anything (:class:`alone.Alone`).
"""
