"""An order to preload: who may give one, what it says, and the request that it becomes."""

from hashlib import sha256
from secrets import compare_digest

import msgspec
import orjson
from msgspec.structs import replace

from router.core.hotspot.prefix_class import HASH_BYTES
from router.core.request import PRELOAD_WORKLOAD
from router.proxy.errors import BadRequest, Unauthorized, Unavailable
from router.proxy.intake import Intake
from router.proxy.plane import Plane
from router.proxy.preload.prefix_texts import ClassText
from router.proxy.wire.head import RequestHead
from router.state.errors import UnknownInstance
from router.state.instance import Instance
from router.unreadable import UNREADABLE

PRELOAD_PATH = b"/-/preload"
_BEARER = b"bearer "


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bring the text of a class (16 hex digits) to an instance (its id)."""

    class_id: str
    instance_id: str


def intake_of_order(plane: Plane, head: RequestHead, body: bytes, request_id: str) -> tuple[RequestHead, Intake]:
    """Return the request that an order becomes: one token, pinned to the instance, counted apart.

    :raises Unauthorized: for anybody but the control plane.
    :raises BadRequest: for an order that cannot be read, or names a class or an instance that is not known (404), or an
        instance that holds it all (409).
    :raises Unavailable: while users' requests wait at the instance.
    """
    _authorize(plane, head)
    order = _parse(body)
    text, instance = _text(plane, order), _instance(plane, order)
    if instance.view.waiting:
        raise Unavailable(f"requests are waiting at {instance.view.name}", retry_after_s=2)
    table = plane.table
    if table is None:
        raise Unavailable("no configuration is in force yet", retry_after_s=1)
    sent = RequestHead.of_post(text.path)
    made = plane.desk.intake(sent, _body(text), request_id, table)
    if not text.prefix.holds(made.chain):
        raise BadRequest("the requests of the class share less text than its prefix", status=404, code="no_text")
    if plane.fleet.index.match(made.chain)[instance.slot] * HASH_BYTES >= len(made.chain):
        raise BadRequest(f"{instance.view.name} holds the prefix", status=409, code="held")
    return sent, replace(made, request=replace(made.request, workload=PRELOAD_WORKLOAD, pinned=instance.slot))


def _authorize(plane: Plane, head: RequestHead) -> None:
    rule = plane.texts.rule
    given = head.fields.get(b"authorization", b"")
    digest = sha256(given[len(_BEARER) :].strip()).hexdigest()
    if rule is None or given[: len(_BEARER)].lower() != _BEARER or not compare_digest(digest, rule.key_digest):
        raise Unauthorized("only the control plane gives orders here", code="invalid_api_key")


def _parse(body: bytes) -> Order:
    try:
        order = msgspec.json.decode(body, type=Order)
        if len(bytes.fromhex(order.class_id)) != HASH_BYTES:
            raise ValueError(f"class_id {order.class_id!r} is not {2 * HASH_BYTES} hex digits")
    except (*UNREADABLE, ValueError) as error:
        raise BadRequest(f"the order cannot be read: {error}", code="invalid_json") from None
    return order


def _text(plane: Plane, order: Order) -> ClassText:
    text = plane.texts.text_of(bytes.fromhex(order.class_id))
    if text is None:
        raise BadRequest(f"no text of class {order.class_id} is kept here", status=404, code="no_text")
    return text


def _instance(plane: Plane, order: Order) -> Instance:
    ranks = [one for one in plane.fleet if one.config.rank is not None and one.config.whole_id == order.instance_id]
    if ranks:
        return min(ranks, key=lambda rank: rank.view.bs)
    try:
        return plane.fleet.by_id(order.instance_id)
    except UnknownInstance as error:
        raise BadRequest(str(error), status=404, code="unknown_instance") from None


def _body(text: ClassText) -> bytes:
    return orjson.dumps({**text.body, "max_tokens": 1, "temperature": 0, "stream": False})
