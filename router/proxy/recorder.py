"""Records what was served, to be simulated or replayed later: lengths, block hashes, times, outcomes; never text.

Lines go into a buffered file from the event loop, one short write a request; what is buffered is lost if the process is
killed. A recording ends by itself after ``most_requests``.
"""

from typing import IO

from router.proxy.intake import Intake
from router.proxy.ledger import Ended, Outcome
from router.proxy.usage import Usage
from router.sim.traces import recording
from router.sim.traces.recording import RecordedRequest, RecordingHeader, RecordingWriter

BLOCK_TOKENS = 16
"""Tokens that a block of 64 bytes holds at four bytes a token; what is recorded says no more than that."""

_OUTCOMES = {
    Outcome.OK: recording.Outcome.DONE,
    Outcome.CLIENT_ERROR: recording.Outcome.ERROR,
    Outcome.UPSTREAM_ERROR: recording.Outcome.ERROR,
    Outcome.BROKEN: recording.Outcome.ERROR,
    Outcome.CANCELLED: recording.Outcome.DISCONNECTED,
    Outcome.REFUSED: recording.Outcome.REFUSED,
    Outcome.LIMITED: recording.Outcome.REFUSED,
    Outcome.CRASHED: recording.Outcome.ERROR,
}


class Recorder:
    """Writes to a binary file that is its own to close; ``started_s`` is what arrivals are counted from (monotonic)."""

    def __init__(self, file: IO[bytes], started_s: float, started_unix_s: float, most_requests: int) -> None:
        self._file = file
        self._started_s = started_s
        self._left = most_requests
        self._writer = RecordingWriter(file, RecordingHeader(block_tokens=BLOCK_TOKENS, started_unix_s=started_unix_s))

    def note(self, intake: Intake, ended: Ended, usage: Usage | None) -> None:
        """Record one request that has ended, unless enough are recorded."""
        if self._left <= 0:
            return
        self._left -= 1
        self._writer.write(_recorded(intake, ended, usage, self._started_s))
        if self._left == 0:
            self._file.flush()

    def close(self) -> None:
        """Write what is buffered and close the file."""
        self._file.close()


def _recorded(intake: Intake, ended: Ended, usage: Usage | None, started_s: float) -> RecordedRequest:
    return RecordedRequest(
        arrival_s=max(0.0, ended.started_s - started_s),
        prompt_tokens=intake.request.prompt_tokens if usage is None else max(1, usage.prompt_tokens),
        output_tokens=_events(ended) if usage is None else usage.output_tokens,
        blocks=intake.chain,
        workload=ended.workload,
        outcome=_OUTCOMES[ended.outcome],
        session=intake.request.session,
        instance=None if ended.instance is None else ended.instance.config.name,
        hit_tokens=None if usage is None else usage.cached_tokens,
        ttft_s=ended.first_token_s - ended.started_s if ended.first_token_s else None,
        e2e_s=ended.ended_s - ended.started_s,
    )


def _events(ended: Ended) -> int:
    return 0 if ended.answer is None else ended.answer.events
