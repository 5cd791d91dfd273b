"""Links that leave the process all begin with the same address, by one rule."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

import controlplane
from controlplane.accounts.services.login_links import link_address
from controlplane.alerts.notice import trial_notice
from controlplane.public_address import public_address


@pytest.mark.parametrize(
    ("public", "reached_at", "expected"),
    [
        ("https://pointsman.example.org/", "http://10.0.0.1:8000/", "https://pointsman.example.org"),
        (None, "http://10.0.0.1:8000/", "http://10.0.0.1:8000"),
        (None, "", "http://127.0.0.1:9000"),
    ],
)
def test_the_public_address_is_first_then_the_callers_then_that_of_the_web_process(
    settings: Any, public: str | None, reached_at: str, expected: str
) -> None:
    settings.PUBLIC_URL, settings.WEB_URL = public, "http://127.0.0.1:9000"
    assert public_address(reached_at) == expected
    assert link_address("s", reached_at) == f"{expected}/login/once/s/"


def test_notices_follow_the_same_rule(settings: Any) -> None:
    settings.PUBLIC_URL, settings.WEB_URL = None, "http://127.0.0.1:9000"
    assert trial_notice("ops", timezone.now()).url == "http://127.0.0.1:9000/alerts/channels/"


def test_nothing_else_reads_the_settings_behind_it() -> None:
    root = Path(controlplane.__file__).parent
    readers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"\bsettings\.(PUBLIC_URL|WEB_URL)\b", path.read_text())
    }
    assert readers == {"public_address.py"}
