"""The text that takes an offloaded item's place."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.definitions.fields import EXCERPT_FIELDS, FILE_FIELDS, PLACEHOLDER_FIELDS
from policyctx.messages.blocks import REMOVED
from policyctx.planning.excerpts import excerpt, line_count
from policyctx.planning.paths import hash_name, numbered_forms, path_from
from policyctx.policy.values import Template, parsed_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from policyctx.messages.items import Item
    from policyctx.planning.facts import Facts
    from policyctx.planning.paths import File
    from policyctx.policy.models.placeholder import Placeholder

_VALUES: dict[str, Callable[[Item, File, Facts], object]] = {
    "path": lambda _item, file, _facts: file.path,
    "relative_path": lambda _item, file, _facts: f"./{file.relative_path}",
    "cwd_path": lambda _item, file, facts: path_from(facts.cwd, file.path),
    "item_id": lambda item, _file, _facts: item.item_id,
    "item_type": lambda item, _file, _facts: item.type,
    "tool_name": lambda item, _file, _facts: item.tool or "",
    "tool_use_id": lambda item, _file, _facts: item.tool_use_id or "",
    "session_id": lambda _item, _file, facts: facts.session_id,
    "tokens": lambda item, _file, facts: facts.tokens(item),
    "chars": lambda item, _file, _facts: len(item.text),
    "lines": lambda item, _file, _facts: line_count(item.text),
    "sha256": lambda item, _file, _facts: content_hash(item.text),
}


# What a placeholder says of the item itself, whatever its content was.
_OF_FILE = frozenset(FILE_FIELDS)
_HASH_NAME = "sha256-[0-9a-f]{16}"
_OF_ITEM = frozenset({"item_id", "tool_name", "tool_use_id", "session_id"})


@dataclass(frozen=True, slots=True)
class Wording:
    """A wording as a policy gives it, with its text parsed."""

    template: Template
    shown: Placeholder
    """How much of the item the wording shows."""

    @classmethod
    def of(cls, placeholder: Placeholder) -> Wording:
        """Parse the text of a policy's `placeholder`."""
        return cls(parsed_template(placeholder.text, PLACEHOLDER_FIELDS), placeholder)


def rendered_placeholder(wording: Wording, item: Item, file: File, facts: Facts) -> str:
    """Return the wording with its fields filled in; only the fields that it uses are computed."""
    fields = wording.template.fields
    values = {name: _VALUES[name](item, file, facts) for name in fields - EXCERPT_FIELDS}
    if fields & EXCERPT_FIELDS:
        values |= _excerpt_values(wording.shown, item, facts)
    text = wording.template.render(values)
    return text if text.strip() else REMOVED


def named_path(wording: Wording, item: Item, file: File, facts: Facts) -> str | None:
    """Return the path, below the root, that an item's text names as a placeholder, else None.

    The text is a placeholder if an earlier call left it: it has the form of the wording and names
    the item's own `file`, which may have a number, or the hash of another content where the item
    has no id. Without a field for the file in the wording the result is None.
    """
    pieces = wording.template.pieces
    if _OF_FILE.isdisjoint(wording.template.fields):
        return None
    if not (item.text.startswith(pieces[0]) and item.text.endswith(pieces[-1])):
        return None
    known = [re.escape(pieces[0])]  # what stands between the fields that may hold anything
    for field, literal in zip(pieces[1::2], pieces[2::2], strict=True):
        form = _form(field, item, file, facts)
        known += [""] if form is None else []
        known[-1] += (form or "") + re.escape(literal)
    first, *rest = known
    # Each part is looked for once, behind the one before it: a long text takes no longer.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    pattern = f"{first}{between}.*{rest[-1]}" if rest else first
    found = re.fullmatch(pattern, item.text, re.DOTALL)
    if found is None:
        return None
    named_by = next(field for field in pieces[1::2] if field in _OF_FILE)
    before = str(_VALUES[named_by](item, file, facts)).removesuffix(file.relative_path)
    return found[1].removeprefix(before)


def _form(field: str, item: Item, file: File, facts: Facts) -> str | None:
    """Return the regular expression of a field's value, None if it can be any; a path is a group.

    A name made of the item's text may have been made of the text that was there before.
    """
    if field in _OF_FILE:
        forms = numbered_forms(str(_VALUES[field](item, file, facts)))
        return f"({forms.replace(re.escape(hash_name(item.text)), _HASH_NAME)})"
    return re.escape(str(_VALUES[field](item, file, facts))) if field in _OF_ITEM else None


def _excerpt_values(shown: Placeholder, item: Item, facts: Facts) -> dict[str, object]:
    """The fields of an excerpt; the newline at the end of what is shown is left to the wording."""
    found = excerpt(item.text, shown, facts.counter)
    return {
        "head": found.head.removesuffix("\n").removesuffix("\r"),
        "tail": found.tail.removesuffix("\n").removesuffix("\r"),
        "omitted_lines": found.omitted_lines,
        "omitted_chars": found.omitted_chars,
    }


def content_hash(text: str) -> str:
    """Return the sha256 of the text as it is saved, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
