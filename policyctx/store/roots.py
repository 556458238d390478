"""The root of a store: a folder of this computer, or the URL of a prefix in an object store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from policyctx.definitions.store_urls import SCHEMES, is_url, url_problem
from policyctx.errors import StoreError


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
    if isinstance(root, Path) and root.parts[:1] in {(f"{scheme}:",) for scheme in SCHEMES}:
        raise StoreError(
            f"{text} is no folder; a URL is given as a text, where one is possible", path=text
        )
    if isinstance(root, Path) or not is_url(text):
        return absolute_root(root)
    problem = url_problem(text)
    if problem:
        raise StoreError(f"{text.rpartition('@')[2]}: {problem}", path=text.rpartition("@")[2])
    return StoreUrl(text.rstrip("/"))
