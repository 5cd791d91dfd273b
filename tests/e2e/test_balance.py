"""Balance and cache hits at once, with real sockets: a burst of equal requests, and one hot shared prompt."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from tests.e2e.fleet import MODEL, stack
from tests.e2e.processes import run_json
from tests.patience import PATIENCE_S

ENGINES = 8


async def burst(router: str, body: bytes, count: int) -> Counter[str]:
    """Send ``count`` equal requests at the same moment over connections of their own; count answers by instance."""
    address = urlsplit(router)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connections = [await asyncio.open_connection(address.hostname, address.port) for _ in range(count)]
    for _, writer in connections:
        writer.write(head.encode() + body)
    shares: Counter[str] = Counter()
    for reader, writer in connections:
        answer = (await asyncio.wait_for(reader.read(), PATIENCE_S)).decode()
        assert answer.startswith("HTTP/1.1 200"), answer[:500]
        shares[answer.lower().split("x-pointsman-instance: ")[1].split("\r\n")[0]] += 1
        writer.close()
    return shares


def test_a_hundred_simultaneous_equal_requests_spread_within_two_of_equal(tmp_path: Path) -> None:
    # 32 KB are 8,000 tokens: 0.4 s of prefill, so that the whole burst is placed before the first answer begins.
    body = {"model": MODEL, "messages": [{"role": "user", "content": "points " * 4600}], "max_tokens": 2}
    with stack(tmp_path, engines=ENGINES, speedup=1) as running:
        shares = asyncio.run(burst(running.router, json.dumps(body).encode(), 100))
    assert len(shares) == ENGINES
    assert all(abs(count - 100 / ENGINES) <= 2 for count in shares.values()), shares


def hot_prompt_trace(file: Path, requests: int, per_second: float) -> Path:
    """Write Poisson arrivals that share a 4,096-token prompt and end in 60 tokens of their own."""
    random, now_ms, lines = Random(5), 0.0, []
    for number in range(requests):
        now_ms += random.expovariate(per_second) * 1000
        record = {"timestamp": int(now_ms), "input_length": 4156, "output_length": random.randrange(40, 80)}
        lines.append(json.dumps(record | {"hash_ids": [*range(8), 1000 + number]}))
    file.write_text("\n".join(lines))
    return file


def test_one_hot_shared_prompt_is_replicated_instead_of_pinning_an_engine(tmp_path: Path) -> None:
    trace = hot_prompt_trace(tmp_path / "hot.jsonl", requests=600, per_second=60)
    with stack(tmp_path, engines=ENGINES, speedup=1) as running:
        arguments = ["replay", str(trace), "--format", "mooncake", "--target", running.router, "--output", "json"]
        report = run_json(["-m", "router.cli", *arguments])
    assert report["errors"] == 0
    assert report["hit_ratio"] >= 0.8
    assert max(report["instances"].values()) / (report["requests"] / ENGINES) <= 1.3, report["instances"]
