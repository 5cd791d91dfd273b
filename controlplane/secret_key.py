"""The signing key: given by the operator, or made once and kept in the data directory."""

import os
import secrets
from pathlib import Path

from controlplane.env import InvalidSetting

MINIMUM_LENGTH = 32
_NAME = "POINTSMAN_SECRET_KEY"


def secret_key(given: str | None, data_dir: Path, production: bool) -> str:
    """Return the key that was given, else the one in ``data_dir`` (made on first use, readable by its owner alone).

    :raises InvalidSetting: in production without a key, or for a key that is too short.
    """
    if given is not None:
        if len(given) < MINIMUM_LENGTH:
            raise InvalidSetting(f"{_NAME} has {len(given)} characters, but it needs at least {MINIMUM_LENGTH}")
        return given
    if production:
        raise InvalidSetting(f"{_NAME} (or {_NAME}_FILE) must be set when POINTSMAN_PRODUCTION is true")
    return _kept_key(data_dir / "secret_key")


def _kept_key(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)  # the first of several processes wins, and a half-written key is never seen
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii")
