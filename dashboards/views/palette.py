"""What the command palette offers: places, things with names, and what can be done from anywhere."""

from collections.abc import Iterator

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.accounts.access import Scope
from controlplane.fleet import selectors as fleet
from controlplane.policies import selectors as policies
from dashboards.access import may
from dashboards.navigation import PLACES

Entry = dict[str, str]


@require_safe
@login_required
@never_cache
def entries(request: HttpRequest) -> JsonResponse:
    """Return every entry; the browser searches among them."""
    return JsonResponse({"entries": [*_places(request), *_actions(request), *_instances(), *_policies()]})


def _places(request: HttpRequest) -> Iterator[Entry]:
    for place in PLACES:
        if not may(request, place.scope):
            continue
        yield {"label": place.label, "kind": "place", "url": reverse(place.url_name)}
    yield {"label": "Preloading", "kind": "place", "url": reverse("dashboards:preloads")}


def _actions(request: HttpRequest) -> Iterator[Entry]:
    if may(request, Scope.INSTANCES):
        yield {"label": "Register an instance", "kind": "action", "url": reverse("dashboards:instance-register")}
    if may(request, Scope.POLICIES):
        yield {"label": "Run a simulation", "kind": "action", "url": reverse("dashboards:lab")}
    yield {"label": "REST reference", "kind": "reference", "url": reverse("api-docs")}


def _instances() -> Iterator[Entry]:
    for name, state in fleet.living().values_list("name", "state"):
        yield {"label": name, "kind": f"instance, {state}", "url": reverse("dashboards:instance", args=[name])}


def _policies() -> Iterator[Entry]:
    for policy in policies.policies():
        yield {"label": policy.name, "kind": "policy", "url": reverse("dashboards:policy", args=[policy.name])}
