"""Calls from traces: open loop at their arrival, or, inside a session with think times, after the previous answer.

A source plays laps: one trace once, the same one again and again, or a freshly generated one every time. Equal blocks
are equal text in every lap; the tail behind a prompt's last full block is new each time.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count

from router.core.request import DEFAULT_WORKLOAD
from router.replay.call import BodyWriter, Call, FollowUp
from router.replay.exchange import Exchange
from router.replay.prompts import CHAT_FRAME_TOKENS, prompt_text
from router.sim.traces.record import Trace, TraceRequest

Laps = Callable[[int], Trace]
"""The trace of a lap, counted from 0."""


class TraceSource:
    """The requests of a trace (``laps(0)``), or with ``loop`` of one lap after the other for ever."""

    def __init__(self, laps: Laps, writer: BodyWriter, *, loop: bool = False) -> None:
        self._laps = laps
        self._first = laps(0)
        self._writer = writer
        self._loop = loop
        self._numbers = count()
        self._turns: dict[str, deque[FollowUp]] = {}

    @property
    def total(self) -> int | None:
        return None if self._loop else len(self._first.requests)

    def arrivals(self) -> Iterator[tuple[float, Call]]:
        begin_s = 0.0
        for lap in count() if self._loop else range(1):
            trace = self._first if lap == 0 else self._laps(lap)
            openers = [request for request in trace.requests if not _is_turn(request)]
            if not openers:
                return
            self._queue_turns(trace, lap)
            first_s, last_s = openers[0].arrival_s, openers[-1].arrival_s
            for request in openers:
                yield begin_s + request.arrival_s - first_s, self._call(trace, request, lap)
            begin_s += _lap_length_s(last_s - first_s, len(openers))

    def follow_up(self, call: Call, exchange: Exchange | None) -> FollowUp | None:
        turns = self._turns.get(call.session or "")
        if not turns:
            return None
        after = turns.popleft()
        if not turns:
            del self._turns[call.session or ""]
        return after

    def _queue_turns(self, trace: Trace, lap: int) -> None:
        for request in trace.requests:
            if request.think_s is not None and _is_turn(request):
                call = self._call(trace, request, lap)
                self._turns.setdefault(call.session or "", deque()).append(FollowUp(request.think_s, call))

    def _call(self, trace: Trace, request: TraceRequest, lap: int) -> Call:
        nonce = next(self._numbers).to_bytes(8, "little")
        workload = None if request.workload == DEFAULT_WORKLOAD else request.workload
        session = None if request.session is None else f"{request.session}/{lap}"
        return Call(lambda: self._body(request, trace.block_tokens, nonce), workload, session)

    def _body(self, request: TraceRequest, block_tokens: int, nonce: bytes) -> bytes:
        tokens = request.prompt_tokens - (CHAT_FRAME_TOKENS if self._writer.chat else 0)
        text = prompt_text(request.blocks, block_tokens, max(1, tokens), nonce)
        return self._writer.prompt(text, request.output_tokens)


def _is_turn(request: TraceRequest) -> bool:
    """Whether a request waits for the previous answer of its session."""
    return request.session is not None and request.think_s is not None


def _lap_length_s(span_s: float, requests: int) -> float:
    """From one lap's beginning to the next one's: the mean gap more than from first to last."""
    return span_s * requests / (requests - 1) if requests > 1 and span_s > 0 else 1.0
