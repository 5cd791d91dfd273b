"""What is vendored is what VENDORED.md says."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

VENDOR = Path(__file__).resolve().parents[2] / "dashboards" / "static" / "vendor"
ROW = re.compile(
    r"^\| `(?P<folder>[^`]+)/` \|.*\| (?P<version>[\d.]+) \|.*\| `(?P<file>[^`]+)` \| `(?P<sha>\w{64})` \|$", re.M
)
ROWS = ROW.findall((VENDOR / "VENDORED.md").read_text())


def test_every_folder_is_in_the_table() -> None:
    assert {row[0] for row in ROWS} == {path.name for path in VENDOR.iterdir() if path.is_dir()}


@pytest.mark.parametrize(("folder", "version", "file", "sha"), ROWS)
def test_files_are_those_of_the_table(folder: str, version: str, file: str, sha: str) -> None:
    content = (VENDOR / folder / file).read_bytes()
    assert hashlib.sha256(content).hexdigest() == sha
    assert f"v{version}".encode() in content[:500]
    assert gzip.decompress((VENDOR / folder / f"{file}.gz").read_bytes()) == content
    assert (VENDOR / folder / "LICENSE").is_file()
