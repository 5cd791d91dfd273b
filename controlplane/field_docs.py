"""What the fields of a struct mean, in the words that stand below them in its class: forms and REST say the same."""

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from textwrap import dedent


@cache
def field_docs(struct: type) -> Mapping[str, str]:
    """Return the docstring of every field that has one, as one line without reST's double backquotes."""
    (body,) = ast.parse(dedent(inspect.getsource(struct))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.replace("``", "`").split())
        for field, text in zip(body.body, body.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
