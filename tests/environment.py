"""A pytest plug-in, loaded before Django's settings are: each process of tests works in a data directory of its own."""

import atexit
import os
import shutil
import tempfile

_OURS = "POINTSMAN_TESTS_DATA_DIR"
"""Names the directory that an outer process of this run made: what starts beside it must not take it as given."""

if os.environ.get("POINTSMAN_DATA_DIR", "") == os.environ.get(_OURS, ""):
    _folder = tempfile.mkdtemp(prefix="pointsman-tests-")
    os.environ["POINTSMAN_DATA_DIR"] = os.environ[_OURS] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
