"""Serves a GGUF file by llama.cpp: ``python -m tests.engines.llama_server FILE PORT`` until it is told to stop."""

import os
import signal
import sys

from xllamacpp import CommonParams, Server

CONTEXT_TOKENS = 16_384
SLOTS = 4


def main() -> None:
    """Serve until SIGTERM."""
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
    server = Server(params)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server
    os._exit(0)  # its threads do not end by themselves


if __name__ == "__main__":
    main()
