"""Who should be brought the prefix of a hot class before its requests have to pay for it. Pure.

A class that stays hot ends up everywhere: mitigation sends its requests away from the holders until all hold its
prefix, and each copy costs one user a whole prefill. A preload costs no user a first token, so every instance that
lacks the prefix is brought it, the least loaded first.
"""

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def to_widen(loads: Mapping[Name, float], holders: Collection[Name]) -> list[Name]:
    """Return the ready instances that lack the prefix, in the order in which they should get it.

    :param loads: requests (BS) at each ready instance; equal ones keep their order.
    :param holders: those that hold the prefix, or are about to.
    """
    return sorted((name for name in loads if name not in holders), key=lambda name: loads[name])
