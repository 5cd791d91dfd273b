"""What a flood of KV events costs the requests that are routed meanwhile.

A worker's own parts in one process and one thread, as in a worker: publishers are read over ZMQ, their events applied
to the index of tokens, and requests, next turns of known conversations, are taken in, decided and booked. Events and
arrivals come from a process of its own. ``arrival_to_decision`` counts from the moment an arrival was sent, so it holds
every wait for events that are being applied; ``decide`` is the work alone. The same is measured without events first.
On a machine that others keep busy (``machine_load``) these figures say more about the others; the ones that begin with
``own_core`` are of the same traffic on a clock of CPU time (:mod:`router.bench.event_clock`).
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import msgspec
import orjson
import uvloop

from router.bench.event_clock import CoreOfItsOwn
from router.bench.event_traffic import BLOCK_TOKENS, Traffic
from router.bench.prompts import Prompts
from router.bench.spread import Figures
from router.config import ConfigDocument, InstanceConfig
from router.kvevents.feed import Feed, ResidencySink
from router.kvevents.following import Follower
from router.kvevents.residency import Changes, EngineResidency
from router.kvevents.source import EventSource
from router.kvevents.subscriber import KvEventReader
from router.proxy.plane import Plane
from router.proxy.prompt.chat import chat_prompt
from router.proxy.wire.head import read_request_head
from router.proxy.worker import SystemClock
from router.state.tokenised_text import TokenisedText

HELP = "route requests while engines publish KV events"

MODEL = "bench"
TALKS = 400
PROMPTS = Prompts(8_000, 2_000, 4)
_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n\r\n"
_HEAD = read_request_head(_REQUEST)
_LOOK_S = 0.02
_CONNECT_S = 20.0
_DRAIN_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--publishers", type=int, default=16, help="engines that publish (16)")
    parser.add_argument("--events", type=int, default=100_000, help="events a second, of all together (100000)")
    parser.add_argument("--requests", type=int, default=500, help="requests a second (500)")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each measurement (5)")


def measure(args: argparse.Namespace) -> dict[str, float | str]:
    """Measure as the command line asks: without events, then with them."""
    figures: dict[str, float | str] = {}
    for events, suffix in ((0, "_without_events"), (args.events, "")):
        traffic = Traffic(
            publishers=args.publishers, events_per_s=events, requests_per_s=args.requests, seconds=args.seconds
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(_measure(traffic))
        figures |= {f"{name}{suffix}": figure for name, figure in found.items()}
    return figures | asyncio.run(_measure_on_clock(traffic))


async def _measure_on_clock(traffic: Traffic) -> Figures:
    worker = _Worker(traffic)
    try:
        return worker.on_clock()
    finally:
        await worker.close()


async def _measure(traffic: Traffic) -> Figures:
    worker = _Worker(traffic)
    with _traffic_process(traffic, worker.arrivals_from) as process:
        try:
            return await worker.measure(process)
        finally:
            await worker.close()


class _TimedFeed(Feed):
    """A feed that notes the CPU time of applying each message: the longest that anybody waits beyond a slice."""

    def __init__(
        self, instance: str, rank: int, follower: Follower, residency: EngineResidency, sink: ResidencySink
    ) -> None:
        super().__init__(instance, rank, follower, residency, sink)
        self.cpu_ns: list[int] = []

    def live(self, number: int, payload: bytes, unix_s: float) -> int | None:
        begin_ns = time.thread_time_ns()
        start = super().live(number, payload, unix_s)
        self.cpu_ns.append(time.thread_time_ns() - begin_ns)
        return start


class _Worker:
    """The parts of a worker that matter here. It is the sink of its feeds."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._loop = asyncio.get_running_loop()
        self._plane = _plane_of(self._loop, traffic.publishers)
        self._bodies = _known_talks(self._plane)
        self._reader = KvEventReader(SystemClock())
        self._feeds: list[_TimedFeed] = []
        self._decide_ns: list[int] = []
        self._arrival_ns: list[int] = []
        self._lags_s: list[float] = []
        self._decide_cpu_ns: list[int] = []
        self._placed = 0
        self._arrivals, self.arrivals_from = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._arrivals.setblocking(False)

    def residency_changed(self, instance: str, rank: int, changes: Changes) -> None:
        """Take in what changed at an instance (called by its feed)."""
        fleet = self._plane.fleet
        fleet.residency_changed(fleet.by_id(instance), changes.stored, changes.removed, changes.cleared, 0.0)

    async def measure(self, process: "subprocess.Popen[bytes]") -> Figures:
        """Connect, let the traffic run, wait until its last event is applied, and count."""
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process of publishers has no pipes")
        await self._connect(json.loads(await self._loop.run_in_executor(None, process.stdout.readline)))
        self._loop.add_reader(self._arrivals, self._arrived)
        begin_s, cpu_s = time.monotonic(), time.process_time()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        while time.monotonic() < begin_s + self._traffic.seconds:
            await asyncio.sleep(_LOOK_S)
            self._lags_s += [lag for feed in self._feeds if (lag := feed.status().lag_s) is not None]
        wall_s, cpu_s = time.monotonic() - begin_s, time.process_time() - cpu_s
        applied = sum(feed.status().applied for feed in self._feeds)
        return self._figures(wall_s, cpu_s, applied) | await self._drained()

    def on_clock(self) -> Figures:
        """Let the same traffic pass on a clock of CPU time."""
        fleet = self._plane.fleet
        source = EventSource(events="tcp://127.0.0.1:1", replay=None)
        feeds = [Feed.of(instance.config.id, source, fleet.token_hasher, self) for instance in fleet]
        for feed in feeds:
            for _ in feed.tell():
                pass
        core = CoreOfItsOwn(self._traffic, feeds, self._place)
        core.run()
        lags_ms = _lag_ms([ns / 1e9 for ns in core.lag_ns])
        return {
            "own_core_busy_share": core.busy_ns / core.now_ns,
            **_spread_us("own_core_arrival_to_decision", core.arrival_ns),
            **{f"own_core_{name}": figure for name, figure in lags_ms.items()},
        }

    async def close(self) -> None:
        """Close every socket."""
        self._loop.remove_reader(self._arrivals)
        self._arrivals.close()
        self.arrivals_from.close()
        self._plane.close()
        await self._reader.close()

    async def _connect(self, endpoints: list[str]) -> None:
        fleet = self._plane.fleet
        for instance, endpoint in zip(fleet, endpoints, strict=True):
            source = EventSource(events=endpoint, replay=None, topic="kv")
            feed = _TimedFeed.of(instance.config.id, source, fleet.token_hasher, self)
            self._reader.add(feed, source)
            self._feeds.append(feed)
        deadline_s = time.monotonic() + _CONNECT_S
        while not all(feed.connected_now for feed in self._feeds) and time.monotonic() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        for feed in self._feeds:
            for _ in feed.tell():
                pass

    def _arrived(self) -> None:
        sent_ns = int.from_bytes(self._arrivals.recv(8), "little")
        begin_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        self._place()
        cpu_ns, end_ns = time.thread_time_ns() - cpu_ns, time.monotonic_ns()
        self._decide_ns.append(end_ns - begin_ns)
        self._decide_cpu_ns.append(cpu_ns)
        self._arrival_ns.append(end_ns - sent_ns)

    def _place(self) -> None:
        """Take a request in, decide and book it; its answer comes at once and is all of it."""
        plane, table = self._plane, self._plane.table
        if table is None:
            raise RuntimeError("no configuration is in force")
        self._placed += 1
        intake = plane.desk.intake(_HEAD, self._bodies[self._placed % len(self._bodies)], "bench", table)
        decision = plane.decide(intake.request, intake, table.policies["default"])
        booking = plane.fleet.book(decision, intake.chain, self._loop.time())
        booking.first_byte(self._loop.time())
        booking.end()

    def _figures(self, wall_s: float, cpu_s: float, applied: int) -> Figures:
        events_per_batch = 2 * self._traffic.blocks_per_step if self._traffic.events_per_s else 0
        return {
            "requests_per_s": len(self._decide_ns) / wall_s,
            "events_applied_per_s": applied * events_per_batch / wall_s,
            "cpu_share": cpu_s / wall_s,
            "machine_load": os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
            **_spread_us("decide", self._decide_ns),
            **_spread_us("decide_cpu", self._decide_cpu_ns),
            **_spread_us("arrival_to_decision", self._arrival_ns),
            **_spread_us("message_cpu", [ns for feed in self._feeds for ns in feed.cpu_ns]),
            **_lag_ms(self._lags_s),
        }

    async def _drained(self) -> Figures:
        """Wait until nothing is left to apply; messages that never came would be a loss."""
        if not self._traffic.events_per_s:
            return {}
        begin_s, before = time.monotonic(), -1
        while time.monotonic() < begin_s + _DRAIN_S:
            applied = sum(feed.status().applied for feed in self._feeds)
            if applied == before and not self._reader.behind:
                break
            before = applied
            await asyncio.sleep(5 * _LOOK_S)
        status = [feed.status() for feed in self._feeds]
        return {
            "messages_applied": float(sum(each.applied for each in status)),
            "messages_lost": float(sum(each.gaps + each.lost + each.undecodable for each in status)),
            "blocks_by_events": float(self._plane.fleet.events.blocks),
        }


