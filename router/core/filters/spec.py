"""What a filter is."""

from collections.abc import Callable, Mapping, Sequence

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request
from router.core.situation import Situation

Rejections = Mapping[int, str]
"""Position among the candidates -> why that one is out. Empty keeps them all."""

Filter = Callable[[Request, Sequence[Candidate], Policy, Situation], Rejections]
"""Say which candidates are out for this request, and why.

A filter sees every candidate that earlier ones left, so it may compare them: one that caps a quantity and must not
empty the fleet keeps the least bad itself.
"""
