"""What reads rows of the aliases app."""

from django.db.models import QuerySet

from controlplane.aliases.models import ModelAlias
from controlplane.errors import NotFound


def aliases() -> QuerySet[ModelAlias]:
    """Return all aliases, by name."""
    return ModelAlias.objects.all()


def alias_named(name: str) -> ModelAlias:
    """Return an alias.

    :raises NotFound: when there is none of that name.
    """
    alias = aliases().filter(name=name).first()
    if alias is None:
        raise NotFound(f"There is no alias named {name}.")
    return alias


def leading_to(model: str) -> list[ModelAlias]:
    """Return the aliases that have a model among their targets, by name."""
    return [alias for alias in aliases() if any(target.model == model for target in alias.split)]
