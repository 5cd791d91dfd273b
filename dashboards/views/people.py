"""People: the part of the settings page that says who may sign in, and as what."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from controlplane.accounts import selectors
from controlplane.accounts.access import Role, Scope
from controlplane.accounts.models import User
from controlplane.accounts.services.login_links import create_login_link, link_address
from controlplane.accounts.services.users import change_user, create_user
from controlplane.errors import ControlPlaneError, Invalid
from dashboards.access import needs, signed_in_actor
from dashboards.views.settings import rendered

_ACCOUNT = {"open": True, "closed": False}


@require_POST
@needs(Scope.ADMIN)
@never_cache
def create(request: HttpRequest) -> HttpResponse:
    """Make a person, and show the sign-in link this once."""
    username = request.POST.get("username", "").strip()
    try:
        role = _role(request.POST.get("role", ""))
        user = create_user(actor=signed_in_actor(request), username=username, role=role)
    except ControlPlaneError as error:
        faults = error.fields if isinstance(error, Invalid) else {"username": [str(error)]}
        typed = {"typed": {"username": username, "role": request.POST.get("role", "")}, "person_faults": faults}
        return rendered(request, typed, status=error.status)
    return _with_link(request, user)


@require_POST
@needs(Scope.ADMIN)
def change(request: HttpRequest, username: str) -> HttpResponse:
    """Give another role, close an account, or open it again."""
    try:
        role = _role(request.POST["role"]) if "role" in request.POST else None
        active = _ACCOUNT.get(request.POST.get("account", ""))
        user = change_user(actor=signed_in_actor(request), username=username, role=role, is_active=active)
    except ControlPlaneError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{username} {f'is {user.role}' if user.is_active else 'cannot sign in any more'}.")
    return redirect("dashboards:settings")


@require_POST
@needs(Scope.ADMIN)
@never_cache
def link(request: HttpRequest, username: str) -> HttpResponse:
    """Make a link that signs a person in once, and show it this once."""
    user = selectors.users().filter(username=username, is_active=True).first()
    if user is None:
        messages.error(request, f"There is no open account named {username}.")
        return redirect("dashboards:settings")
    return _with_link(request, user)


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError as error:
        raise Invalid({"role": [f"There is no role {text}."]}) from error


def _with_link(request: HttpRequest, user: User) -> HttpResponse:
    """Show the page with a new link in it: in the answer itself, so that it lies in no address and no session."""
    secret = create_login_link(actor=signed_in_actor(request), user=user)
    made = link_address(secret, request.build_absolute_uri("/"))
    return rendered(request, {"link": made, "link_for": user.username}, status=201)
