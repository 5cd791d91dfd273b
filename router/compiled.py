"""Whether the modules that every request passes through are compiled.

``compiled.txt`` lists them, ``setup.py`` compiles them.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LIST = Path(__file__).with_name("compiled.txt")


def modules() -> list[Path]:
    """Return the listed modules, relative to the folder that holds the packages."""
    lines = [line.strip() for line in _LIST.read_text().splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    return sorted({path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern)})


def is_compiled() -> bool:
    """Tell whether they are, all of them: Python prefers the compiled form of a module to its text."""
    return _library() is not None and all(_has_compiled_form(module) for module in modules())


def outdated() -> list[str]:
    """Return the modules whose text changed since they were compiled: in a checkout, it would be ignored."""
    library = _library()
    if library is None:
        return []
    since = library.stat().st_mtime
    return [str(module) for module in modules() if (ROOT / module).stat().st_mtime > since]


def _library() -> Path | None:
    """Return the library that holds them all."""
    return next(Path(__file__).parent.glob("compiled__mypyc.*"), None)


def _has_compiled_form(module: Path) -> bool:
    return any((ROOT / module.parent).glob(f"{module.stem}.*.so"))
