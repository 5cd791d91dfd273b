"""How much is preloaded: the same in the simulator and in a control plane."""

import msgspec


class PreloadBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What instances that join, or lost their cache, are sent.

    Each prefix is a prefill that users' requests may wait for: ``docs/hotspots.md`` says what more of them bring.
    """

    most_prefixes: int = 32
    """How many of the hottest prefixes one instance is sent (>= 1)."""
    tokens: int = 200_000
    """Prompt tokens that one instance is sent at most (>= 1)."""
    at_once: int = 2
    """How many preloads are under way in the whole fleet (>= 1)."""
