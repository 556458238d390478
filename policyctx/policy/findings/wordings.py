"""Wordings that do not show what they have been given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.models.placeholder import Placeholder
from policyctx.policy.template import parsed_template
from policyctx.policy.values import PLACEHOLDER_FIELDS
from policyctx.policy.walk import sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked

# The fields of which a wording needs one for the key to do something.
_SHOWN_BY = {
    "head": ("head",),
    "tail": ("tail",),
    "max_line_chars": ("head", "tail"),
    "line_numbers": ("head", "tail"),
}


def excerpts_of_long_lines(checked: Checked) -> Iterator[Diagnostic]:
    """PC326, for a `head` or `tail` in lines that has no limit on the length of a line."""
    must_shrink = any(s.must_shrink for _, s in checked.steps if s.do in {"offload", "clear"})
    effect = (
        "is no smaller than the item, and `must_shrink` leaves the item"
        if must_shrink
        else "is larger than the item"
    )
    for path, model, node in sections(checked.root):
        wording = Placeholder.model_validate(node.plain()) if model is Placeholder else None
        if wording is None or wording.max_line_chars is not None:
            continue
        used = parsed_template(wording.text, PLACEHOLDER_FIELDS).fields
        for key in ("head", "tail"):
            extent = getattr(wording, key)
            if extent is not None and extent.lines and key in used:
                sentence = (
                    f"`{key}: {{lines: {extent.lines}}}` shows a line of any length: of a text on "
                    f"one line, such as JSON, the placeholder {effect}"
                )
                hint = f"add `max_line_chars: 200`, or give `{key}` in `chars` or `tokens`"
                yield checked.warning("PC326", (*path, key), sentence, hint)


def unused_excerpts(checked: Checked) -> Iterator[Diagnostic]:
    """PC316, for a key of an excerpt in a wording whose text has no field for it.

    Silent where the map has no text of its own.
    """
    for path, model, node in sections(checked.root):
        if model is Placeholder and "text" in node.value:
            wording = Placeholder.model_validate(node.plain())
            used = parsed_template(wording.text, PLACEHOLDER_FIELDS).fields
            for key, fields in _SHOWN_BY.items():
                if getattr(wording, key) and used.isdisjoint(fields):
                    missing = " or ".join(f"`{{{field}}}`" for field in fields)
                    sentence = f"`{key}` does nothing: the text has no {missing}"
                    hint = "put it into the text, or remove the key"
                    yield checked.warning("PC316", (*path, key), sentence, hint)
