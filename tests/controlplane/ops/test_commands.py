"""The command line."""

import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from controlplane.__main__ import main
from controlplane.accounts.models import User
from controlplane.accounts.services.login_links import use_login_link
from controlplane.accounts.services.tokens import check_token
from controlplane.fleet.models import Instance
from controlplane.ops.kept_token import kept_token
from router.core.prefix import IMPLEMENTATION
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.django_db
def test_token_create_prints_the_token_alone() -> None:
    out = StringIO()
    call_command("token", "create", "--name", "ci", "--scopes", "read, router", "--days", "3", stdout=out)
    token = check_token(out.getvalue().strip())
    assert token is not None
    assert (token.name, sorted(token.scopes)) == ("ci", ["read", "router"])
    assert token.expires_at is not None


@pytest.mark.django_db
def test_token_create_refuses_unknown_scopes() -> None:
    with pytest.raises(CommandError, match="no scope 'root'"):
        call_command("token", "create", "--name", "ci", "--scopes", "root")


@pytest.mark.django_db
def test_login_link_signs_in_and_makes_people() -> None:
    out = StringIO()
    call_command("login_link", "vera", "--role", "viewer", stdout=out)
    secret = out.getvalue().strip().rstrip("/").rpartition("/")[2]
    user = use_login_link(secret)
    assert user is not None
    assert (user.username, user.role) == ("vera", "viewer")
    with pytest.raises(CommandError, match="--role"):
        call_command("login_link", "nobody")
    assert not User.objects.filter(username="nobody").exists()


@pytest.mark.django_db
def test_a_kept_token_is_used_again_until_it_is_of_no_use(tmp_path: Path) -> None:
    path = tmp_path / "token"
    first = kept_token(path, "mine", ["router"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_token(path, "mine", ["router"]) == first
    assert kept_token(path, "mine", ["router", "read"]) != first
    path.write_text("nonsense")
    assert check_token(kept_token(path, "mine", ["router"])) is not None


@pytest.mark.django_db
def test_prune_counts_what_it_deleted() -> None:
    out = StringIO()
    call_command("prune", stdout=out)
    assert "0 removed instances" in out.getvalue()


@pytest.mark.django_db(databases="__all__")
def test_doctor_says_what_is_wrong(register: Callable[..., Instance]) -> None:
    instance = register()
    Instance.objects.update(probe_ok=False, probe_reasons=["Cannot talk to it."])
    out = StringIO()
    with pytest.raises(CommandError, match="found something wrong"):
        call_command("doctor", stdout=out)
    assert f"instance {instance.name}: Cannot talk to it." in out.getvalue()
    assert "all migrations applied" in out.getvalue()
    assert f"prefix index {IMPLEMENTATION}" in out.getvalue()


def test_router_commands_need_no_django() -> None:
    """`pointsman engine` and its like must start at once."""
    code = (
        "import sys; from controlplane.__main__ import main\n"
        "try: main(['engine', '--help'])\n"
        "except SystemExit: pass\n"
        "assert 'django' not in sys.modules, 'Django was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--web", "nonsense"], "HOST:PORT"),
        (["--web", "127.0.0.1:9", "--router", "127.0.0.1:9"], "share"),
        (["--workers", "0"], "--workers"),
        (["--web-processes", "2"], "need REDIS_URL"),
        (["--only", "web"], "need REDIS_URL"),
    ],
)
def test_up_refuses_what_cannot_be(options: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("up", *options)


def test_the_data_directory_is_known_before_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr("django.core.management.execute_from_command_line", seen.append)
    monkeypatch.setenv("POINTSMAN_DATA_DIR", "/elsewhere")
    import os

    main(["login-link", "--data-dir", "/here"])
    assert os.environ["POINTSMAN_DATA_DIR"] == "/here"
    main(["up", "--data-dir=/there"])
    assert os.environ["POINTSMAN_DATA_DIR"] == "/there"
    assert seen[0][1] == "login_link"
