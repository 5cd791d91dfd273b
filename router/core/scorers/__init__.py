"""Scorers: one file each, and the literal table that names them.

A scorer turns the candidates of one request into one number each; the smallest wins. It is a pure function: it keeps
nothing between calls, and reads nothing but its arguments. Adding one is a file and a line in :data:`SCORERS`.
"""

from collections.abc import Mapping
from math import isfinite

from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.core.scorers.aibrix import AIBRIX
from router.core.scorers.dynamo import DYNAMO
from router.core.scorers.least_pending_prefill import LEAST_PENDING_PREFILL
from router.core.scorers.least_request import LEAST_REQUEST
from router.core.scorers.linear import LINEAR
from router.core.scorers.llm_d import LLM_D
from router.core.scorers.llm_d_predict import LLM_D_PREDICT, LLM_D_PREDICT_OFF
from router.core.scorers.marginal_delay import MARGINAL_DELAY
from router.core.scorers.multiplicative import MULTIPLICATIVE
from router.core.scorers.multiplicative_raw import MULTIPLICATIVE_RAW
from router.core.scorers.preble import PREBLE
from router.core.scorers.random_choice import RANDOM
from router.core.scorers.round_robin import ROUND_ROBIN
from router.core.scorers.sglang import SGLANG
from router.core.scorers.spec import ScorerSpec
from router.core.scorers.vllm import VLLM, VLLM_V1
from router.core.term_limits import term_faults

SCORERS: Mapping[str, ScorerSpec] = {
    spec.name: spec
    for spec in (
        MULTIPLICATIVE,
        ROUND_ROBIN,
        RANDOM,
        LEAST_REQUEST,
        VLLM,
        VLLM_V1,
        LINEAR,
        DYNAMO,
        LLM_D,
        LLM_D_PREDICT,
        LLM_D_PREDICT_OFF,
        SGLANG,
        AIBRIX,
        PREBLE,
        LEAST_PENDING_PREFILL,
        MARGINAL_DELAY,
        MULTIPLICATIVE_RAW,
    )
}


def scorer_of(policy: Policy) -> ScorerSpec:
    """Return the scorer that a policy names.

    :raises InvalidPolicy: when there is none of that name.
    """
    try:
        return SCORERS[policy.scorer]
    except KeyError:
        known = ", ".join(sorted(SCORERS))
        raise InvalidPolicy(f"no scorer named {policy.scorer!r}; there are: {known}", "scorer") from None


def check_policy(policy: Policy) -> None:
    """Refuse a policy that cannot be scored.

    :raises InvalidPolicy: for an unknown scorer or parameter, an exponent that is negative or not finite, or an
        optional term out of its range; the error names the field.
    """
    spec = scorer_of(policy)
    for name in ("a", "b", "c"):
        value = getattr(policy, name)
        if value is not None and not (isfinite(value) and value >= 0):
            raise InvalidPolicy(f"exponent {name} is {value}, but it must be a finite number of at least 0", name)
    for name, value in policy.params.items():
        if name not in spec.defaults:
            known = f"it has: {sorted(spec.defaults)}"
            raise InvalidPolicy(f"scorer {spec.name} has no parameter {name!r}; {known}", "params")
        if not isfinite(value):
            raise InvalidPolicy(f"parameter {name} is {value}, which is not a finite number", "params")
    for field, fault in term_faults(policy):
        raise InvalidPolicy(fault, field)