def _plane_of(loop: asyncio.AbstractEventLoop, instances: int) -> Plane:
    plane = Plane(loop, Random(1))
    configs = tuple(
        InstanceConfig(id=f"{number}", name=f"engine-{number}", url="http://127.0.0.1:1", models=(MODEL,))
        for number in range(instances)
    )
    plane.apply(ConfigDocument(revision=1, instances=configs))
    for instance in plane.fleet:
        plane.fleet.follow_events(instance, BLOCK_TOKENS)
    return plane


def _known_talks(plane: Plane) -> list[bytes]:
    """Let conversations be known and resident at one instance each; return the requests of their next turns."""
    fleet, bodies = plane.fleet, []
    instances = list(fleet)
    for number in range(TALKS):
        text = PROMPTS.known(number).hex()
        talk = [{"role": "system", "content": text[:4000]}, {"role": "user", "content": text[4000:]}]
        talk.append({"role": "assistant", "content": "yes"})
        learnt = chat_prompt({"messages": talk}).text
        token_ids = learnt[: len(learnt) // 4 * 4]
        chain = plane.desk.chain(MODEL, None, learnt)
        fleet.known.learn(TokenisedText(text=learnt, chain=chain, token_ids=token_ids, model=MODEL))
        blocks = fleet.token_hasher.chain(token_ids, BLOCK_TOKENS)
        fleet.residency_changed(instances[number % len(instances)], blocks, b"", cleared=False, now_s=0.0)
        bodies.append(orjson.dumps({"model": MODEL, "messages": [*talk, {"role": "user", "content": text[:600]}]}))
    return bodies


@contextmanager
def _traffic_process(traffic: Traffic, arrivals: socket.socket) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "router.bench.event_traffic", msgspec.json.encode(traffic).decode()]
    process = subprocess.Popen(
        [*command, str(arrivals.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(arrivals.fileno(),),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _spread_us(name: str, times_ns: list[int]) -> Figures:
    ordered = sorted(times_ns) or [0]
    return {
        f"{name}_us_p50": ordered[len(ordered) // 2] / 1e3,
        f"{name}_us_p99": ordered[len(ordered) * 99 // 100] / 1e3,
    }


def _lag_ms(lags_s: list[float]) -> Figures:
    if not lags_s:
        return {}
    ordered = sorted(lags_s)
    return {
        "event_lag_ms_p50": ordered[len(ordered) // 2] * 1e3,
        "event_lag_ms_p99": ordered[len(ordered) * 99 // 100] * 1e3,
        "event_lag_ms_max": ordered[-1] * 1e3,
    }
