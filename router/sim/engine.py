"""An engine model: continuous batching as vLLM's v1 scheduler does it, without a clock and without tokens.

Each step gives every decoding sequence one token, then spends what is left of the token budget on the prompt that is
partly computed, then admits waiting requests in order of arrival (``vllm/v1/core/sched/scheduler.py``). A prompt
longer than the budget is computed in chunks, and the decodes of those steps take as long as the whole step. When KV
blocks run out, the sequence admitted last is preempted and computed again later. Blocks are cached at the moment
their step is scheduled, so a request behind finds them.

Rules kept: requests start in order of arrival; every request ends; ``prefilled + cached = asked`` for each request
that was never preempted; after the last request no block is pinned or private.

Sequences that decode cost nothing per step: the engine keeps sums, and :meth:`Engine.begin_step` may plan a run of
many decode steps at once, up to the next one that finishes a sequence. A run can be ended early at any step boundary;
the state is then exactly that of single steps.
"""

from collections import OrderedDict

from router.core.hardware import HardwareProfile
from router.sim.cost import StepCost
from router.sim.decode_batch import DecodeBatch
from router.sim.errors import EngineFault, RequestTooLarge
from router.sim.kv_cache import BLOCK_BYTES, BlockCache, Match
from router.sim.sequence import Phase, Sequence
from router.sim.step import EngineRequest, Finish, FirstToken, Step, StepResult

NO_LIMIT = 1 << 40
"""As many decode steps in a row as there are until something happens."""


