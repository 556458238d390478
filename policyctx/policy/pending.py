"""Keys of the language whose behaviour is not built yet: using one is an error that says so.

No key is accepted and then ignored. What builds a key's behaviour takes its line out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.nodes import Node, Path

# Dotted paths; `*` is any name, `[]` any place in a list.
KEYS = (
    "compaction",
    "items.compaction_summary",
    "items.restored_file",
    "steps.[].compaction",
    "tools.*.reads_file",
)
_LATER_TYPES = ("compaction_summary", "restored_file")
VALUES = (
    ("items.*.match.type", _LATER_TYPES),
    ("steps.[].do", ("compact",)),
    ("steps.[].select.types.[]", _LATER_TYPES),
)


def not_built_yet(root: Node, path: Path = ()) -> Iterator[Diagnostic]:
    """Yield an error for each key and value in the tree that does nothing yet."""
    children: list[tuple[str | int, Node]] = []
    if isinstance(root.value, dict):
        children = list(root.value.items())
    elif isinstance(root.value, list):
        children = list(enumerate(root.value))
    for part, child in children:
        if is_pending((*path, part)):
            sentence = f"`{part}` is not supported yet; leave it out"
            yield Diagnostic(child.key or child.place, "PC108", sentence)
        yield from not_built_yet(child, (*path, part))
    yield from _value(path, root)


def is_pending(path: Path) -> bool:
    """Does the key at this very path do nothing yet."""
    return any(_is_at(path, key) for key in KEYS)


def _is_at(path: Path, pattern: str) -> bool:
    parts = pattern.split(".")
    return len(parts) == len(path) and all(
        wanted in {"*", part} or (wanted == "[]" and isinstance(part, int))
        for wanted, part in zip(parts, path, strict=True)
    )


def _value(path: Path, node: Node) -> Iterator[Diagnostic]:
    for key, words in VALUES:
        if _is_at(path, key) and node.value in words:
            sentence = f"`{node.value}` is not supported yet; leave it out"
            yield Diagnostic(node.place, "PC108", sentence)
