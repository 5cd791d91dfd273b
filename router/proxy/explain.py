"""Why a request could not be placed, and how a decision shows in an answer's header."""

from router.core.decision import Decision
from router.proxy.errors import ModelNotFound, ProxyError, TooManyRequests, Unavailable

RETRY_AFTER_S = 1


def refusal(decision: Decision) -> ProxyError:
    """Return what to tell a client whose request no instance can take."""
    request = decision.request
    model = request.adapter or request.model
    views = [candidate.view for candidate, _ in decision.rejected]
    if views and not any(not view.models or model in view.models for view in views):
        return ModelNotFound(f"The model `{model}` does not exist.", param="model")
    reasons = "; ".join(f"{candidate.view.name}: {why}" for candidate, why in decision.rejected)
    if decision.shed:
        return TooManyRequests(f"every instance is too busy ({reasons})", retry_after_s=RETRY_AFTER_S)
    return Unavailable(f"no instance can take this request ({reasons or 'none is registered'})", retry_after_s=1)


def decision_lines(decision: Decision, request_id: bytes, attempts: int) -> bytes:
    """Return the header lines that say where and why a request was placed."""
    chosen, score = decision.chosen, decision.score
    if chosen is None or score is None:
        return b"x-pointsman-request-id: %b\r\nx-pointsman-attempts: %d\r\nx-pointsman-policy: %b\r\n" % (
            request_id,
            attempts,
            decision.policy.label.encode(),
        )
    return (
        b"x-pointsman-instance: %b\r\nx-pointsman-score: %b\r\nx-pointsman-request-id: %b\r\n"
        b"x-pointsman-attempts: %d\r\nx-pointsman-policy: %b\r\n"
    ) % (
        chosen.view.name.encode(),
        b"%d" % score if isinstance(score, int) else b"%.6g" % score,
        request_id,
        attempts,
        decision.policy.label.encode(),
    )
