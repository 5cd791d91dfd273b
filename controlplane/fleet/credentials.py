"""Credentials of instances: sealed in their rows, opened only for those who talk to the engine."""

from controlplane.fleet.models import Instance
from controlplane.sealing import CannotOpen, unseal

FAULT = "Its credentials were sealed with another POINTSMAN_SECRET_KEY: enter them again."


def authorization_of(instance: Instance) -> str | None:
    """Return what to send an engine as ``Authorization``; None where there is nothing, or it cannot be opened."""
    if instance.authorization is None:
        return None
    try:
        return unseal(bytes(instance.authorization)).decode()
    except CannotOpen:
        return None


def credentials_fault(instance: Instance) -> str | None:
    """Return why the credentials of an instance are of no use, in words, or None."""
    return FAULT if instance.authorization is not None and authorization_of(instance) is None else None
