"""Pushed load: what it says, what is refused, and how fast an engine really prefills."""

import asyncio
import json

import msgspec
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from router.kvevents.discovery import sglang_load_sources
from router.kvevents.errors import DecodeError
from router.kvevents.load_push import LoadStat, decode_load, prefill_rate
from router.kvevents.load_reader import LoadReader
from router.kvevents.source import LoadSource
from tests.patience import PATIENCE_S

NUMBER = (7).to_bytes(8, "big")
FULL = ["LoadStat", 3, 2, 1000, 4000, 1, 512, 1512, 256, 90_000, 4_500_000]


def frames(value: object) -> list[bytes]:
    return [b"load", NUMBER, msgspec.msgpack.encode(value)]


def test_a_message_says_exactly_what_is_queued() -> None:
    stat = decode_load(frames([*FULL, "future"]))
    assert (stat.running, stat.waiting, stat.rank, stat.waiting_uncached_tokens) == (3, 2, 1, 512)
    assert stat.kv_use == 0.25


def test_older_engines_send_less() -> None:
    stat = decode_load(frames(FULL[:6]))
    assert stat.waiting_uncached_tokens is None
    assert decode_load(frames(["LoadStat", 0, 0, 5, 0])).kv_use is None


@pytest.mark.parametrize(
    "message",
    [
        [b"load", NUMBER],
        [b"load", b"7", msgspec.msgpack.encode(FULL)],
        frames(["LoadStat", -1, *FULL[2:]]),
        frames(["Other", *FULL[1:]]),
        frames({"running": 1}),
    ],
)
def test_what_is_no_load_is_refused(message: list[bytes]) -> None:
    with pytest.raises(DecodeError):
        decode_load(message)


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_a_load(data: bytes) -> None:
    try:
        assert decode_load([b"load", NUMBER, data]).running >= 0
    except DecodeError:
        return


def test_the_prefill_rate_is_tokens_over_the_time_spent_on_them() -> None:
    before = decode_load(frames(FULL))
    after = msgspec.structs.replace(before, prefill_uncached_total=100_000, prefill_busy_us_total=5_000_000)
    assert prefill_rate(before, after) == pytest.approx(20_000)
    assert prefill_rate(after, before) is None
    assert prefill_rate(before, before) is None
    assert prefill_rate(before, LoadStat(0, 0, 0, 0)) is None


def test_discovery_finds_one_source_a_rank() -> None:
    events = {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": 5557, "dp_size": 2}
    info = {"kv_events": events | {"load_endpoint_port_base": 5559, "load_topic": "l"}}
    assert sglang_load_sources(json.dumps(info).encode(), "http://h:1") == [
        LoadSource("tcp://h:5559", "l", 0),
        LoadSource("tcp://h:5560", "l", 1),
    ]
    assert sglang_load_sources(json.dumps({"kv_events": events}).encode(), "http://h:1") == []


class Newest:
    """A sink that can be waited on."""

    def __init__(self) -> None:
        self.stats: dict[tuple[str, int], LoadStat] = {}
        self.heard = asyncio.Event()

    def load_reported(self, instance: str, rank: int, stat: LoadStat) -> None:
        self.stats[instance, rank] = stat
        self.heard.set()


async def test_a_reader_keeps_up_and_counts_what_it_could_not_read() -> None:
    publisher = zmq.Context.instance().socket(zmq.PUB)
    publisher.setsockopt(zmq.LINGER, 0)
    publisher.bind("tcp://127.0.0.1:*")
    sink = Newest()
    reader = LoadReader(sink)
    try:
        reader.add("e", LoadSource(publisher.getsockopt_string(zmq.LAST_ENDPOINT), rank=1))
        async with asyncio.timeout(PATIENCE_S):
            while not sink.heard.is_set() or not reader.refused:  # it may begin to hear between the two
                publisher.send_multipart([b"load", b"bad", b""])
                publisher.send_multipart(frames(FULL))
                await asyncio.sleep(0.005)
        assert sink.stats["e", 1].waiting_uncached_tokens == 512
        reader.remove("e", 1)
        reader.remove("e", 1)
    finally:
        await reader.close()
        publisher.close()
