"""Writing answers: a stream of chunks, or one body when everything is there.

An answer listens to its sequences and owns the reply; when the client goes, it asks for its sequences to be dropped.
"""

import asyncio
from collections.abc import Callable
from collections.abc import Sequence as Sequences

from router.engine.bodies import DONE, KEEP_ALIVE, Choice, Envelope, Usage
from router.engine.errors import ApiError
from router.engine.generation import Endpoint, FinishReason, Generation
from router.engine.http_server import Reply
from router.engine.sequence import Sequence

_PLACEHOLDER = b"@@@@"
"""A token that is replaced in the template of a stream's chunks; it needs no escaping, as no filler word does."""


class Answer:
    """What stream and whole answers share: the envelope, the sequences and their usage."""

    def __init__(self, generation: Generation, envelope: Envelope, reply: Reply, block_tokens: int) -> None:
        self.generation = generation
        self.envelope = envelope
        self.reply = reply
        self.sequences: list[Sequence] = []
        self._block_tokens = block_tokens
        self._open = 0

    def begin(self, sequences: Sequences[Sequence], drop: Callable[[Sequences[Sequence]], None]) -> None:
        """Take over ``sequences``; ``drop`` is called with them when the client has gone."""
        self.sequences = list(sequences)
        self._open = len(self.sequences)
        self.reply.on_gone = lambda: drop(self.sequences)

    def usage(self) -> Usage:
        """Return the token counts so far; a prompt counts once, however many choices it has."""
        firsts = self.sequences[:: self.generation.choices]
        prompts = [sequence.prompt_tokens for sequence in firsts]
        return Usage(
            prompt_tokens=sum(prompts),
            completion_tokens=sum(sequence.emitted for sequence in self.sequences),
            cached_tokens=sum(sequence.cached_tokens for sequence in firsts),
            cacheable_tokens=sum(tokens - tokens % self._block_tokens for tokens in prompts),
        )


class WholeAnswer(Answer):
    """One JSON body when the last sequence ends."""

    def token(self, sequence: Sequence) -> None:
        if sequence.reason is not None:
            self._close_one()

    def aborted(self, sequence: Sequence) -> None:
        self._close_one()

    def fail(self, error: ApiError) -> None:
        """Answer with an error instead."""
        self.reply.send(error.status, error.body)

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            self.reply.send(200, self.envelope.whole([_choice(sequence) for sequence in self.sequences], self.usage()))


class StreamAnswer(Answer):
    """A chunk for every token as it comes, and a comment whenever nothing was sent for ``keep_alive_s`` seconds."""

    def __init__(
        self,
        generation: Generation,
        envelope: Envelope,
        reply: Reply,
        block_tokens: int,
        keep_alive_s: float | None = None,
    ) -> None:
        super().__init__(generation, envelope, reply, block_tokens)
        options = generation.options
        self._plain = not options.continuous_usage and not options.token_ids
        self._templates: list[tuple[bytes, bytes]] = []
        self._begun: set[int] = set()
        self._quiet = True
        self._keep_alive_s = keep_alive_s
        self._timer: asyncio.TimerHandle | None = None
        reply.start_stream()
        self._restart_timer()

    def token(self, sequence: Sequence) -> None:
        self._quiet = False
        if sequence.reason is not None:
            self._last(sequence, sequence.newest_token, sequence.reason)
        elif self._plain and sequence.emitted > 1:
            head, tail = self._template(sequence.index)
            self.reply.write(head + sequence.newest_token + tail)
        else:
            opening = self._opening(sequence)
            chunk = self.envelope.token_chunk(
                sequence.index, sequence.newest_token, self._usage_of(sequence), self._first_prompt(sequence)
            )
            self.reply.write(opening + self.reply.frame(chunk))

    def aborted(self, sequence: Sequence) -> None:
        self._last(sequence, b"", FinishReason.ABORT)

    def fail(self, error: ApiError) -> None:
        """End the stream, which began with 200, with an error event."""
        self.reply.write(self.reply.frame(error.event) + self.reply.frame(DONE))
        self._end()

    def _last(self, sequence: Sequence, token: bytes, reason: FinishReason) -> None:
        opening = self._opening(sequence)
        chunk = self.envelope.last_chunk(
            sequence.index, token, reason, self._usage_of(sequence), self._first_prompt(sequence)
        )
        data = opening + self.reply.frame(chunk)
        self._open -= 1
        if self._open:
            self.reply.write(data)
            return
        if self.generation.options.include_usage:
            data += self.reply.frame(self.envelope.usage_chunk(self.usage()))
        self.reply.write(data + self.reply.frame(DONE))
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.reply.end()

    def _restart_timer(self) -> None:
        if self._keep_alive_s is not None and not self.reply.gone:
            self._timer = asyncio.get_running_loop().call_later(self._keep_alive_s, self._keep_alive)

    def _keep_alive(self) -> None:
        if self._quiet:
            self.reply.write(self.reply.frame(KEEP_ALIVE))
        self._quiet = True
        self._restart_timer()

    def _opening(self, sequence: Sequence) -> bytes:
        """Return the chunks that come before a choice's first token; nothing later on."""
        if self.generation.endpoint is not Endpoint.CHAT or sequence.index in self._begun:
            return b""
        self._begun.add(sequence.index)
        usage = None
        if self.generation.options.continuous_usage:
            usage = Usage(sequence.prompt_tokens, 0, sequence.cached_tokens)
        return self.reply.frame(self.envelope.role_chunk(sequence.index, sequence.prompt, usage))

    def _first_prompt(self, sequence: Sequence) -> bytes | None:
        return sequence.prompt if sequence.emitted <= 1 else None

    def _usage_of(self, sequence: Sequence) -> Usage | None:
        if not self.generation.options.continuous_usage:
            return None
        return Usage(sequence.prompt_tokens, sequence.emitted, sequence.cached_tokens)

    def _template(self, index: int) -> tuple[bytes, bytes]:
        """Return what stands before and after the token in a framed chunk of choice ``index``."""
        while len(self._templates) <= index:
            framed = self.reply.frame(self.envelope.token_chunk(len(self._templates), _PLACEHOLDER, None))
            head, _, tail = framed.rpartition(_PLACEHOLDER)
            self._templates.append((head, tail))
        return self._templates[index]


def _choice(sequence: Sequence) -> Choice:
    reason = sequence.reason or FinishReason.ABORT
    return Choice(sequence.index, sequence.prompt, sequence.emitted_output, reason)
