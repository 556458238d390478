"""The fields of a session's records, by which a record that nobody could have written is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES: dict[str, frozenset[type]] = {
    "text": frozenset({str}),
    "text or nothing": frozenset({str, type(None)}),
    "whole number": frozenset({int}),
    "whole number or nothing": frozenset({int, type(None)}),
    "number": frozenset({int, float}),
    "truth": frozenset({bool}),
    "list": frozenset({list}),
}
# The fields that every version wrote; a name that ends in "?" may be missing.
DECISION = {
    "kind": "text",
    "tool_use_id": "text or nothing",
    "sha256": "text",
    "occurrence": "whole number",
    "chars": "whole number",
    "item_id": "text",
    "item_type": "text",
    "tool?": "text or nothing",
    "state": "text",
    "step": "text",
    "policy": "text",
    "placeholder": "text or nothing",
    "path": "text or nothing",
    "alike?": "whole number",
    "reads_as?": "text",
    "names_file?": "truth",
    "tokens?": "whole number or nothing",
    "rewritten?": "text or nothing",
}

MARK = {
    "step": "text",
    "kind": "text",
    "tool_use_id": "text or nothing",
    "sha256": "text",
    "occurrence": "whole number",
    "chars": "whole number",
}


def is_of(record: Mapping[str, Any], fields: Mapping[str, str]) -> bool:
    """Whether each field has its type."""
    for name, expected in fields.items():
        key = name.removesuffix("?")
        if key in record:
            if type(record[key]) not in TYPES[expected]:
                return False
        elif key == name:
            return False
    return True
