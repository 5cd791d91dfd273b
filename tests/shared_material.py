"""Public traces and recordings beside a checkout; tests that need them skip where they are missing."""

import os
from pathlib import Path

import pytest

_ROOT = Path(os.environ.get("POINTSMAN_SHARED_MATERIAL", Path(__file__).resolve().parents[2] / "shared"))


def shared_path(relative: str) -> Path:
    """Return the path of a shared file, or skip the test with the reason."""
    path = _ROOT / relative
    if not path.exists():
        pytest.skip(f"needs {relative} of the shared material (set POINTSMAN_SHARED_MATERIAL to its folder)")
    return path
