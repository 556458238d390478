"""The fields of a session's records, by which a record that nobody could have written is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

TYPES: dict[str, frozenset[type]] = {
    "text": frozenset({str}),
    "text or nothing": frozenset({str, type(None)}),
    "whole number": frozenset({int}),
    "whole number or nothing": frozenset({int, type(None)}),
    "number": frozenset({int, float}),
    "truth": frozenset({bool}),
    "list": frozenset({list}),
}


class _Missing:
    """The type of a field that a record does not have."""


_MISSING = _Missing()
# The name of each field, and the types that its value may have.
Fields: TypeAlias = tuple[tuple[str, frozenset[type]], ...]


def fields_of(types: Mapping[str, str]) -> Fields:
    """Return fields by name and type; a name that ends in "?" may be missing."""
    return tuple(
        (name.removesuffix("?"), TYPES[expected] | ({_Missing} if name.endswith("?") else set()))
        for name, expected in types.items()
    )


# The fields that every version wrote, and those that may be missing.
DECISION = fields_of(
    {
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
        "saved?": "text or nothing",
    }
)

MARK = fields_of(
    {
        "step": "text",
        "kind": "text",
        "tool_use_id": "text or nothing",
        "sha256": "text",
        "occurrence": "whole number",
        "chars": "whole number",
    }
)


def is_of(record: Mapping[str, Any], fields: Fields) -> bool:
    """Whether each field has its type."""
    get = record.get
    for name, types in fields:  # noqa: SIM110 - a restart checks thousands; `all` takes twice as long
        if type(get(name, _MISSING)) not in types:
            return False
    return True
