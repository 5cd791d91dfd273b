"""Model aliases: a name that stands for one model, or for several in shares."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import accumulate

import msgspec

from router.config import ModelAlias
from router.proxy.errors import BadRequest
from router.unreadable import UNREADABLE

_UNIT = 1 << 64


class Split(msgspec.Struct, frozen=True):
    """The models behind one alias, and where each one's share of 0..1 ends."""

    models: tuple[str, ...]
    ends: tuple[float, ...]

    def model_of(self, key: str) -> str:
        """Return the model for a key: the same for the same key, over all keys in the given shares."""
        place = int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) / _UNIT
        return next((model for model, end in zip(self.models, self.ends, strict=True) if place < end), self.models[-1])


def splits_of(aliases: Iterable[ModelAlias]) -> Mapping[str, Split]:
    """Build the splits of valid aliases, by name."""
    return {alias.name: _split(alias) for alias in aliases}


def rename_model(body: bytes, model: str) -> bytes:
    """Return a JSON object with another model; every other member keeps its bytes.

    :raises BadRequest: when the body is no JSON object.
    """
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        raise BadRequest(f"the body is not valid JSON: {error}", code="invalid_json") from None
    members["model"] = msgspec.Raw(msgspec.json.encode(model))
    return msgspec.json.encode(members)


def _split(alias: ModelAlias) -> Split:
    total = sum(target.weight for target in alias.targets)
    return Split(
        tuple(target.model for target in alias.targets),
        tuple(accumulate(target.weight / total for target in alias.targets)),
    )
