"""What can be set is documented, and what is documented can be set."""

import re
from pathlib import Path

import msgspec

from router.cli import COMMANDS
from router.core.policy import Policy
from router.core.scorers import SCORERS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_setting_is_documented_and_nothing_else() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', (ROOT / "controlplane" / "settings.py").read_text()))
    documented = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "reference" / "settings.md").read_text(), re.MULTILINE))
    assert documented == read


def test_every_field_of_a_policy_is_documented() -> None:
    text = (DOCS / "scheduling.md").read_text()
    fields = {field.name for field in msgspec.structs.fields(Policy)} - {"name", "revision"}
    assert not {name for name in fields if f"`{name}`" not in text}


def test_every_scorer_is_documented() -> None:
    text = (DOCS / "scheduling.md").read_text()
    assert not {name for name in SCORERS if f"`{name}`" not in text}


def test_every_command_is_documented() -> None:
    text = (DOCS / "operating.md").read_text()
    assert not {name for name in COMMANDS if f"`{name}" not in text}


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
