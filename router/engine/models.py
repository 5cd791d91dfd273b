"""Which model names one engine serves, and how long their context is."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServedModels:
    """Base names (aliases of one model) and adapters on it; ``max_model_len`` in tokens."""

    bases: tuple[str, ...]
    adapters: tuple[str, ...] = field(default=())
    max_model_len: int = 131_072

    @property
    def default(self) -> str:
        """The name used when a request names none."""
        return self.bases[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name a request may use."""
        return self.bases + self.adapters

    def __contains__(self, name: str) -> bool:
        return name in self.bases or name in self.adapters

    def adapter(self, name: str) -> str | None:
        """Return the adapter that ``name`` means, None for the base model."""
        return name if name in self.adapters else None

    def parent(self, name: str) -> str | None:
        """Return the base of an adapter, None for the base model."""
        return self.default if name in self.adapters else None
