"""The worker's own paths: liveness, readiness, metrics, and the models of the fleet."""

from collections.abc import Callable, Mapping

import orjson

from router.core.instance import ROUTABLE_STATES
from router.proxy.exposition import expose
from router.proxy.plane import Plane
from router.proxy.wire.encode import OwnAnswer
from router.proxy.wire.head import RequestHead

TEXT = b"text/plain; charset=utf-8"
PROMETHEUS = b"text/plain; version=0.0.4; charset=utf-8"
JSON = b"application/json"
MODELS_PATH = b"/v1/models"


def local_answer(plane: Plane, head: RequestHead) -> OwnAnswer | None:
    """Answer a path of the worker's own; None for any other."""
    if head.method not in (b"GET", b"HEAD"):
        return None
    answer = _PATHS.get(head.path)
    return None if answer is None else answer(plane)


def _livez(plane: Plane) -> OwnAnswer:
    return OwnAnswer(200, TEXT, b"ok\n")


def _readyz(plane: Plane) -> OwnAnswer:
    if plane.ready:
        return OwnAnswer(200, TEXT, b"ok\n")
    return OwnAnswer(503, TEXT, b"stopping\n" if plane.stopping else b"no configuration is in force yet\n")


def _metrics(plane: Plane) -> OwnAnswer:
    """One text serves all who ask in the same turn of the loop, so that nobody can take the worker from the others."""
    if plane.scrape is None:
        plane.scrape = expose(plane)
        plane.loop.call_soon(plane.forget_scrape)
    return OwnAnswer(200, PROMETHEUS, plane.scrape)


def _models(plane: Plane) -> OwnAnswer:
    """The union of what instances in rotation serve: their own word where it is known, else their configuration."""
    cards: dict[str, object] = {}
    for instance in plane.fleet:
        if instance.config.state not in ROUTABLE_STATES:
            continue
        for card in plane.cards.of(instance.config.id):
            cards.setdefault(card["id"], card)
        for name in instance.config.models:
            cards.setdefault(name, {"id": name, "object": "model", "created": 0, "owned_by": "pointsman"})
    for alias in () if plane.table is None else plane.table.splits:
        cards.setdefault(alias, {"id": alias, "object": "model", "created": 0, "owned_by": "pointsman"})
    return OwnAnswer(200, JSON, orjson.dumps({"object": "list", "data": list(cards.values())}))


_PATHS: Mapping[bytes, Callable[[Plane], OwnAnswer]] = {
    b"/livez": _livez,
    b"/readyz": _readyz,
    b"/metrics": _metrics,
    MODELS_PATH: _models,
}
