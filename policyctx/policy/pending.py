"""Keys of the language whose behaviour is not built yet: using one is an error that says so.

No key is accepted and then ignored. What builds a key's behaviour takes its line out here.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic
from policyctx.policy.template import parsed_template
from policyctx.policy.values import PLACEHOLDER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.nodes import Node

# Dotted paths; `*` is any name, `[]` any place in a list.
KEYS = (
    "compaction",
    "items.*.keep_recent.messages",
    "items.*.keep_recent.tokens",
    "items.*.keep_recent.turns",
    "model.cache",
    "model.price",
    "model.token_scale",
    "steps.[].compaction",
    "steps.[].select.ephemeral",
    "steps.[].select.keep_recent.messages",
    "steps.[].select.keep_recent.tokens",
    "steps.[].select.keep_recent.turns",
    "steps.[].select.order",
    "steps.[].select.until",
    "steps.[].select.with_input",
    "steps.[].when",
    "store.compress",
    "store.retention",
    "store.state",
    "tools.*.keep_recent.messages",
    "tools.*.keep_recent.tokens",
    "tools.*.keep_recent.turns",
    "tools.*.reads_file",
    "*placeholder.head",
    "*placeholder.line_numbers",
    "*placeholder.max_line_chars",
    "*placeholder.tail",
)
VALUES = (
    ("model.tokenizer", ("anthropic",)),
    ("steps.[].do", ("clear", "drop", "compact")),
    ("steps.[].select.types.[]", ("compaction_summary", "restored_file", "recalled")),
    ("store.format", ("envelope",)),
)
FIELDS = frozenset({"head", "tail", "omitted_lines", "omitted_chars"})


def not_built_yet(root: Node, path: str = "") -> Iterator[Diagnostic]:
    """Yield an error for each key, value and field in the tree that does nothing yet."""
    children: list[tuple[str, Node]] = []
    if isinstance(root.value, dict):
        children = [(str(key), child) for key, child in root.value.items()]
    elif isinstance(root.value, list):
        children = [("[]", child) for child in root.value]
    for part, child in children:
        name = f"{path}.{part}" if path else part
        yield from _key(name, child)
        yield from not_built_yet(child, name)
    yield from _value(path, root)


def _key(path: str, node: Node) -> Iterator[Diagnostic]:
    if any(fnmatchcase(path, key.replace("[]", "[[]]")) for key in KEYS):
        name = path.rsplit(".", 1)[-1]
        yield Diagnostic(
            node.key or node.place, "PC108", f"`{name}` does nothing yet in this version"
        )


def _value(path: str, node: Node) -> Iterator[Diagnostic]:
    for key, words in VALUES:
        if path == key and node.value in words:
            yield Diagnostic(
                node.place, "PC108", f"`{node.value}` does nothing yet in this version"
            )
    if path.endswith(("placeholder", "placeholder.text")) and isinstance(node.value, str):
        try:
            used = parsed_template(node.value, PLACEHOLDER_FIELDS).fields & FIELDS
        except ValueError:
            return  # told already
        for field in sorted(used):
            yield Diagnostic(
                node.place, "PC108", f"`{{{field}}}` shows nothing yet in this version"
            )
