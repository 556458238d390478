"""The key with which credentials are hashed, and the token of a proxy that others can reach."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from policyctx.errors import SettingsError, StoreError

_KEY_BYTES = 32
_LEAST_TOKEN_CHARS = 16


def root_key(root: Path) -> bytes:
    """Return the key in `proxy.key` below the root, made and readable by its owner alone.

    Raises `StoreError` if it can be neither read nor written.
    """
    path = root / "proxy.key"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write_once(path)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot keep the key of the proxy: {error}", path=str(path)) from error
    if len(key) != _KEY_BYTES:
        raise StoreError("the key of the proxy is damaged; remove the file", path=str(path))
    return key


def _write_once(path: Path) -> None:
    """Write a new key, unless another process does so first."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".proxy-key-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()


def token_in(path: Path) -> str:
    """Return the token in a file; raises `SettingsError` for one that is too short to be secret."""
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the token file: {error}", path=str(path)) from error
    if len(token) < _LEAST_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        raise SettingsError(
            f"the token has to be {_LEAST_TOKEN_CHARS} or more printable ASCII characters",
            path=str(path),
        )
    return token