class Engine:
    """One engine. ``record_details`` fills the token ids and KV events of results, for a server that shows them."""

    def __init__(self, profile: HardwareProfile, kv_block_tokens: int = 16, *, record_details: bool = False) -> None:
        self.profile = profile
        self.kv_block_tokens = kv_block_tokens
        self.cache = BlockCache(profile.kv_capacity_tokens // kv_block_tokens, record_events=record_details)
        self.cost = StepCost(profile)
        self.preemptions = 0
        self.prefix_queries = 0
        """Prompt tokens looked up in the cache."""
        self.prefix_hits = 0
        """Prompt tokens found there."""
        self._record_details = record_details
        self._waiting: OrderedDict[str, Sequence] = OrderedDict()
        self._running: dict[str, Sequence] = {}
        self._partial: Sequence | None = None
        self._decodes = DecodeBatch(kv_block_tokens)
        self._steps_done = 0
        self._orders = 0
        self._step: Step | None = None
        self._prefills: list[tuple[Sequence, int]] = []
        self._aborted: list[Sequence] = []

    @property
    def running(self) -> int:
        """Requests admitted and not finished."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests not admitted yet, preempted ones included."""
        return len(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._running or self._waiting)

    @property
    def kv_use(self) -> float:
        """Share of KV blocks in use by running requests, 0..1 (cached blocks that nobody uses do not count)."""
        return (self.cache.pinned + self.cache.private) / self.cache.capacity

    def kv_use_after(self, steps: int) -> float:
        """Return :attr:`kv_use` as it will be when ``steps`` (>= 1) steps of the present run are over."""
        grown = self._decodes.growth.blocks(self._steps_done + 1, steps - 1)
        return (self.cache.pinned + self.cache.private + grown) / self.cache.capacity

    @property
    def uncached_waiting_tokens(self) -> int:
        """Prompt tokens of waiting requests that are not cached now (looks every waiting request up)."""
        return sum(seq.target - self._lookup(seq).blocks * self.kv_block_tokens for seq in self._waiting.values())

    def submit(self, request: EngineRequest) -> None:
        """Queue a request behind all others.

        :raises RequestTooLarge: when it could never fit.
        :raises EngineFault: when a request of that id is here already, or its lengths are below 1.
        """
        if request.prompt_tokens < 1 or request.output_tokens < 1:
            raise EngineFault(f"request {request.id} has {request.prompt_tokens} + {request.output_tokens} tokens")
        if self._blocks(request.prompt_tokens + request.output_tokens) > self.cache.capacity:
            raise RequestTooLarge(
                f"request {request.id} needs KV for {request.prompt_tokens} + {request.output_tokens} tokens, "
                f"but there is room for {self.cache.capacity * self.kv_block_tokens}"
            )
        if request.id in self._waiting or request.id in self._running:
            raise EngineFault(f"request {request.id} is here already")
        self._orders += 1
        self._waiting[request.id] = Sequence(request, self._orders)

    def abort(self, request_id: str) -> None:
        """Drop a request; one that is part of the step under way is dropped when the step is finished."""
        waiting = self._waiting.pop(request_id, None)
        if waiting is not None:
            waiting.phase = Phase.DONE
            return
        running = self._running.get(request_id)
        if running is None:
            raise EngineFault(f"request {request_id} is not here")
        self._aborted.append(running)
        if self._step is None:
            self._drop_aborted()

    def begin_step(self, limit: int = 1) -> Step | None:
        """Plan the next step, or up to ``limit`` decode steps in a row; None when there is nothing to do.

        :raises EngineFault: when the last step was not finished.
        """
        if self._step is not None:
            raise EngineFault("the last step was not finished")
        if not self._running and not self._waiting:
            return None
        preemptions = self.preemptions
        self._allocate_decodes()
        growth = self._decodes.growth
        budget = self.profile.max_batch_tokens - growth.sequences
        budget -= self._continue_partial(budget)
        if self.preemptions != preemptions:
            limit = 1
        elif self._partial is None:
            self._admit(budget)
        prefill_tokens = sum(chunk for _, chunk in self._prefills)
        sequences, kv_tokens = growth.sequences, growth.kv_tokens + growth.sequences
        steps = 1
        if not self._prefills and limit > 1:
            steps = self._decodes.quiet_steps(self._steps_done, limit, self.cache.available)
        if steps == 1:
            duration_ps = self.cost.step_ps(prefill_tokens, sequences, kv_tokens)
        else:
            duration_ps = self.cost.run_ps(steps, sequences, kv_tokens)
        self._step = Step(steps, prefill_tokens, sequences, kv_tokens, duration_ps, self.cost)
        return self._step

    def finish_step(self, steps: int | None = None) -> StepResult:
        """Complete the step that was begun, or only the first ``steps`` of a run, and say what came out.

        :raises EngineFault: when no step was begun, or it has fewer steps.
        """
        step = self._step
        if step is None:
            raise EngineFault("no step was begun")
        done = step.steps if steps is None else steps
        if not 1 <= done <= step.steps:
            raise EngineFault(f"{done} steps cannot be finished: {step.steps} were begun")
        self._step = None
        growth = self._decodes.growth
        if done > 1:
            self.cache.take_private(growth.blocks(self._steps_done + 1, done - 1))
        self._steps_done += done
        growth.advance(done)
        self._drop_aborted()
        tokens = self._decoding_ids() if self._record_details else []
        first_tokens: list[FirstToken] = []
        finished = [self._finish(seq) for seq in self._decodes.due(self._steps_done)]
        self._finish_prefills(first_tokens, finished, tokens)
        return StepResult(done, first_tokens, finished, tokens, self.cache.take_events())

    def check_integrity(self) -> None:
        """Recount blocks and sums.

        :raises EngineFault: on the first difference.
        """
        self.cache.check_integrity()
        decoding = [seq for seq in self._running.values() if seq.phase is Phase.DECODE]
        context = sum(seq.context(self._steps_done) for seq in decoding)
        if (len(decoding), context) != (self._decodes.growth.sequences, self._decodes.growth.kv_tokens):
            raise EngineFault(
                f"sums say {self._decodes.growth.sequences} sequences with {self._decodes.growth.kv_tokens} tokens, "
                f"but there are {len(decoding)} with {context}"
            )
        private = sum(self._private_blocks(seq) for seq in self._running.values())
        if self._step is None and private != self.cache.private:
            raise EngineFault(f"{self.cache.private} blocks are private, but requests hold {private}")
        if not self.busy and (self.cache.pinned or self.cache.private):
            raise EngineFault(f"idle, but {self.cache.pinned} + {self.cache.private} blocks are in use")

    # Planning a step

    def _allocate_decodes(self) -> None:
        """Give every decoding sequence room for one token; preempt from the back while there is too little."""
        while (needed := self._decodes.growth.blocks(self._steps_done, 1)) > self.cache.available:
            self._preempt_last()
        if needed:
            self.cache.take_private(needed)

    def _continue_partial(self, budget: int) -> int:
        """Schedule the next chunk of the prompt that is partly computed; return its tokens."""
        seq = self._partial
        if seq is None:
            return 0
        chunk = min(seq.target - seq.computed, budget)
        if chunk <= 0:
            return 0
        if self._chunk_blocks(seq, chunk) > self.cache.available:
            self._preempt_last()
            return 0
        self._schedule(seq, chunk)
        return chunk

    def _admit(self, budget: int) -> None:
        """Admit waiting requests in order while budget, sequences and blocks last."""
        while self._waiting and budget > 0 and len(self._running) < self.profile.max_sequences:
            seq = next(iter(self._waiting.values()))
            match = self._lookup(seq)
            hit = match.blocks * self.kv_block_tokens
            chunk = min(seq.target - hit, budget)
            needed = self._blocks(hit + chunk) - match.blocks
            if needed > self.cache.available - match.unpinned:
                return
            self._start(seq, match, hit)
            self._schedule(seq, chunk)
            budget -= chunk

    def _start(self, seq: Sequence, match: Match, hit: int) -> None:
        del self._waiting[seq.request.id]
        self._running[seq.request.id] = seq
        seq.phase = Phase.PREFILL
        seq.node = self.cache.pin(match)
        seq.held_blocks = match.blocks
        seq.private_blocks = 0
        if seq.furthest is None:
            self.prefix_queries += seq.request.prompt_tokens
        self.prefix_hits += seq.admitted(hit)

    def _schedule(self, seq: Sequence, chunk: int) -> None:
        """Compute ``chunk`` more tokens in this step: allocate their blocks and cache the full ones."""
        total = self._blocks(seq.computed + chunk)
        seq.computed += chunk
        full = min(seq.computed // self.kv_block_tokens, len(seq.request.blocks) // BLOCK_BYTES)
        cacheable = max(0, full - seq.held_blocks)
        private = total - seq.held_blocks - cacheable
        cache = self.cache
        cache.make_room(cacheable + private - seq.private_blocks)
        cache.private += private - seq.private_blocks
        if cacheable and seq.node is not None:
            seq.node = cache.extend(seq.node, seq.request.blocks, seq.held_blocks, full, seq.request.id)
            seq.held_blocks = full
        seq.private_blocks = private
        self._prefills.append((seq, chunk))
        self._partial = seq if seq.computed < seq.target else None

    # Ends of every kind

    def _finish_prefills(self, first_tokens: list[FirstToken], finished: list[Finish], tokens: list[str]) -> None:
        for seq, chunk in self._prefills:
            if seq.phase is Phase.DONE:
                continue
            seq.prefilled(chunk)
            if seq.computed < seq.target:
                continue
            if seq.generated == 0:
                first_tokens.append(FirstToken(seq.request.id, seq.cached_tokens))
            seq.generated += 1
            if self._record_details:
                tokens.append(seq.request.id)
            if seq.generated == seq.request.output_tokens:
                finished.append(self._finish(seq))
            else:
                self._decodes.add(seq, self._steps_done)
        self._prefills.clear()

    def _finish(self, seq: Sequence) -> Finish:
        del self._running[seq.request.id]
        self._give_back(seq)
        seq.phase = Phase.DONE
        return Finish(seq.request.id, seq.prefilled_tokens, seq.recomputed_tokens)

    def _decoding_ids(self) -> list[str]:
        return [seq.request.id for seq in self._running.values() if seq.phase is Phase.DECODE]

    def _drop_aborted(self) -> None:
        for seq in self._aborted:
            if seq.phase is Phase.DONE:
                continue
            if seq is self._partial:
                self._partial = None
            del self._running[seq.request.id]
            self._give_back(seq)
            seq.phase = Phase.DONE
        self._aborted.clear()

    def _preempt_last(self) -> None:
        """Give back everything of the sequence admitted last, and put it before all waiting ones."""
        if not self._running:
            raise EngineFault("blocks ran out with nothing to preempt")
        request_id, seq = self._running.popitem()
        if seq is self._partial:
            self._partial = None
        self._give_back(seq)
        seq.preempted(self._steps_done)
        self.preemptions += 1
        self._waiting[request_id] = seq
        self._waiting.move_to_end(request_id, last=False)

    def _give_back(self, seq: Sequence) -> None:
        """Release the blocks of a running sequence; full generated blocks stay in the cache where they have a hash."""
        context = seq.context(self._steps_done)
        private = self._private_blocks(seq)
        if seq.phase is Phase.DECODE:
            self._decodes.remove(seq, self._steps_done)
        self.cache.private -= private
        if seq.node is None:
            return
        full = min(context // self.kv_block_tokens, len(seq.request.blocks) // BLOCK_BYTES)
        if full > seq.held_blocks:
            seq.node = self.cache.extend(seq.node, seq.request.blocks, seq.held_blocks, full, seq.request.id)
        self.cache.release(seq.node)
        seq.node = None
        seq.held_blocks = 0

    # Blocks

    def _lookup(self, seq: Sequence) -> Match:
        return self.cache.match(seq.request.blocks, (seq.target - 1) // self.kv_block_tokens)

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.kv_block_tokens)

    def _chunk_blocks(self, seq: Sequence, chunk: int) -> int:
        return self._blocks(seq.computed + chunk) - seq.held_blocks - seq.private_blocks

    def _private_blocks(self, seq: Sequence) -> int:
        return self._blocks(seq.context(self._steps_done)) - seq.held_blocks
