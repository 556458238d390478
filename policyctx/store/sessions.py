"""The sessions that keep their state in one root, and what the journal of each says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from policyctx.store import journal
from policyctx.store.content import STATE_FOLDER, decoded
from policyctx.store.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.store.files import Format
    from policyctx.store.local.tree import Tree


def other_indexes(tree: Tree) -> Iterator[Index]:
    """Yield what the journal of each session in this root says."""
    for folder in state_folders(tree):
        index = Index()
        try:
            lines = lines_in(tree, folder)
        except OSError:
            continue  # harmed; its own session mends it
        for line in lines:
            index.apply(line)
        yield index


def lines_in(tree: Tree, folder: str) -> tuple[object, ...]:
    """Return every line of the journal in a folder, oldest first; () when there is none."""
    try:
        descriptor = journal.open_journal(tree.folder(folder), writing=False)
    except FileNotFoundError:
        return ()
    try:
        return journal.read_journal(descriptor, None).lines
    finally:
        os.close(descriptor)


def state_folders(tree: Tree) -> list[str]:
    """Return the folder of each session that keeps a journal in this root."""
    try:
        names = tree.folder(STATE_FOLDER).names()
    except FileNotFoundError:
        return []
    found = [STATE_FOLDER] if journal.JOURNAL in names else []
    for name in names:
        folder = f"{STATE_FOLDER}/{name}"
        try:
            if journal.JOURNAL in tree.folder(folder).names():
                found.append(folder)
        except OSError:
            continue  # a file
    return found


def session_of(folder: str) -> str:
    """Return the id of the session that keeps its state in a folder; "" for the root's own."""
    name = folder.removeprefix(STATE_FOLDER).removeprefix("/")
    return decoded(unquote_to_bytes(name))


INDEX = "index.json"


def snapshot_path(folder: str, form: Format) -> str:
    """Return where a session's snapshot is: at the root for envelopes of the only one there."""
    return INDEX if form == "envelope" and folder == STATE_FOLDER else f"{folder}/{INDEX}"
