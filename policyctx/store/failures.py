"""What the operating system refuses, as an error of the store."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from policyctx.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def failing_as(verb: str, root: Path, path: str = "") -> Iterator[None]:
    """Raise `StoreError` in the place of `OSError` and `ValueError`: what cannot be `verb`, why."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        where = str(getattr(error, "filename", None) or path or root)
        if getattr(error, "errno", None) == errno.ELOOP:
            raise StoreError(f"{where} is a link and leads out of {root}", path=where) from error
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{where} cannot be {verb}: {reason}", path=where) from error
