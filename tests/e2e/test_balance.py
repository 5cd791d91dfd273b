"""Balance with real processes: a burst of equal requests."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.fleet import MODEL, stack
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
    # 32 KB are 8,000 tokens: 8 s of prefill on engines as slow as these, so that the whole burst is placed before the
    # first answer begins; the others find the blocks of the first.
    body = {"model": MODEL, "messages": [{"role": "user", "content": "points " * 4600}], "max_tokens": 2}
    with stack(tmp_path, engines=ENGINES, speedup=0.05) as running:
        shares = asyncio.run(burst(running.router, json.dumps(body).encode(), 100))
    assert len(shares) == ENGINES
    assert all(abs(count - 100 / ENGINES) <= 2 for count in shares.values()), shares
