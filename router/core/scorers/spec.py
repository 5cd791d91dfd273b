"""What a scorer is: a function, and the facts that a host needs to run and explain it."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from random import Random

import msgspec

from router.core.candidate import Candidate
from router.core.policy import Policy
from router.core.request import Request

Scores = Sequence[float]
ScoreFunction = Callable[[Request, Sequence[Candidate], Policy, Random], Scores]


class TieBreak(Enum):
    """Who wins among equal scores."""

    LEAST_RECENT = "least recently chosen"
    RANDOM = "random"
    FIRST = "first in order"


class ScorerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A named scorer.

    ``score`` maps n candidates (n >= 1) to n finite numbers, the smallest wins; ``meaning`` says what the number is;
    ``defaults`` holds its parameters with their published values; ``source`` says where the rule is published.
    """

    name: str
    score: ScoreFunction
    meaning: str
    source: str
    tie_break: TieBreak = TieBreak.LEAST_RECENT
    defaults: Mapping[str, float] = {}

    def param(self, policy: Policy, name: str) -> float:
        """Return a parameter of this scorer under a policy."""
        return policy.params.get(name, self.defaults[name])
