"""Signing in and out: by password, and by a one-time link."""

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from controlplane.accounts.services.login_links import use_login_link
from controlplane.accounts.services.sign_in_throttle import WINDOW, forgive, must_wait, note_failure

_BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignIn(LoginView):
    """The page with the form. After several failures a name, or an address, has to wait."""

    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: str, **kwargs: Any) -> HttpResponse:
        """Sign in, or say why not."""
        if must_wait(*self._who()):
            wait_s = int(WINDOW.total_seconds())
            page = render(request, "accounts/wait.html", {"minutes": wait_s // 60}, status=429)
            page["Retry-After"] = str(wait_s)
            return page
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Let somebody in."""
        forgive(*self._who())
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the form again."""
        note_failure(*self._who())
        return super().form_invalid(form)

    def _who(self) -> tuple[str, str]:
        return self.request.POST.get("username", "")[:150], self.request.META.get("REMOTE_ADDR", "")


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
