"""What changes rows of the aliases app."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from controlplane.accounts.actor import Actor
from controlplane.accounts.services.audit import record
from controlplane.aliases.models import ModelAlias
from controlplane.aliases.selectors import alias_named, leading_to
from controlplane.aliases.target import MODEL_NAME, MOST_NAME_CHARS, Target, check_targets
from controlplane.errors import Invalid, NameTaken
from controlplane.fleet.selectors import models_in_rotation
from controlplane.publication import configuration_changed


@transaction.atomic
def put_alias(*, actor: Actor, name: str, targets: Sequence[Target], description: str = "") -> tuple[ModelAlias, bool]:
    """Make an alias, or make it be as said; return it, and whether it is new. The same again changes nothing.

    A new one may not have the name of a model that instances in rotation serve: nobody could ask for that model any
    more. One that exists already may be changed although its name is served by now.

    :raises Invalid: for a name or targets that cannot be, or where an alias would lead to an alias.
    :raises NameTaken: when instances serve a model of that name.
    """
    check_alias_name(name)
    check_targets(targets)
    alias = ModelAlias.objects.select_for_update().filter(name=name).first()
    before = None if alias is None else describe(alias)
    if alias is None:
        _refuse_name_of_model(name)
        alias = ModelAlias(name=name)
    alias.description = description
    alias.targets = [target._asdict() for target in targets]
    after = describe(alias)
    if after != before:
        alias.save()
        action = "alias.create" if before is None else "alias.change"
        record(actor=actor, action=action, target=("alias", alias.pk, name), before=before, after=after)
        configuration_changed()
        _refuse_chains(alias)
    return alias, before is None


@transaction.atomic
def delete_alias(*, actor: Actor, name: str) -> None:
    """Delete an alias; who still uses the name is told that there is no such model.

    :raises NotFound: when there is none of that name.
    """
    alias = alias_named(name)
    target, before = ("alias", alias.pk, name), describe(alias)
    alias.delete()
    record(actor=actor, action="alias.delete", target=target, before=before)
    configuration_changed()


def describe(alias: ModelAlias) -> dict[str, Any]:
    """Return what the audit log keeps."""
    return {"name": alias.name, "description": alias.description, "targets": alias.targets}


def check_alias_name(name: str) -> None:
    """Refuse a name that cannot be, or that no path could hold.

    :raises Invalid: saying what a name is.
    """
    if not MODEL_NAME.fullmatch(name) or len(name) > MOST_NAME_CHARS:
        raise Invalid({"name": [f"It must be 1 to {MOST_NAME_CHARS} characters without spaces."]})
    if any(part in {"", ".", ".."} for part in name.split("/")):
        raise Invalid({"name": ["What stands between slashes must not be empty, . or .. ."]})


def _refuse_name_of_model(name: str) -> None:
    serving = models_in_rotation().by_name.get(name, 0)
    if serving:
        who = "1 instance serves" if serving == 1 else f"{serving} instances serve"
        raise NameTaken(f"{who} a model named {name}: an alias of that name would hide it from every client.")


def _refuse_chains(alias: ModelAlias) -> None:
    """Refuse aliases that lead to aliases: routers would refuse the whole configuration.

    Asked after :func:`configuration_changed`, whose lock all writers share: of two that come at the same moment, the
    second sees the first.
    """
    models = [target.model for target in alias.split]
    known = set(ModelAlias.objects.filter(name__in=models).values_list("name", flat=True))
    faults = {
        f"targets.{place}.model": [f"{model} is an alias itself; name the models behind it."]
        for place, model in enumerate(models)
        if model in known
    }
    users = [other.name for other in leading_to(alias.name) if other.pk != alias.pk]
    if users:
        faults["name"] = [f"The alias {', '.join(users)} leads to it, and may lead to models only."]
    if faults:
        raise Invalid(faults)
