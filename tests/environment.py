"""A pytest plug-in, loaded before Django's settings are: tests work in a data directory of their own."""

import atexit
import os
import shutil
import tempfile

if "POINTSMAN_DATA_DIR" not in os.environ:
    _folder = tempfile.mkdtemp(prefix="pointsman-tests-")
    os.environ["POINTSMAN_DATA_DIR"] = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
