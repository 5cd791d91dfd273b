"""Who may act on a page. What a person may not do is shown disabled, and refused when it is tried all the same."""

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from controlplane.accounts.access import Scope, allows
from controlplane.accounts.actor import Actor
from controlplane.accounts.authentication import actor_of

View = Callable[..., HttpResponse]


def signed_in_actor(request: HttpRequest) -> Actor:
    """Return who is behind a request.

    :raises PermissionDenied: when it is nobody.
    """
    actor = actor_of(request.user, None)
    if actor is None:
        raise PermissionDenied("Nobody is signed in.")
    return actor


def may(request: HttpRequest, scope: Scope) -> bool:
    """Return whether the signed-in person may do what a scope stands for."""
    actor = actor_of(request.user, None)
    return actor is not None and allows(actor.scopes, scope)


def needs(scope: Scope) -> Callable[[View], View]:
    """Let a view be called by signed-in people with a scope; others are refused with a reason."""

    def decorate(view: View) -> View:
        @login_required
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            if not may(request, scope):
                raise PermissionDenied(f"This needs the permission “{scope.value}”, which your role does not have.")
            return view(request, *args, **kwargs)

        return guarded

    return decorate
