"""llm-d's predicted-latency scheduling: send the request where a model of the engine expects the first token first.

The oracle form knows the very cost model of the engine it predicts, which no predictor in production does; the other
form has it wrong by 30 %, prefill too dear and decode too cheap, as a predictor trained on another load would.
"""

from collections.abc import Sequence
from math import ceil
from random import Random

from router.core.candidate import Candidate
from router.core.errors import InvalidPolicy
from router.core.policy import Policy
from router.core.request import Request
from router.core.scorers.spec import ScorerSpec, Scores


def score(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return the predicted time to first token per candidate, in seconds, with an exact cost model."""
    error = LLM_D_PREDICT.param(policy, "error")
    return [predicted_ttft_s(candidate, error) for candidate in candidates]


def score_off(request: Request, candidates: Sequence[Candidate], policy: Policy, rng: Random) -> Scores:
    """Return the predicted time to first token per candidate, in seconds, with a cost model that is off."""
    error = LLM_D_PREDICT_OFF.param(policy, "error")
    return [predicted_ttft_s(candidate, error) for candidate in candidates]


def predicted_ttft_s(candidate: Candidate, error: float) -> float:
    """Predict the steps until the queued and new prefill is done, each slowed down by the sequences that decode.

    :param error: relative error of the prefill cost; decode cost and step overhead are off by as much the other way.
    """
    view = candidate.view
    hardware = view.hardware
    if hardware is None:
        raise InvalidPolicy(f"instance {view.name} has no hardware profile, which a predicted latency needs")
    steps = ceil(candidate.p_token / hardware.max_batch_tokens)
    beside_s = hardware.step_s(sequences=view.running, kv_tokens=view.active_kv_tokens)
    prefill_s = candidate.p_token * hardware.prefill_s_per_token
    return (1 + error) * prefill_s + (1 - error) * steps * beside_s


LLM_D_PREDICT = ScorerSpec(
    name="llm_d_predict",
    score=score,
    meaning="predicted time to first token in seconds, from the engine's own cost model (an oracle)",
    source="llm-d-inference-scheduler, predicted-latency scorer (simulation-based scheduling in arXiv 2603.15202)",
    defaults={"error": 0.0},
)

LLM_D_PREDICT_OFF = ScorerSpec(
    name="llm_d_predict_off",
    score=score_off,
    meaning="predicted time to first token in seconds, from a cost model that is wrong by 30 %",
    source="as llm_d_predict; the error is that of a predictor trained on another load",
    defaults={"error": 0.3},
)
