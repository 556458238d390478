"""What is wrong with wordings: fields that show nothing at the place where they are used."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic
from policyctx.policy.checked import Checked, TooLargeError
from policyctx.policy.reach import ToolsLeft, rules_that_speak, taken_types, tools_left
from policyctx.policy.template import parsed_template
from policyctx.policy.values import FILE_FIELDS, PLACEHOLDER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.lookup import RulePath
    from policyctx.policy.models import Policy, Step
    from policyctx.policy.models.placeholder import Placeholder
    from policyctx.policy.nodes import Node

_OF_THE_FILE = frozenset(FILE_FIELDS)
_NO_PATH = "`clear` saves nothing, so there is no path to show"


def shown_without_extent(placeholder: Node | None) -> Iterator[Diagnostic]:
    """Yield an error for `{head}` or `{tail}` without the key that says how much they show.

    That has no default, and is not taken from another map.
    """
    text = _text(placeholder)
    if placeholder is None or text is None:
        return
    for key in sorted(_fields(text.value) & {"head", "tail"}):
        extent = placeholder.child(key)
        if extent is None or extent.value is None:
            sentence = f"`{{{key}}}` shows nothing without `{key}`"
            help_ = f"give `{key}` beside the text: `{{text: …, {key}: {{lines: 10}}}}`"
            yield Diagnostic(text.place, "PC107", sentence, help_)


def path_in_cleared(placeholder: Node | None) -> Iterator[Diagnostic]:
    """Yield an error for a step's own wording that names the file of a cleared item."""
    text = _text(placeholder)
    if text is not None and _fields(text.value) & _OF_THE_FILE:
        yield Diagnostic(text.place, "PC107", _NO_PATH)
    elif placeholder is not None and placeholder.is_map and not placeholder.child("text"):
        place = placeholder.key or placeholder.place
        yield Diagnostic(place, "PC107", _NO_PATH, "give a `text`: the default one names the path")


def path_in_inherited(root: Node, policy: Policy) -> Iterator[Diagnostic]:
    """Yield an error for each wording that names a file and that a `clear` step would leave.

    Which wording that is takes the whole policy, so it has to be right in all else. A policy far
    larger than a person writes is looked at in part.
    """
    checked = Checked(root, policy)
    for _, step in checked.steps:
        if step.do == "clear" and step.placeholder is None:
            with suppress(TooLargeError):
                yield from _inherited(checked, step)


def _inherited(checked: Checked, step: Step) -> Iterator[Diagnostic]:
    for path, wording in dict(_wordings_left(checked, step)).items():
        if checked.is_written(path) and _fields(wording.text) & _OF_THE_FILE:
            _, node = checked.root.deepest(path)
            place = (_text(node) or node).place
            sentence = f"step {step.name!r} would leave this wording; {_NO_PATH}"
            sentence = checked.without_values(sentence)
            help_ = checked.without_values(f"give {step.name!r} a `placeholder`")
            yield Diagnostic(place, "PC107", sentence, help_)


def _wordings_left(checked: Checked, step: Step) -> Iterator[tuple[RulePath, Placeholder]]:
    """Yield each wording that a step without one may leave, with the key that gives it."""
    calls = [t for t in checked.types if checked.kind(t) == "tool_call"]
    for item_type in taken_types(checked, step):
        tools = tools_left(checked, step, item_type)
        yield from rules_that_speak(checked, item_type, tools, "placeholder")
        if checked.kind(item_type) == "tool_result" and (globs := step.select.with_input):
            wanted = tools.wanted if isinstance(globs, bool) else (*tools.wanted, globs)
            for call in calls:
                along = ToolsLeft(wanted, tools.unwanted)
                yield from rules_that_speak(checked, call, along, "placeholder")


def _text(placeholder: Node | None) -> Node | None:
    """The text of a placeholder in either of its forms, None where it has none of its own."""
    text = placeholder.child("text") or placeholder if placeholder else None
    return text if text and isinstance(text.value, str) else None


def _fields(text: str) -> frozenset[str]:
    """The fields of a wording; none where they cannot be told, which is told elsewhere."""
    try:
        return parsed_template(text, PLACEHOLDER_FIELDS).fields
    except ValueError:
        return frozenset()
