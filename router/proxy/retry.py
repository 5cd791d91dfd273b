"""What follows a failed attempt: another instance, or an error of our own.

Only what has not been answered yet is placed again, never where it was tried, and only within the limits: attempts that
an engine saw, paths that may be repeated, and the retry budget.
"""

from msgspec.structs import replace

from router.core.decision import Decision
from router.proxy.attempt import Attempt
from router.proxy.errors import Overloaded, ProxyError, UpstreamFailed, UpstreamTimeout
from router.proxy.failure import Failure
from router.proxy.intake import Intake
from router.proxy.plane import Plane


def decide_elsewhere(plane: Plane, intake: Intake, attempt: Attempt, spent: int) -> Decision | None:
    """Return where a request goes next, or None when it goes nowhere; the attempt still holds what it holds.

    :param spent: attempts that an engine saw and failed, this one among them.
    """
    failure, decision = attempt.failure, attempt.decision
    chosen = decision.chosen
    if failure is not None and not failure.kind.is_certain and not intake.route.repeatable:
        return None
    if chosen is None or spent >= plane.limits.max_attempts:
        return None
    request = decision.request
    if attempt.link.instance.position is not None:  # a removed one's slot may be another's
        request = replace(request, tried=request.tried | {chosen.view.slot})
    elsewhere = plane.decide(request, intake, decision.policy)
    if elsewhere.chosen_index is None:
        return None
    if failure is not None and failure.kind.draws_on_budget and not plane.budget.spend():
        return None
    return elsewhere


def upstream_error(attempt: Attempt, failure: Failure, attempts: int) -> ProxyError:
    """Return what the client is told of a failure, after so many attempts."""
    name = attempt.link.instance.config.name
    message = f"{name}: {failure.detail} ({failure.kind.value}), after {attempts} attempts"
    if failure.kind.is_our_own:
        return Overloaded(message, code="out_of_connections")
    return UpstreamTimeout(message) if failure.kind.is_timeout else UpstreamFailed(message)
