"""Which class a request belongs to, and who holds the prefix of a class.

The key of a class is the chain hash of one block, which stands for everything before it: that at ``depth`` blocks, or
the deepest one before it that any instance holds. A prompt of which nothing is held anywhere shares nothing, and is
in no class.
"""

from collections.abc import Iterable, Sequence

from router.core.instance import ROUTABLE_STATES, InstanceView

HASH_BYTES = 8
SHORT_NAME_DIGITS = 4


def class_depth(matched_blocks: Sequence[int], depth: int) -> int:
    """Return at which block the class key of a prompt lies; 0 when it is in no class.

    :param matched_blocks: by slot, how many leading blocks of the prompt that instance holds.
    """
    deepest = max(matched_blocks, default=0)
    return min(depth, deepest)


def class_key(chain: bytes, depth: int) -> bytes:
    """Return the class key of a prompt whose class lies at ``depth`` >= 1."""
    return chain[HASH_BYTES * (depth - 1) : HASH_BYTES * depth]


def class_id(key: bytes) -> str:
    """Return a key as it is shown and configured: 16 hex digits."""
    return key.hex()


def short_name(key: bytes) -> str:
    """Return the first digits of a class id, for texts that people read."""
    return key.hex()[:SHORT_NAME_DIGITS]


def taking_requests(view: InstanceView) -> bool:
    """Say whether an instance counts as ready: in a state that takes requests, and not ejected."""
    return view.state in ROUTABLE_STATES and not view.ejected


def holders(views: Iterable[InstanceView], matched_blocks: Sequence[int], depth: int) -> list[InstanceView]:
    """Return M: the instances taking requests that hold the first ``depth`` blocks."""
    return [view for view in views if matched_blocks[view.slot] >= depth and taking_requests(view)]
