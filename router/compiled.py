"""Whether the modules that every request passes through are compiled.

``compiled.txt`` lists them, ``setup.py`` compiles them.
"""

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LIST = Path(__file__).with_name("compiled.txt")
_STAMP = Path(__file__).with_name("compiled.json")
"""What was compiled in place: the digest of each module's text."""


def modules() -> list[Path]:
    """Return the listed modules, relative to the folder that holds the packages."""
    lines = [line.strip() for line in _LIST.read_text().splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    return sorted({path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern)})


def is_compiled() -> bool:
    """Tell whether they are, all of them: Python prefers the compiled form of a module to its text."""
    return _library() is not None and all(_has_compiled_form(module) for module in modules())


def write_stamp() -> None:
    """Note what was compiled in place."""
    _STAMP.write_text(json.dumps({str(module): _digest(module) for module in modules()}, indent=1) + "\n")


def outdated() -> list[str]:
    """Return the modules whose text changed since they were compiled in place: it would be ignored."""
    if _library() is None or not _STAMP.exists():
        return []
    digests = json.loads(_STAMP.read_text())
    return [name for name, digest in digests.items() if not (ROOT / name).exists() or _digest(Path(name)) != digest]


def _digest(module: Path) -> str:
    return hashlib.sha256((ROOT / module).read_bytes()).hexdigest()


def _library() -> Path | None:
    """Return the library that holds them all."""
    return next(Path(__file__).parent.glob("compiled__mypyc.*"), None)


def _has_compiled_form(module: Path) -> bool:
    return any((ROOT / module.parent).glob(f"{module.stem}.*.so"))
