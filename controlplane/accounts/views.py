"""Signing in and out: by password, and by a one-time link."""

from django.contrib.auth import login
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from controlplane.accounts.services.login_links import use_login_link

_BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignIn(LoginView):
    """The page with the form."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Ends the session (POST only)."""


@never_cache
@require_GET
def sign_in_once(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in whoever holds an unused link, and lead on to ``next``."""
    user = use_login_link(token)
    if user is None:
        return render(request, "accounts/link_used.html", status=410)
    login(request, user, backend=_BACKEND)
    target = request.GET.get("next", "/")
    safe = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return redirect(target if safe else "/")
