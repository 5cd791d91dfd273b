"""The one permission class: a view names the scope that each kind of request needs."""

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from controlplane.accounts.access import Scope, allows
from controlplane.accounts.actor import Actor
from controlplane.accounts.authentication import actor_of
from controlplane.errors import Forbidden

if TYPE_CHECKING:
    from rest_framework.views import APIView  # it imports this module, by the name in settings


class HasScope(BasePermission):
    """Asks for ``view.read_scope`` on safe methods and ``view.write_scope`` on all others.

    A view that names no scope lets nobody but administrators in.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return whether the caller may do this."""
        actor = actor_of(request.user, request.auth)
        return actor is not None and allows(actor.scopes, required_scope(request.method or "GET", view))


def required_scope(method: str, view: object) -> Scope:
    """Return the scope that a method of a view asks for."""
    name = "read_scope" if method in SAFE_METHODS else "write_scope"
    scope: Scope = getattr(view, name, Scope.ADMIN)
    return scope


def request_actor(request: Request) -> Actor:
    """Return who is behind a request that a permission has let in.

    :raises Forbidden: when it is nobody.
    """
    actor = actor_of(request.user, request.auth)
    if actor is None:
        raise Forbidden("Nobody is signed in.")
    return actor
