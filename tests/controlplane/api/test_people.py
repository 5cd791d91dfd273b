"""People over REST: made with a link, changed, closed; somebody stays who may administer."""

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from controlplane.accounts.access import Role
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import AuditEntry, LoginLink, User
from controlplane.accounts.services.login_links import create_login_link, use_login_link
from controlplane.accounts.services.users import create_user

pytestmark = pytest.mark.django_db(databases="__all__")
PEOPLE = "/api/v1/people/"


def test_a_person_is_made_with_a_link_that_signs_in_once(admin: APIClient) -> None:
    made = admin.post(PEOPLE, {"username": "vera", "role": "viewer"})
    assert made.status_code == 201, made.json()
    secret = made.json()["link"].rstrip("/").rpartition("/")[2]
    user = use_login_link(secret)
    assert user is not None
    assert (user.username, user.role) == ("vera", Role.VIEWER)
    assert use_login_link(secret) is None
    assert "link" not in admin.get(f"{PEOPLE}vera/").json()
    assert admin.post(PEOPLE, {"username": "vera", "role": "viewer"}).status_code == 409
    assert admin.post(PEOPLE, {"username": "a b", "role": "viewer"}).status_code == 400
    assert admin.post(PEOPLE, {"username": "otto", "role": "owner"}).status_code == 400


def test_changes_are_on_record_and_closing_ends_unused_links(admin: APIClient) -> None:
    vera = create_user(actor=SYSTEM, username="vera", role=Role.VIEWER)
    create_login_link(actor=SYSTEM, user=vera, life=timedelta(hours=1))
    changed = admin.patch(f"{PEOPLE}vera/", {"role": "operator"})
    assert changed.json().get("role") == "operator", changed.json()
    assert admin.patch(f"{PEOPLE}vera/", {"is_active": False}).json()["is_active"] is False
    assert not LoginLink.objects.filter(user=vera).exists()
    assert admin.post(f"{PEOPLE}vera/link/").status_code == 409
    entries = AuditEntry.objects.filter(action="user.change").order_by("pk")
    assert [(entry.before, entry.after) for entry in entries] == [
        ({"role": "viewer", "is_active": True}, {"role": "operator", "is_active": True}),
        ({"role": "operator", "is_active": True}, {"role": "operator", "is_active": False}),
    ]
    assert admin.patch(f"{PEOPLE}nobody/", {"role": "viewer"}).status_code == 404


def test_the_last_administrator_cannot_be_taken_away(admin: APIClient) -> None:
    for user in User.objects.filter(role=Role.ADMIN):
        user.delete()
    create_user(actor=SYSTEM, username="root", role=Role.ADMIN)
    for change in ({"role": "viewer"}, {"is_active": False}):
        assert admin.patch(f"{PEOPLE}root/", change).status_code == 409
    create_user(actor=SYSTEM, username="other", role=Role.ADMIN)
    assert admin.patch(f"{PEOPLE}root/", {"is_active": False}).status_code == 200
