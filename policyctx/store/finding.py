"""The stores that a folder holds already: one, or one for each session that shares it."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from policyctx.errors import StoreError
from policyctx.store.entries import STATE_FOLDER
from policyctx.store.failures import failing_as
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.index import Index
from policyctx.store.journal import JOURNAL
from policyctx.store.opening import Tree
from policyctx.store.rebuilding import lines_in, session_of, state_folders
from policyctx.store.storage import INDEX

if TYPE_CHECKING:
    import os

    from policyctx.store.files import Format


def stores_in(
    root: str | os.PathLike[str],
    *,
    session: str | None = None,
    compress: Literal["none", "zstd"] = "zstd",
) -> dict[str, ContextFileSystem]:
    """Return every store of a folder by its session's id, "" for that of the folder itself.

    Only that of `session`, where it is given. Raises `StoreError` when there is none, and names
    the folders below that hold one.
    """
    path = Path(root).expanduser().absolute()
    with failing_as("read", path, str(path)), Tree(path) as tree:
        found = {
            session_of(folder): (folder, _format(tree, folder)) for folder in state_folders(tree)
        }
    stores = {
        name: ContextFileSystem(
            path,
            session=name or None,
            format=form,
            compress=compress,
            mode=_mode(path / folder / JOURNAL),
        )
        for name, (folder, form) in found.items()
        if session in {None, name}
    }
    if not stores:
        raise StoreError(_nothing_found(path, session, sorted(found)), path=str(path))
    return stores


def _format(tree: Tree, folder: str) -> Format:
    """The format of a session's newest content; without any, that of the snapshot's place."""
    index = Index()
    with suppress(OSError):  # harmed; the session mends it when it is opened
        for line in lines_in(tree, folder):
            index.apply(line)
    has_open_index = folder == STATE_FOLDER and (tree.root / INDEX).is_file()
    form: Format = "envelope" if has_open_index else "text"
    for entry in index:
        form = entry.format
    return form


def _mode(journal: Path) -> str:
    """The permissions that the store's files have, as a policy writes them."""
    return f"{stat.S_IMODE(journal.lstat().st_mode) | 0o600:04o}"


def _nothing_found(path: Path, session: str | None, others: list[str]) -> str:
    if others:
        known = ", ".join(name or "one without an id" for name in others)
        return f"{path} holds no session {session!r}; there is {known}"
    below = sorted(folder.parent.name for folder in path.glob(f"*/{STATE_FOLDER}"))
    if below:
        return f"{path} holds no store; the folders in it do: {', '.join(below)}"
    return f"{path} holds no store"
