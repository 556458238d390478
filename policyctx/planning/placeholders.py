"""The text that takes an offloaded item's place."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from policyctx.messages.items import Item
    from policyctx.planning.facts import Facts
    from policyctx.planning.paths import File
    from policyctx.policy.template import Template

_VALUES: dict[str, Callable[[Item, File, Facts], object]] = {
    "path": lambda _item, file, _facts: file.path,
    "relative_path": lambda _item, file, _facts: f"./{file.relative_path}",
    "item_id": lambda item, _file, _facts: item.item_id,
    "item_type": lambda item, _file, _facts: item.type,
    "tool_name": lambda item, _file, _facts: item.tool or "",
    "tool_use_id": lambda item, _file, _facts: item.tool_use_id or "",
    "session_id": lambda _item, _file, facts: facts.session_id,
    "tokens": lambda item, _file, facts: facts.tokens(item),
    "chars": lambda item, _file, _facts: len(item.text),
    "lines": lambda item, _file, _facts: len(item.text.splitlines()),
    "sha256": lambda item, _file, _facts: content_hash(item.text),
}


def rendered_placeholder(wording: Template, item: Item, file: File, facts: Facts) -> str:
    """Return the wording with its fields filled in; only the fields that it uses are computed."""
    return wording.render({name: _VALUES[name](item, file, facts) for name in wording.fields})


def content_hash(text: str) -> str:
    """Return the sha256 of the text as it is saved, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
