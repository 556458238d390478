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
