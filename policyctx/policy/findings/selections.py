"""Keys of a selection that change nothing about what the step takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.globs import globs_overlap, is_name_left
from policyctx.policy.reach import outermost, taken_types, tools_left

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import Step
    from policyctx.policy.nodes import Path


def exceptions_without_effect(checked: Checked) -> Iterator[Diagnostic]:
    """PC314, for each glob of `except_tools` that has nothing in common with `tools`."""
    for path, step in checked.steps:
        tools = step.select.tools
        for i, glob in enumerate(step.select.except_tools if tools else ()):
            if not any(globs_overlap(glob, tool) for tool in tools or ()):
                sentence = f"{glob!r} excepts nothing: no tool that `tools` selects matches it"
                at = (*path, "select", "except_tools", i)
                yield checked.warning("PC314", at, sentence, "remove it, or mend the glob")


def orders_without_effect(checked: Checked) -> Iterator[Diagnostic]:
    """PC318, for an `order` in which the step comes to the same as in any other."""
    for path, step in checked.steps:
        if step.select.order == "oldest" or not taken_types(checked, step):
            continue
        unordered = list(_unordered(checked, step)) if step.select.order == "by_type" else []
        for key, sentence, hint in unordered:
            yield checked.warning("PC318", (*path, "select", *key), sentence, hint)
        if not unordered and not step.select.until and _takes_all_in_any_order(checked, step):
            sentence = f"`order: {step.select.order}` does nothing: the step takes all it selects"
            hint = "say when it has done enough with `until`, or remove it"
            yield checked.warning("PC318", (*path, "select", "order"), sentence, hint)


def _unordered(checked: Checked, step: Step) -> Iterator[tuple[Path, str, str]]:
    """Say why `by_type` is no order: one type is alone, or comes after what it refines."""
    named = step.select.types or ()
    if len(set(named)) == 1:
        sentence = f"`order: by_type` does nothing: {named[0]!r} is all that `types` names"
        yield ("order",), sentence, "name the types in their order, or remove it"
    for i, name in enumerate(named):
        wider = [t for t in checked.lineage(name)[1:] if t in named[:i]]
        if wider:
            sentence = f"{name!r} has no place of its own in the order: {wider[0]!r} holds it"
            yield ("types", i), sentence, f"write {name!r} before {wider[0]!r}"


def _takes_all_in_any_order(checked: Checked, step: Step) -> bool:
    """Is nothing left because of what went before, and nothing inside of another item."""
    kinds = set(map(checked.kind, taken_types(checked, step)))
    return step.do != "drop" and kinds.isdisjoint({"image", "document"})


def inputs_of_no_result(checked: Checked) -> Iterator[Diagnostic]:
    """PC320, for a `with_input` where the step takes no result of those tools."""
    for path, step in checked.steps:
        results = [t for t in taken_types(checked, step) if checked.kind(t) == "tool_result"]
        globs, at = step.select.with_input, (*path, "select", "with_input")
        if globs is True and not results and (types := taken_types(checked, step)):
            taken = ", ".join(outermost(checked, types))
            sentence = f"`with_input` does nothing: the step takes no results, only {taken}"
            yield checked.warning("PC320", at, sentence, "select results, or remove it")
        for i, glob in enumerate(globs if isinstance(globs, tuple) else ()):
            if not any(_takes_of(checked, step, t, glob) for t in results):
                sentence = f"{glob!r} does nothing: the step takes no result of such a tool"
                yield checked.warning("PC320", (*at, i), sentence, "remove it, or mend the glob")


def _takes_of(checked: Checked, step: Step, item_type: str, glob: str) -> bool:
    wanted, unwanted = tools_left(checked, step, item_type)
    groups = (*wanted, (glob,))
    return checked.answered(("of", groups, unwanted), lambda: is_name_left(groups, unwanted))
