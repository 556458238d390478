"""Placeholders and paths that hide what they should show, or that collide."""

from __future__ import annotations

from collections.abc import Iterator

from policyctx.definitions.actions import EXTENT_FIELDS, PATH_FIELDS, PLACEHOLDER_FIELDS, is_url
from policyctx.definitions.items import WITH_TOOL, WITHOUT_TOOL
from policyctx.errors import Diagnostic
from policyctx.policy.models.rules import Placeholder
from policyctx.policy.nodes import sections
from policyctx.policy.reach import Checked, outermost, taken_types
from policyctx.policy.templates import parsed_template

# What is in a message more than once, or beside what has the same id.
_WITHOUT_OWN_CALL = WITHOUT_TOOL | {"image", "document"}


def shared_files(checked: Checked) -> Iterator[Diagnostic]:
    """PC311, for a `path` that does not tell items apart, where files overwrite one another."""
    store = checked.policy.store
    if store.on_conflict != "overwrite":
        return
    fields = parsed_template(store.path, PATH_FIELDS).fields
    if (shared := _shared(checked, fields)) is not None:
        which, missing = shared
        overwritten = (
            "different items share a file, and `on_conflict: overwrite` keeps only the last"
        )
        hint = f"put `{{{missing}}}` into the path, or use `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "path"), f"{overwritten}: {which}", hint)
    elif store.escape == "_" and _saved_types(checked):
        sentence = "ids that differ in other signs alone share a file, and `on_conflict: overwrite`"
        hint = "use `escape: percent` or `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "escape"), f"{sentence} keeps only the last", hint)


def _shared(checked: Checked, fields: frozenset[str]) -> tuple[str, str] | None:
    """Say which items share a file, and name the field that would tell them apart."""
    saved = _saved_types(checked)
    if fields.isdisjoint({"item_id", "tool_use_id"}):
        types = outermost(checked, saved)
        return (f"{', '.join(types)} with no id in the path", "item_id") if types else None
    if "item_id" not in fields:
        types = outermost(checked, [t for t in saved if checked.kind(t) in _WITHOUT_OWN_CALL])
        if types:
            return f"{', '.join(types)} with no tool_use_id", "item_id"
    if "item_type" not in fields and WITH_TOOL.issubset(map(checked.kind, saved)):
        return "a call and its result, which have one id", "item_type"
    return None


def _saved_types(checked: Checked) -> list[str]:
    """The types of which a file may be written, those that go along with others included."""
    saved: dict[str, None] = {}
    for _, step in checked.steps:
        if step.action.saves:
            types = taken_types(checked, step)
            kinds = WITH_TOOL.intersection(map(checked.kind, types))
            saved |= dict.fromkeys(types)
            if kinds and step.action.leaves_nothing:
                saved |= dict.fromkeys(sorted(WITH_TOOL))
            inputs = step.select.with_input
            if "tool_result" in kinds and inputs is not None and inputs.tools:
                saved["tool_call"] = None
    return list(saved)


# The fields of which a wording needs one for the key to do something.
_SHOWN_BY = {
    "head": ("head",),
    "tail": ("tail",),
    "max_line_chars": ("head", "tail"),
    "cut_mark": ("head", "tail"),
    "gap": ("gap",),
    "line_numbers": ("head", "tail"),
}


def excerpts_of_long_lines(checked: Checked) -> Iterator[Diagnostic]:
    """PC326, for a `head` or `tail` in lines that has no limit on the length of a line."""
    must_shrink = any(s.must_shrink for _, s in checked.steps if s.action.leaves_placeholder)
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
        for key in EXTENT_FIELDS:
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
                if key in node.value and getattr(wording, key) and used.isdisjoint(fields):
                    missing = " or ".join(f"`{{{field}}}`" for field in fields)
                    sentence = f"`{key}` does nothing: the text has no {missing}"
                    hint = "put it into the text, or remove the key"
                    yield checked.warning("PC316", (*path, key), sentence, hint)
                elif key == "cut_mark" and key in node.value and not wording.max_line_chars:
                    sentence = "`cut_mark` does nothing: no line is cut"
                    hint = "say where with `max_line_chars`, or remove it"
                    yield checked.warning("PC316", (*path, key), sentence, hint)


_OF_FOLDERS = {
    "sync": "an object is durable when the service says so",
    "mode": "the service decides who may read an object",
}


def keys_of_another_root(checked: Checked) -> Iterator[Diagnostic]:
    """PC342, for keys that only folders know in a store at a URL, and the other way round."""
    if is_url(checked.policy.store.root):
        for key, why in _OF_FOLDERS.items():
            if checked.is_written(("store", key)):
                sentence = f"`{key}` has no effect in a store at a URL: {why}"
                yield checked.warning("PC342", ("store", key), sentence, "remove it")
        return
    if checked.is_written(("store", "timeout")):
        sentence = "`timeout` has no effect in a folder: it is for a store at a URL"
        yield checked.warning("PC342", ("store", "timeout"), sentence, "remove it")


def useless_spilling(checked: Checked) -> Iterator[Diagnostic]:
    """PC350, for a `spill_to` that nothing uses, and PC351, for one that changes names."""
    store = checked.policy.store
    if store.spill_to is None:
        return
    if not is_url(store.root):
        sentence = "`spill_to` has no effect in a folder: it is for a store at a URL"
        yield checked.warning("PC350", ("store", "spill_to"), sentence, "remove it")
    elif store.on_conflict == "error":
        sentence = (
            "`on_conflict: error` does not hold for texts that wait in `spill_to`: each gets a name"
            " of its own, since what is taken cannot be asked"
        )
        hint = "remove `spill_to`, or let conflicts get a suffix"
        yield checked.warning("PC351", ("store", "spill_to"), sentence, hint)
