"""Builds what is compiled: the prefix index in C, and by mypyc the modules that every request passes through.

The latter are plain Python and run as they are; compiled, a request costs about half. A wheel has them compiled where
there is a C compiler. An editable installation has not: there `make compile` does it, in place. POINTSMAN_COMPILE=0 or
1 decides otherwise.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError

sys.path.insert(0, str(Path(__file__).parent))
from router.compiled import modules, write_stamp

_PREFIX = "router/core/prefix"
NATIVE = Extension(
    "router.core.prefix._native",
    [f"{_PREFIX}/native.c", f"{_PREFIX}/prefix_index.c"],
    depends=[f"{_PREFIX}/{name}.h" for name in ("prefix_index", "record_table", "instance_set", "siphash")],
    py_limited_api=True,
    optional=True,
)
"""Without it the index in plain Python serves."""


def is_wanted() -> bool:
    """Tell whether modules are compiled: as the environment says, else in wheels where that can be done."""
    asked = os.environ.get("POINTSMAN_COMPILE")
    if asked is not None:
        return asked == "1"
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return "bdist_wheel" in sys.argv and shutil.which(compiler) is not None and headers.exists()


def is_demanded() -> bool:
    """Tell whether a failure to compile is one to install."""
    return os.environ.get("POINTSMAN_COMPILE") == "1"


def compiled() -> list[Extension]:
    """Return what mypyc makes of the modules; nothing where it cannot make anything of them."""
    from mypyc.build import mypycify

    options = ["--config-file=router/compiled.ini", *map(str, modules())]
    try:
        extensions: list[Extension] = mypycify(options, opt_level="2", debug_level="0", group_name="router.compiled")
    except SystemExit:  # it has said why
        if is_demanded():
            raise
        return []
    return extensions


class BuildExtensions(build_ext):
    """Does without compiled modules where the compiler fails: half of them would be worse than none."""

    def run(self) -> None:
        """Build, and if need be once more without them."""
        try:
            super().run()
        except BaseError as error:
            if is_demanded():
                raise
            self.warn(f"modules stay uncompiled, and requests cost twice as much: {error}")
            self.extensions = [NATIVE]
            super().run()
        if self.inplace and len(self.extensions) > 1:
            write_stamp()


setup(ext_modules=[NATIVE, *(compiled() if is_wanted() else [])], cmdclass={"build_ext": BuildExtensions})
