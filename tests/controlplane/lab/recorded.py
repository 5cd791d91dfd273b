"""Own traffic as router workers record it, made up: two kinds of prompts that share a beginning within their kind."""

import time
from hashlib import sha256

from controlplane.lab.storage import last_minutes_folder
from router.sim.traces.recording import RecordedRequest, RecordingHeader, RecordingWriter
from router.sim.traces.segments import segment_name

BLOCK_TOKENS = 16


def record_own_traffic(requests: int = 200, worker: str = "router-0", seconds: float = 60.0) -> None:
    """Write a segment of requests that arrived evenly in the last seconds."""
    started_s = time.time() - seconds
    last_minutes_folder().mkdir(exist_ok=True)
    with (last_minutes_folder() / segment_name(worker, started_s)).open("wb") as file:
        writer = RecordingWriter(file, RecordingHeader(block_tokens=BLOCK_TOKENS, started_unix_s=started_s))
        for number in range(requests):
            blocks = b"".join(_hash(f"{number % 5}-{place}") for place in range(40))
            writer.write(
                RecordedRequest(
                    arrival_s=seconds * number / requests,
                    prompt_tokens=42 * BLOCK_TOKENS,
                    output_tokens=40,
                    blocks=blocks + _hash(f"own-{number}"),
                    instance=f"gpu-{number % 4 + 1}",
                    hit_tokens=40 * BLOCK_TOKENS,
                )
            )


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()[:8]
