"""Calls from a trace: open loop at their arrival, or, inside a session with think times, after the previous answer."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count

from router.core.request import DEFAULT_WORKLOAD
from router.replay.call import BodyWriter, Call, FollowUp
from router.replay.exchange import Exchange
from router.replay.prompts import CHAT_FRAME_TOKENS, prompt_text
from router.replay.schedule import spread_batches
from router.sim.traces.record import Trace, TraceRequest


class TraceSource:
    """The requests of a trace, once or (``loop``) again and again. Blocks are the same every time, tails are not."""

    def __init__(self, trace: Trace, writer: BodyWriter, *, spread: bool = True, loop: bool = False) -> None:
        self._trace = trace
        self._writer = writer
        self._loop = loop
        self._numbers = count()
        self._waiting: dict[str, deque[TraceRequest]] = {}
        openers = [request for request in trace.requests if not _is_turn(request)]
        arrivals_s = [request.arrival_s for request in openers]
        self._openers: Sequence[tuple[float, TraceRequest]] = list(
            zip(spread_batches(arrivals_s) if spread else arrivals_s, openers, strict=True)
        )

    @property
    def total(self) -> int | None:
        return None if self._loop else len(self._trace.requests)

    def arrivals(self) -> Iterator[tuple[float, Call]]:
        offset_s = -self._openers[0][0] if self._openers else 0.0
        lap = 0
        while self._openers and (lap == 0 or self._loop):
            self._queue_turns(lap)
            for due_s, request in self._openers:
                yield offset_s + due_s, self._call(request, lap)
            offset_s += self._length_s
            lap += 1

    def follow_up(self, call: Call, exchange: Exchange | None) -> FollowUp | None:
        turns = self._waiting.get(call.session) if call.session is not None else None
        if call.session is None or not turns:
            return None
        request = turns.popleft()
        if not turns:
            del self._waiting[call.session]
        return FollowUp(request.think_s or 0.0, self._written(request, call.session))

    @property
    def _length_s(self) -> float:
        """From one lap's beginning to the next one's: the mean gap more than from first to last."""
        span = self._openers[-1][0] - self._openers[0][0]
        return span * len(self._openers) / max(1, len(self._openers) - 1) or 1.0

    def _queue_turns(self, lap: int) -> None:
        for request in self._trace.requests:
            if _is_turn(request):
                self._waiting.setdefault(f"{request.session}/{lap}", deque()).append(request)

    def _call(self, request: TraceRequest, lap: int) -> Call:
        return self._written(request, None if request.session is None else f"{request.session}/{lap}")

    def _written(self, request: TraceRequest, session: str | None) -> Call:
        nonce = next(self._numbers).to_bytes(8, "little")
        workload = None if request.workload == DEFAULT_WORKLOAD else request.workload
        return Call(lambda: self._body(request, nonce), workload, session)

    def _body(self, request: TraceRequest, nonce: bytes) -> bytes:
        tokens = request.prompt_tokens - (CHAT_FRAME_TOKENS if self._writer.chat else 0)
        text = prompt_text(request.blocks, self._trace.block_tokens, max(1, tokens), nonce)
        return self._writer.prompt(text, request.output_tokens)


def _is_turn(request: TraceRequest) -> bool:
    """Whether a request waits for the previous answer of its session."""
    return request.session is not None and request.think_s is not None
