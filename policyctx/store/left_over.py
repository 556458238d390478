"""What crashes leave behind: files without a name, and a packed copy of what is there plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.store.naming import is_temporary
from policyctx.store.packing import PACKED
from policyctx.store.retention import GRACE_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from policyctx.store.opening import Tree


def remove_left_over(
    tree: Tree, named: Collection[str], folders: Iterable[str], now: float
) -> None:
    """Remove what was left more than an hour ago in `folders` and beside the `named` contents."""
    every = {path.rpartition("/")[0] for path in named} | set(folders)
    for relative in sorted(every):
        for path in _left_over(tree, relative, named):
            folder, name = tree.place(path)
            try:
                if now - folder.stat(name).st_mtime > GRACE_S:
                    folder.remove(name)
            except FileNotFoundError:
                continue  # it got its name meanwhile


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
