"""A pytest plug-in, loaded before Django's settings are: each process of tests works in a data directory of its own.

Where modules are compiled in place, it makes sure that what is tested is what the text says.
"""

import atexit
import os
import shutil
import tempfile

import pytest

from router.compiled import outdated

_OURS = "POINTSMAN_TESTS_DATA_DIR"
"""Names the directory that an outer process of this run made: what starts beside it must not take it as given."""

if os.environ.get("POINTSMAN_DATA_DIR", "") == os.environ.get(_OURS, ""):
    _folder = tempfile.mkdtemp(prefix="pointsman-tests-")
    os.environ["POINTSMAN_DATA_DIR"] = os.environ[_OURS] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)

_outdated = outdated()
if _outdated:
    pytest.exit(f"changed since they were compiled (`make compile` or `make uncompile`): {', '.join(_outdated)}", 4)
