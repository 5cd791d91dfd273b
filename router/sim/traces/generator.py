"""Generated traces that meet published statistics: requests per second, mean prompt and output, ideal hit ratio.

Sessions are drawn first (starts, class, turns, relative lengths). Then three numbers are solved for, so that the very
sample that was drawn has the published means, whatever the seed:

- outputs are scaled to the mean output;
- what users add is scaled so that tokens never seen before are ``(1 - hit ratio)`` of all prompt tokens;
- system prompts are scaled to what is missing to the mean prompt.

They are **not** recordings: the shape of the sessions is an assumption (:mod:`router.sim.traces.generator_profiles`).
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from router.sim.errors import TraceError
from router.sim.traces.generator_profiles import GENERATORS, GeneratorProfile
from router.sim.traces.record import BLOCK_BYTES, Trace, TraceRequest, mixed

BLOCK_TOKENS = 16
SECONDS_PER_OUTPUT_TOKEN = 0.02
"""Assumed pace of answers, which places the next turn of a recorded conversation in time."""
_OWNER_BITS = 20
_MIN_USER_TOKENS = 4
_MAX_LENGTH_RATIO = 30.0
_ROUNDS = 4
_LEAD_SESSIONS = 4.0
"""How many mean lengths of a session its start may lie before the trace."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Turns(msgspec.Struct):
    """All turns of all sessions, as columns in order of (session, turn).

    Sessions that are under way when the trace begins have turns before it: they are not ``inside``, but later turns
    repeat them.
    """

    session: Ints
    turn: Ints
    kind: Ints
    arrival_s: Floats
    user: Floats
    """What the user adds."""
    output: Floats
    inside: Bools


def generate(
    name: str,
    *,
    seed: int = 0,
    duration_s: float | None = None,
    requests_per_s: float | None = None,
) -> Trace:
    """Generate a named kind of traffic; duration and rate default to those of its profile.

    :raises TraceError: for an unknown name, or a duration and rate that give no request.
    """
    profile = GENERATORS.get(name)
    if profile is None:
        raise TraceError(name, None, f"no such generator; there are: {', '.join(GENERATORS)}")
    return generate_profile(profile, seed, duration_s or profile.duration_s, requests_per_s or profile.requests_per_s)


def generate_profile(profile: GeneratorProfile, seed: int, duration_s: float, requests_per_s: float) -> Trace:
    """Generate one kind of traffic.

    :raises TraceError: when duration and rate give no request.
    """
    requests = round(duration_s * requests_per_s)
    if requests < 1:
        raise TraceError(profile.name, None, f"{requests_per_s} requests/s for {duration_s} s are none")
    turns = _draw(profile, np.random.default_rng(seed), requests, duration_s)
    system, prompt, output = _solve(profile, turns)
    return Trace(
        name=profile.name,
        format="generator",
        block_tokens=BLOCK_TOKENS,
        requests=_requests(profile, turns, system, prompt, output),
        provenance=f"generated (seed {seed}), calibrated to the published means of {profile.source}",
    )


def _draw(profile: GeneratorProfile, rng: np.random.Generator, requests: int, duration_s: float) -> Turns:
    """Draw sessions until ``requests`` turns fall into the duration.

    Sessions start at an even rate from well before the trace begins, so that the trace is in its steady state.
    """
    mean_turns = 1 / (1 - profile.follow_up)
    pause_s = profile.think_mean_s + profile.mean_output_tokens * SECONDS_PER_OUTPUT_TOKEN
    lead_s = _LEAD_SESSIONS * mean_turns * pause_s if profile.follow_up else 0.0
    sessions = int(requests / mean_turns * 1.1 * (lead_s + duration_s) / duration_s) + 20
    while True:
        turns = _draw_sessions(profile, rng, sessions, (-lead_s, duration_s))
        if int(turns.inside.sum()) >= requests:
            return _first_sessions(turns, requests)
        sessions = int(sessions * 1.2)


