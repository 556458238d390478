"""Folders that stay open between calls, a few for the whole process: opening is half of a save.

They are only handles. Whoever takes them looks whether each is still what its path leads to.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from policyctx.store.folders import Folder

# The folders of one root by their path below it, the one used last at the end.
Opened: TypeAlias = "OrderedDict[str, Folder]"

# Each holds a descriptor, and a process has some hundreds at least: so many roots, so many of each.
_ROOTS = 8
_FOLDERS = 4

# Each step is one operation on a dict, so threads need no lock, nor does a child that was forked.
_waiting: dict[str, Opened] = {}


def take_waiting(root: str) -> Opened:
    """Return the folders that wait for this root; until given back nobody else has them."""
    found = _waiting.pop(root, None)
    return OrderedDict() if found is None else found


def give_back(root: str, folders: Opened) -> None:
    """Keep the folders used last, and close the others."""
    while len(folders) > _FOLDERS:
        folders.popitem(last=False)[1].close()
    close_all(_waiting.pop(root, None))
    if folders:
        _waiting[root] = folders
    if len(_waiting) > _ROOTS:
        close_all(_waiting.pop(next(iter(tuple(_waiting)), ""), None))


def close_all(folders: Opened | None) -> None:
    """Close every folder."""
    while folders:
        folders.popitem()[1].close()
