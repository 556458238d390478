"""The root of a store: a folder of this computer, or the URL of a prefix in an object store."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from policyctx.errors import StoreError

SCHEMES = ("s3", "gs", "az", "file")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# The scheme whose URLs name no bucket but a folder.
_FOLDER = "file"


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A prefix in an object store, such as `s3://bucket/prefix`, without a slash at its end."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return self.text

    @property
    def scheme(self) -> str:
        """The part before `://`."""
        return self.text.partition("://")[0]


Root: TypeAlias = Path | StoreUrl


def is_url(root: str) -> bool:
    """Whether a root is written as a URL; every other text is the path of a folder."""
    return _SCHEME.match(root) is not None


def url_problem(root: str) -> str:
    """Return what is wrong with the URL of a store; "" for nothing."""
    found = _SCHEME.match(root)
    scheme = found[1] if found else ""
    if scheme not in SCHEMES:
        known = ", ".join(f"{one}://" for one in SCHEMES)
        return f"expected a folder, or a URL that begins with one of {known}"
    parts = urlsplit(root)
    inner = parts.path.strip("/")
    problems = {
        "a URL must not contain credentials; they come from the environment alone": "@"
        in parts.netloc,
        "a URL of a store has no query and no fragment": bool(parts.query or parts.fragment),
        "expected file:///FOLDER, with an absolute path": scheme == _FOLDER
        and bool(parts.netloc or not inner),
        f"expected {scheme}://BUCKET/PREFIX": scheme != _FOLDER and not parts.netloc,
        "a URL of a store has no empty, `.` or `..` parts": bool(inner)
        and not {"", ".", ".."}.isdisjoint(inner.split("/")),
    }
    return next((text for text, is_so in problems.items() if is_so), "")


def absolute_root(root: str | os.PathLike[str]) -> Path:
    """Return the folder that `root` names, with `~` expanded; it need not exist.

    Raises `StoreError` for the home of an unknown user.
    """
    try:
        return Path(root).expanduser().absolute()
    except RuntimeError as error:
        raise StoreError(f"{root}: {error}", path=os.fspath(root)) from error


def store_root(root: str | os.PathLike[str]) -> Root:
    """Return the folder or the URL that `root` names. Raises `StoreError` for a wrong one."""
    text = os.fspath(root)
    if isinstance(root, Path) or not is_url(text):
        return absolute_root(root)
    problem = url_problem(text)
    if problem:
        raise StoreError(f"{text.rpartition('@')[2]}: {problem}", path=text.rpartition("@")[2])
    return StoreUrl(text.rstrip("/"))
