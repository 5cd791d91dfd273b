"""API tokens that this machine's own processes use: made once, kept in a file that only the owner can read."""

import os
from collections.abc import Sequence
from pathlib import Path

from controlplane.accounts.actor import SYSTEM
from controlplane.accounts.services.tokens import check_token, create_token


def kept_token(path: Path, name: str, scopes: Sequence[str]) -> str:
    """Return the token in a file; make another one when there is none or it may not be used any more."""
    known = path.read_text(encoding="ascii").strip() if path.exists() else ""
    token = check_token(known) if known else None
    if token is not None and set(scopes) <= set(token.scopes):
        return known
    _, text = create_token(actor=SYSTEM, name=name, scopes=scopes)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write(text)
    draft.replace(path)
    return text
