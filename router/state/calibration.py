"""How many bytes of prompt make a token, learnt per model from the usage that engines report."""

from typing import Final

DEFAULT_BYTES_PER_TOKEN: Final = 4.0
_WEIGHT: Final = 0.05
_LIMITS = (0.25, 64.0)


class BytesPerToken:
    """An exponentially weighted mean per model; the default until the first usage was seen."""

    def __init__(self) -> None:
        self._by_model: dict[str, float] = {}

    def get(self, model: str) -> float:
        """Return bytes per token for a model."""
        return self._by_model.get(model, DEFAULT_BYTES_PER_TOKEN)

    def tokens(self, model: str, prompt_bytes: int) -> int:
        """Estimate the tokens (>= 1) of a prompt from its length in bytes."""
        return max(1, round(prompt_bytes / self.get(model)))

    def learn(self, model: str, prompt_bytes: int, prompt_tokens: int) -> None:
        """Take in one observed pair; pairs that no tokenizer could produce are left out."""
        if prompt_bytes <= 0 or prompt_tokens <= 0:
            return
        ratio = prompt_bytes / prompt_tokens
        if _LIMITS[0] <= ratio <= _LIMITS[1]:
            known = self._by_model.get(model, ratio)
            self._by_model[model] = known + (ratio - known) * _WEIGHT

    def forget_except(self, models: frozenset[str]) -> None:
        """Drop what was learnt about models that no instance serves any more."""
        self._by_model = {model: ratio for model, ratio in self._by_model.items() if model in models}
