"""A name and the models behind it, as a dialog edits them: a row for each model, and what is wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from django.http import QueryDict

from controlplane.aliases.models import ModelAlias
from controlplane.aliases.target import Target
from controlplane.errors import Invalid

_PLACE = "targets."


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One model as it was typed."""

    model: str = ""
    weight: str = "1"
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AliasForm:
    """What was typed; rows without a model are left out."""

    name: str = ""
    description: str = ""
    rows: tuple[TargetRow, ...] = (TargetRow(),)
    is_new: bool = True
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of what is no row."""

    def targets(self) -> list[Target]:
        """Return the models with their weights.

        :raises Invalid: for a weight that is no number.
        """
        return [Target(row.model, _weight(place, row.weight)) for place, row in enumerate(self.rows)]

    def with_faults(self, faults: Mapping[str, Sequence[str]]) -> "AliasForm":
        """Return the same, with each fault where it belongs."""
        rows = [
            replace(row, faults=(*faults.get(f"{_PLACE}{place}.model", ()), *faults.get(f"{_PLACE}{place}.weight", ())))
            for place, row in enumerate(self.rows)
        ]
        others = {name: texts for name, texts in faults.items() if not name.startswith(_PLACE)}
        return replace(self, rows=tuple(rows) or (TargetRow(),), faults=others)


def form_of(alias: ModelAlias) -> AliasForm:
    """Return the form of an alias that exists."""
    rows = tuple(TargetRow(target.model, f"{target.weight:.12g}") for target in alias.split)
    return AliasForm(alias.name, alias.description, rows, is_new=False)


def read_form(post: QueryDict) -> AliasForm:
    """Return what was sent."""
    pairs = zip(post.getlist("model"), post.getlist("weight"), strict=False)
    rows = tuple(TargetRow(model.strip(), weight.strip()) for model, weight in pairs if model.strip())
    return AliasForm(
        name=post.get("name", "").strip(),
        description=post.get("description", ""),
        rows=rows,
        is_new="exists" not in post,
    )


def _weight(place: int, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = float("nan")
    if not isfinite(weight):
        raise Invalid({f"{_PLACE}{place}.weight": ["The weight must be a number."]})
    return weight
