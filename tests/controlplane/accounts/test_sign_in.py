"""Signing in: by a one-time link, by password, and out again."""

from datetime import timedelta
from threading import Thread

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controlplane.accounts.access import Role
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import LoginLink, SignInFailure, User
from controlplane.accounts.services import sign_in_throttle
from controlplane.accounts.services.login_links import create_login_link, use_login_link
from controlplane.accounts.services.users import create_user, ensure_admin
from controlplane.errors import Invalid, NameTaken

pytestmark = pytest.mark.django_db


def once(secret: str, query: str = "") -> str:
    return reverse("login-once", args=[secret]) + query


def test_a_link_signs_in_once(client: Client) -> None:
    user = ensure_admin(actor=SYSTEM)
    secret = create_login_link(actor=SYSTEM, user=user)
    answer = client.get(once(secret))
    assert (answer.status_code, answer.url) == (302, "/")
    assert client.session["_auth_user_id"] == str(user.pk)
    assert Client().get(once(secret)).status_code == 410


def test_a_link_is_kept_as_a_hash() -> None:
    secret = create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))
    assert secret not in str(LoginLink.objects.values().get())


def test_a_link_expires(client: Client) -> None:
    secret = create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(once(secret)).status_code == 410


def test_a_link_of_a_closed_account_signs_nobody_in(client: Client) -> None:
    secret = create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))
    User.objects.update(is_active=False)
    assert client.get(once(secret)).status_code == 410


@pytest.mark.parametrize(
    ("target", "led"), [("/instances/", "/instances/"), ("https://evil.example/", "/"), ("//evil.example", "/")]
)
def test_it_leads_only_to_pages_of_this_site(client: Client, target: str, led: str) -> None:
    secret = create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))
    assert client.get(once(secret, f"?next={target}")).url == led


def test_head_does_not_use_a_link_up(client: Client) -> None:
    secret = create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))
    assert client.head(once(secret)).status_code == 405
    assert use_login_link(secret) is not None


@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_time_one_wins() -> None:
    secret = create_login_link(actor=SYSTEM, user=ensure_admin(actor=SYSTEM))
    won: list[bool] = []

    def use() -> None:
        won.append(use_login_link(secret) is not None)
        connection.close()

    threads = [Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False, True]


def test_the_page_signs_in_by_password_and_out(client: Client, operator_user: User) -> None:
    page = client.get(reverse("login"))
    assert page.status_code == 200
    assert b"Sign in" in page.content
    sent = {"username": "olga", "password": "correct horse battery", "next": "/instances/"}
    assert client.post(reverse("login"), sent).url == "/instances/"
    assert client.post(reverse("logout")).url == reverse("login")
    assert "_auth_user_id" not in client.session


def test_a_wrong_password_says_so_and_signs_nobody_in(client: Client, operator_user: User) -> None:
    answer = client.post(reverse("login"), {"username": "olga", "password": "wrong"})
    assert answer.status_code == 200
    assert b'role="alert"' in answer.content
    assert "_auth_user_id" not in client.session


def test_somebody_without_a_password_cannot_sign_in_by_one(client: Client) -> None:
    ensure_admin(actor=SYSTEM)
    for password in ("", "admin", "None"):
        client.post(reverse("login"), {"username": "admin", "password": password})
        assert "_auth_user_id" not in client.session


def test_there_is_one_first_administrator() -> None:
    first = ensure_admin(actor=SYSTEM)
    assert ensure_admin(actor=SYSTEM) == first
    assert not first.has_usable_password()


def test_people_have_names_of_their_own_and_good_passwords() -> None:
    create_user(actor=SYSTEM, username="ada", role=Role.VIEWER)
    with pytest.raises(NameTaken):
        create_user(actor=SYSTEM, username="ada", role=Role.VIEWER)
    with pytest.raises(Invalid, match="password"):
        create_user(actor=SYSTEM, username="bob", role=Role.VIEWER, password="short")
    with pytest.raises(Invalid, match="username"):
        create_user(actor=SYSTEM, username="no spaces", role=Role.VIEWER)


def test_pages_have_a_strict_content_policy(client: Client) -> None:
    policy = client.get(reverse("login")).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def attempt(username: str, password: str = "wrong", address: str = "10.0.0.9") -> int:
    sent = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address).post(reverse("login"), sent).status_code


def test_a_name_has_to_wait_after_several_failures_even_with_the_right_password(operator_user: User) -> None:
    for _ in range(sign_in_throttle.MOST_BY_NAME):
        assert attempt("olga") == 200
    assert attempt("OLGA", "correct horse battery", address="10.0.0.10") == 429
    assert attempt("somebody-else") == 200
    past = timezone.now() - sign_in_throttle.WINDOW
    SignInFailure.objects.update(at=past)
    assert attempt("olga", "correct horse battery") == 302


def test_an_address_that_guesses_names_has_to_wait(operator_user: User) -> None:
    for number in range(sign_in_throttle.MOST_BY_ADDRESS):
        assert attempt(f"guess-{number}") == 200
    assert attempt("olga", "correct horse battery") == 429
    assert attempt("olga", "correct horse battery", address="10.0.0.10") == 302


def test_signing_in_forgives_the_name(operator_user: User) -> None:
    for _ in range(sign_in_throttle.MOST_BY_NAME - 1):
        attempt("olga")
    assert attempt("olga", "correct horse battery") == 302
    assert attempt("olga") == 200
    assert attempt("olga", "correct horse battery") == 302
