"""Strategies and builders for fleets, requests and policies."""

from random import Random

from hypothesis import strategies as st

from router.core.decide import decide
from router.core.decision import Decision
from router.core.hardware import HardwareProfile
from router.core.instance import InstanceState, InstanceView
from router.core.policy import Policy
from router.core.request import Request

ANY_HARDWARE = HardwareProfile(
    name="any",
    t0_s=0.008,
    prefill_s_per_token=1 / 20_000,
    decode_s_per_sequence=0.000_12,
    decode_s_per_kv_token=2e-8,
    kv_capacity_tokens=500_000,
)


def request(prompt_tokens: int = 1000, **kwargs: object) -> Request:
    """A request for the model ``m``."""
    return Request("r", "m", prompt_tokens, **kwargs)


def fleet(*loads: tuple[int, int]) -> list[InstanceView]:
    """Instances 0, 1, ... with (queued prefill tokens, requests)."""
    return [
        InstanceView(slot=i, name=f"i{i}", queued_prefill_tokens=queued, bs=bs, running=bs, hardware=ANY_HARDWARE)
        for i, (queued, bs) in enumerate(loads)
    ]


def choose(
    views: list[InstanceView],
    policy: Policy | None = None,
    hits: dict[int, int] | None = None,
    of: Request | None = None,
) -> Decision:
    """Decide with matches by slot (0 where not given)."""
    matched = {view.slot: 0 for view in views} | (hits or {})
    return decide(of or request(), views, matched, policy or Policy(), Random(0))


@st.composite
def fleets(draw: st.DrawFn, min_size: int = 1, all_ready: bool = True) -> tuple[list[InstanceView], dict[int, int]]:
    """A fleet in any order, and the matched blocks by slot."""
    slots = draw(st.lists(st.integers(0, 30), min_size=min_size, max_size=12, unique=True))
    stamps = draw(st.permutations(range(len(slots))))
    states = st.just(InstanceState.READY) if all_ready else st.sampled_from(InstanceState)
    views = [
        InstanceView(
            slot=slot,
            name=f"i{slot}",
            state=draw(states),
            queued_prefill_tokens=draw(st.integers(0, 50_000)),
            bs=(waiting := draw(st.integers(0, 50))) + (running := draw(st.integers(0, 50))),
            running=running,
            waiting=waiting,
            own_requests=draw(st.integers(0, 50)),
            kv_use=draw(st.none() | st.floats(0, 1)),
            last_chosen=stamp,
            hardware=ANY_HARDWARE,
            ejected=draw(st.just(False) if all_ready else st.booleans()),
        )
        for slot, stamp in zip(slots, stamps, strict=True)
    ]
    return views, {slot: draw(st.integers(0, 700)) for slot in slots}


requests = st.builds(
    Request,
    st.just("r"),
    st.just("m"),
    st.integers(1, 200_000),
    tokens_per_block=st.floats(0.5, 64),
)

exponents = st.floats(0, 4)
