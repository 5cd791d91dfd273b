"""Publishers of KV events and a source of request arrivals, in a process of its own.

Every publisher is an engine at its capacity: a step stores new blocks, each an event with its tokens as vLLM encodes
it, and removes as many that were stored a second before. Messages are encoded ahead of time; only the time in them is
new. An arrival is a datagram with the moment at which it was sent.

Speaks over its pipes: a line of JSON with the endpoints goes out, a line comes in and it begins.
"""

import heapq
import json
import socket
import struct
import sys
import time
from collections.abc import Iterator
from random import Random

import msgspec
import zmq

BLOCK_TOKENS = 16
STEPS_PER_S = 100
CYCLE_STEPS = 2 * STEPS_PER_S
"""After so many steps everything was removed that is stored next, and the messages begin again."""
_ARRAY_OF_3, _FLOAT_64 = b"\x93", b"\xcb"


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What is published, and how often requests arrive."""

    publishers: int
    events_per_s: int
    requests_per_s: int
    seconds: float

    @property
    def blocks_per_step(self) -> int:
        """Blocks that one publisher stores, and removes, in one step."""
        return round(self.events_per_s / self.publishers / STEPS_PER_S / 2)


def batches(traffic: Traffic, publisher: int) -> list[bytes]:
    """Return a cycle of batches of one publisher, each encoded but for its time."""
    rng = Random(publisher)
    count = traffic.blocks_per_step
    names = [[rng.getrandbits(64) for _ in range(count)] for _ in range(CYCLE_STEPS)]
    encode = msgspec.msgpack.encode
    found = []
    for step in range(CYCLE_STEPS):
        gone = names[step - STEPS_PER_S]
        events = [*_stored(names[step], rng), *({"type": "BlockRemoved", "block_hashes": [b]} for b in gone)]
        found.append(encode(events) + encode(0))
    return found


def timed(batch: bytes, unix_s: float) -> bytes:
    """Return a whole message: a batch with its time before it."""
    return _ARRAY_OF_3 + _FLOAT_64 + struct.pack(">d", unix_s) + batch


def _stored(names: list[int], rng: Random) -> Iterator[dict[str, object]]:
    parent: int | None = None
    for name in names:
        yield {
            "type": "BlockStored",
            "block_hashes": [name],
            "parent_block_hash": parent,
            "token_ids": [rng.randrange(150_000) for _ in range(BLOCK_TOKENS)],
            "block_size": BLOCK_TOKENS,
            "lora_id": None,
            "medium": "GPU",
            "lora_name": None,
            "extra_keys": [None],
            "group_idx": 0,
            "kv_cache_spec_kind": "full_attention",
        }
        parent = name


def main() -> None:
    """Bind, say where, wait for the word, and go."""
    traffic = msgspec.json.decode(sys.argv[1], type=Traffic)
    context = zmq.Context()
    sockets = [context.socket(zmq.PUB) for _ in range(traffic.publishers)]
    for each in sockets:
        each.setsockopt(zmq.SNDHWM, 100_000)
        each.bind("tcp://127.0.0.1:*")
    cycles = [batches(traffic, number) if traffic.events_per_s else [] for number in range(traffic.publishers)]
    sys.stdout.write(json.dumps([each.getsockopt_string(zmq.LAST_ENDPOINT) for each in sockets]) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()
    _run(traffic, sockets, cycles, socket.socket(fileno=int(sys.argv[2])))
    sys.stdin.readline()
    context.destroy(linger=0)


def _run(
    traffic: Traffic, sockets: list["zmq.Socket[bytes]"], cycles: list[list[bytes]], arrivals: socket.socket
) -> None:
    rng = Random(0)
    begin_s = time.monotonic()
    # (when, which publisher or -1 for an arrival, which step)
    due = [(begin_s + n / len(sockets) / STEPS_PER_S, n, 0) for n, cycle in enumerate(cycles) if cycle]
    due.append((begin_s, -1, 0))
    heapq.heapify(due)
    while due[0][0] < begin_s + traffic.seconds:
        at_s, number, step = due[0]
        wait_s = at_s - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        if number < 0:
            arrivals.send(time.monotonic_ns().to_bytes(8, "little"))
            heapq.heapreplace(due, (at_s + rng.expovariate(traffic.requests_per_s), -1, 0))
            continue
        payload = timed(cycles[number][step % CYCLE_STEPS], time.time())
        sockets[number].send_multipart([b"kv", step.to_bytes(8, "big"), payload], zmq.NOBLOCK)
        heapq.heapreplace(due, (at_s + 1 / STEPS_PER_S, number, step + 1))


if __name__ == "__main__":
    main()
