"""Serves a GGUF file by llama.cpp: ``python -m tests.engines.llama_server FILE PORT`` until it is told to stop."""

import signal
import sys

from xllamacpp import CommonParams, Server

CONTEXT_TOKENS = 16_384
SLOTS = 4


def main() -> None:
    """Serve until SIGTERM ends the process."""
    file, port = sys.argv[1:]
    params = CommonParams()
    params.model.path = file
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.n_ctx = CONTEXT_TOKENS * SLOTS
    params.n_parallel = SLOTS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.model_alias = {"tiny"}
    params.endpoint_metrics = params.endpoint_slots = True
    _server = Server(params)  # serves in threads of its own while it lives
    signal.pause()


if __name__ == "__main__":
    main()
