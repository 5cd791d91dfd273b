"""The page about alerts names what there is."""

from pathlib import Path

from controlplane.alerts.kinds import KINDS
from controlplane.alerts.services.outbox import MAX_ATTEMPTS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "alerts.md").read_text(encoding="utf-8")


def test_every_kind_is_documented_and_no_other() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(KINDS)


def test_the_number_of_attempts_is_right() -> None:
    assert f"({MAX_ATTEMPTS} attempts" in PAGE
