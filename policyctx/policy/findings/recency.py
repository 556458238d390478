"""A `keep_recent` that keeps nothing, or that counts among all what it is to count apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.findings.types import is_unused
from policyctx.policy.models import KeepRecent
from policyctx.policy.reach import may_meet, selected_types
from policyctx.policy.walk import sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import Step
    from policyctx.policy.nodes import Node

_HINT = "select it in a step that runs before a model call, or remove the key"


def unused_keep_recent(checked: Checked) -> Iterator[Diagnostic]:
    """PC310, for a `keep_recent` on a type or tool that no step before a model call selects.

    A step with a `keep_recent` of its own overrides it, unless it selects by it (`ephemeral`).
    """
    steps = [step for _, step in checked.steps if _honours(step)]
    for name, rule in checked.policy.items.items():
        known = rule.match is None or not is_unused(checked, name)
        if rule.keep_recent and known and not _selects_type(checked, steps, name):
            yield checked.warning("PC310", ("items", name, "keep_recent"), _sentence(name), _HINT)
    for glob, tool in checked.policy.tools.items():
        if tool.keep_recent and not _selects_tool(checked, steps, glob):
            yield checked.warning("PC310", ("tools", glob, "keep_recent"), _sentence(glob), _HINT)


def groups_without_effect(checked: Checked) -> Iterator[Diagnostic]:
    """PC319, for a `per` beside a number of messages or turns, which are those of the list."""
    for path, model, node in sections(checked.root):
        shape = next((s for s in ("messages", "turns") if _is_given(node, s)), None)
        if model is KeepRecent and shape is not None and _is_given(node, "per"):
            sentence = f"`per` does nothing: the {shape} counted are those of the whole list"
            hint = "count `items` or `tokens`, or remove it"
            yield checked.warning("PC319", (*path, "per"), sentence, hint)


def _is_given(node: Node, key: str) -> bool:
    child = node.child(key)
    return child is not None and child.value is not None


def _honours(step: Step) -> bool:
    own = step.select.keep_recent is not None and not step.select.ephemeral
    return step.on == "model_call" and not own


def _sentence(name: str) -> str:
    return f"no step uses the `keep_recent` of {name!r}"


def _selects_type(checked: Checked, steps: list[Step], name: str) -> bool:
    family = [t for t in checked.types if name in checked.lineage(t)]
    return any(
        item_type in selected_types(checked, step) and may_meet(checked, step, item_type)
        for item_type in family
        for step in steps
    )


def _selects_tool(checked: Checked, steps: list[Step], glob: str) -> bool:
    return any(
        may_meet(checked, step, item_type, glob)
        for step in steps
        for item_type in selected_types(checked, step)
    )
