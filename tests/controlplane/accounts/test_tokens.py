"""API tokens: hashed, scoped, expiring, revocable."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.access import Scope
from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.models import ApiToken, AuditEntry
from controlplane.accounts.services.tokens import check_token, create_token, revoke_token
from controlplane.errors import Invalid

pytestmark = pytest.mark.django_db


def test_only_a_hash_is_kept() -> None:
    token, text = create_token(actor=SYSTEM, name="ci", scopes=["read"])
    row = ApiToken.objects.filter(pk=token.pk).values().get()
    secret = text.removeprefix(f"{token.prefix}_")
    assert len(secret) == 43
    assert not any(secret in str(value) for value in row.values())
    assert not any(secret in str(entry.after) for entry in AuditEntry.objects.all())


def test_a_token_is_found_by_its_text_and_its_use_is_noted_once_a_minute() -> None:
    token, text = create_token(actor=SYSTEM, name="ci", scopes=["read", "router"])
    assert check_token(text) == token
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    check_token(text)
    token.refresh_from_db()
    assert token.last_used_at == first
    assert token.scope_set == {Scope.READ, Scope.ROUTER}


@pytest.mark.parametrize("change", ["one letter", "secret of another", "empty", "prefix only", "not ascii"])
def test_another_text_is_no_token(change: str) -> None:
    token, text = create_token(actor=SYSTEM, name="ci", scopes=["read"])
    _, other = create_token(actor=SYSTEM, name="other", scopes=["admin"])
    wrong = {
        "one letter": text[:-1] + ("a" if text[-1] != "a" else "b"),
        "secret of another": f"{token.prefix}_{other.rpartition('_')[2]}",
        "empty": "",
        "prefix only": token.prefix,
        "not ascii": text + "é",
    }[change]
    assert check_token(wrong) is None


def test_an_expired_or_revoked_token_is_none() -> None:
    token, text = create_token(actor=SYSTEM, name="ci", scopes=["read"], expires_at=timezone.now() + timedelta(hours=1))
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert check_token(text) is None
    ApiToken.objects.update(expires_at=None)
    assert check_token(text) is not None
    revoke_token(actor=SYSTEM, token=token)
    revoke_token(actor=SYSTEM, token=token)
    assert check_token(text) is None
    assert AuditEntry.objects.filter(action="token.revoke").count() == 1


def test_unknown_scopes_blank_names_and_past_ends_are_refused() -> None:
    with pytest.raises(Invalid, match="no scope 'root'"):
        create_token(actor=SYSTEM, name="x", scopes=["read", "root"])
    with pytest.raises(Invalid, match="blank"):
        create_token(actor=SYSTEM, name="  ", scopes=["read"])
    with pytest.raises(Invalid, match="passed"):
        create_token(actor=SYSTEM, name="x", scopes=["read"], expires_at=timezone.now())
