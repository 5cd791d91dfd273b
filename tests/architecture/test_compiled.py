"""What setup.py compiles is there, can be compiled, and, in the gate, was."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import router.snapshot
from router.compiled import ROOT, is_compiled, modules
from router.config import ConfigDocument

TEXT = ROOT / "router" / "compiled.txt"


def test_every_line_names_modules() -> None:
    lines = [line for line in TEXT.read_text().splitlines() if line and not line.startswith("#")]
    assert not [line for line in lines if not list(ROOT.glob(line))]
    assert lines == sorted(lines)


def test_nothing_that_is_decoded_is_compiled() -> None:
    """Compiled classes do not keep the types of their fields, which msgspec would need."""
    roots = [ConfigDocument, *(value for value in vars(router.snapshot).values() if _is_struct(value))]
    decoded: set[Any] = set()
    for root in roots:
        decoded |= set(_structs(root, set()))
    names = {".".join(module.with_suffix("").parts) for module in modules()}
    assert len(decoded) > 20
    assert not {struct for struct in decoded if struct.__module__ in names}


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled here: make compile")
def test_python_takes_the_compiled_form() -> None:
    for module in modules():
        name = ".".join(module.with_suffix("").parts)
        spec = find_spec(name)
        assert spec is not None
        assert str(spec.origin).endswith(".so")


def _is_struct(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def _structs(hint: Any, seen: set[Any]) -> Iterator[Any]:
    for argument in get_args(hint):
        yield from _structs(argument, seen)
    if _is_struct(hint) and hint not in seen:
        seen.add(hint)
        yield hint
        for inner in get_type_hints(hint).values():
            yield from _structs(inner, seen)