def _draw_sessions(
    profile: GeneratorProfile, rng: np.random.Generator, sessions: int, span_s: tuple[float, float]
) -> Turns:
    begin_s, end_s = span_s
    lengths = rng.geometric(1 - profile.follow_up, sessions)
    session = np.repeat(np.arange(sessions), lengths)
    turn = np.arange(len(session)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    shape = 1 / profile.arrival_cv**2
    gaps = rng.gamma(shape, 1 / shape, sessions)
    start_s = begin_s + rng.permutation(np.cumsum(gaps) / gaps.sum() * (end_s - begin_s))
    output = np.minimum(rng.lognormal(0, profile.output_sigma, len(session)), _MAX_LENGTH_RATIO)
    output *= profile.mean_output_tokens / output.mean()
    pause_s = output * SECONDS_PER_OUTPUT_TOKEN + rng.exponential(profile.think_mean_s, len(session))
    waited_s = np.cumsum(pause_s) - pause_s
    offset_s = waited_s - np.repeat(waited_s[turn == 0], lengths)
    arrival_s = np.repeat(start_s, lengths) + offset_s
    kind = np.repeat(_classes(profile, rng, start_s / end_s), lengths)
    user = np.minimum(rng.lognormal(0, profile.user_sigma, len(session)), _MAX_LENGTH_RATIO)
    kept = arrival_s < end_s
    inside = kept & (arrival_s >= 0)
    columns = (session, turn, kind, arrival_s, user, output, inside)
    return Turns(*(column[kept] for column in columns))


def _classes(profile: GeneratorProfile, rng: np.random.Generator, when: Floats) -> Ints:
    """Choose a class for each session; ``when`` is its start as a share of the duration."""
    weights = 1.0 / np.arange(1, profile.classes + 1) ** profile.zipf
    chosen = rng.choice(profile.classes, len(when), p=weights / weights.sum())
    hot = (when > 1 / 3) & (when < 2 / 3) & (rng.random(len(when)) < profile.burst_share)
    return np.where(hot, 0, chosen)


def _first_sessions(turns: Turns, requests: int) -> Turns:
    """Keep the sessions drawn first, cut to exactly ``requests`` turns inside the trace."""
    stop = int(np.searchsorted(np.cumsum(turns.inside), requests)) + 1
    return Turns(*(getattr(turns, name)[:stop] for name in turns.__struct_fields__))


def _solve(profile: GeneratorProfile, turns: Turns) -> tuple[Ints, Ints, Ints]:
    """Scale lengths to the published means; return system prompt, prompt and output tokens per turn.

    A turn brings what its user adds and the answer before it; the first one of a session inside the trace brings all
    that was said before as well, and the first one of a class its system prompt (which depends on the scales, so they
    are found in a few rounds).
    """
    inside, first = turns.inside, turns.turn == 0
    scale = profile.mean_output_tokens / turns.output[inside].mean()
    output = np.maximum(1, np.rint(turns.output * scale)).astype(np.int64)
    carried = np.where(first, 0, np.roll(np.rint(output * profile.kept_output), 1))
    first_inside = inside & (first | ~np.roll(inside, 1))
    new_user = np.where(first_inside, _running_sum(turns.user, first), turns.user)[inside]
    new_carried = np.where(first_inside, _running_sum(carried, first), carried)[inside]
    asked_mean = profile.mean_prompt_tokens
    fresh_mean = asked_mean * (1 - profile.ideal_hit_ratio) - BLOCK_TOKENS / 2 - new_carried.mean()
    cold_mean = 0.0
    for _ in range(_ROUNDS):
        user_scale = max(0.0, fresh_mean - cold_mean) / new_user.mean()
        user = np.maximum(_MIN_USER_TOKENS, np.rint(turns.user * user_scale))
        said = _running_sum(user + carried, first)
        system = _system_tokens(profile, turns.kind, inside, asked_mean - said[inside].mean())
        _, once = np.unique(turns.kind[inside], return_index=True)
        cold_mean = system[inside][once].sum() / inside.sum()
    return system, (system + said).astype(np.int64), output


def _running_sum(values: Floats, first: NDArray[np.bool_]) -> Floats:
    """Sum within sessions, each value included."""
    total = np.cumsum(values)
    starts = np.flatnonzero(first)
    before = np.repeat((total - values)[starts], np.diff(np.append(starts, len(values))))
    return np.asarray(total - before)


def _system_tokens(profile: GeneratorProfile, kind: Ints, inside: Bools, mean: float) -> Ints:
    """Give each class a system prompt of whole blocks, between half and one and a half of the mean over requests."""
    relative = 0.5 + (np.arange(profile.classes) * 7 % profile.classes + 0.5) / profile.classes
    scale = max(0.0, mean) / relative[kind[inside]].mean()
    blocks = np.rint(relative * scale / BLOCK_TOKENS).astype(np.int64)
    return np.asarray(blocks[kind] * BLOCK_TOKENS)


def _requests(
    profile: GeneratorProfile, turns: Turns, system: Ints, prompt: Ints, output: Ints
) -> tuple[TraceRequest, ...]:
    """Build the requests with their block chains, in order of arrival."""
    chains = _chains(profile, turns, system, prompt)
    order = np.argsort(turns.arrival_s, kind="stable")
    return tuple(
        TraceRequest(
            arrival_s=float(turns.arrival_s[i]),
            prompt_tokens=int(prompt[i]),
            output_tokens=int(output[i]),
            blocks=chains[i],
            workload=profile.name,
            session=f"{profile.name}-{turns.session[i]}",
        )
        for i in order
        if turns.inside[i]
    )


def _chains(profile: GeneratorProfile, turns: Turns, system: Ints, prompt: Ints) -> list[bytes]:
    """Name each block after its owner, the class or the session; turns of a session are cuts of one chain."""
    chains = [b""] * len(prompt)
    chain = b""
    for i in range(len(prompt) - 1, -1, -1):
        if i + 1 == len(prompt) or turns.session[i + 1] != turns.session[i]:
            shared, total = int(system[i]) // BLOCK_TOKENS, int(prompt[i]) // BLOCK_TOKENS
            owner = profile.classes + int(turns.session[i])
            chain = _owned(int(turns.kind[i]), 0, shared) + _owned(owner, shared, total)
        chains[i] = chain[: int(prompt[i]) // BLOCK_TOKENS * BLOCK_BYTES]
    return chains


def _owned(owner: int, start: int, stop: int) -> bytes:
    ids = np.arange(start, stop, dtype=np.uint64) + np.uint64(owner << _OWNER_BITS)
    return mixed(ids).astype("<u8").tobytes()
