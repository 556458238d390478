"""What crashes leave behind: files without a name, and a packed copy of what is there plain."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from policyctx.store.folders import NEW_FILE
from policyctx.store.naming import is_temporary
from policyctx.store.packing import PACKED
from policyctx.store.retention import GRACE_S
from policyctx.store.writing import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from policyctx.store.folders import Folder
    from policyctx.store.opening import Tree


def remove_left_over(
    tree: Tree,
    named: Collection[str],
    folders: Iterable[str],
    now: float,
    *,
    living: Collection[str],
) -> None:
    """Remove what was left more than an hour ago in `folders` and beside the `named` contents.

    The temporary files of `living` batches stay. The hour must have passed by the clock of the
    disk as well, which wrote the time of each file: this process's own may be ahead.
    """
    every = {path.rpartition("/")[0] for path in named} | set(folders)
    for relative in sorted(every):
        for path in _left_over(tree, relative, named):
            folder, name = tree.place(path)
            if name[1:].rpartition("-")[0] in living:
                continue
            try:
                written = folder.stat(name).st_mtime
                if now - written > GRACE_S and _disk_time(folder) - written > GRACE_S:
                    folder.remove(name)
            except FileNotFoundError:
                continue  # it got its name meanwhile


def _disk_time(folder: Folder) -> float:
    """The time, in seconds since 1970, that a file written now gets."""
    name = f".{secrets.token_hex(8)}{TEMPORARY}"
    os.close(folder.open(name, NEW_FILE))
    try:
        return folder.stat(name).st_mtime
    finally:
        folder.remove(name)


def _left_over(tree: Tree, relative: str, named: Collection[str]) -> Iterator[str]:
    try:
        names = set(tree.folder(relative).names())
    except FileNotFoundError:
        return
    for name in names:
        path = f"{relative}/{name}" if relative else name
        plain = name.removesuffix(PACKED)
        is_copy = plain != name and plain in names and path.removesuffix(PACKED) in named
        if is_copy or is_temporary(path):
            yield path
