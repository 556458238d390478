"""A `keep_recent` that keeps nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.findings.reach import may_meet, selected_types
from policyctx.policy.findings.types import is_unused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.findings.checked import Checked
    from policyctx.policy.models import Step

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


def _honours(step: Step) -> bool:
    own = step.select.keep_recent is not None and not step.select.ephemeral
    return step.on == "model_call" and not own


def _sentence(name: str) -> str:
    return f"no step uses the `keep_recent` of {name!r}"


def _selects_type(checked: Checked, steps: list[Step], name: str) -> bool:
    family = [t for t in checked.types if name in (t, checked.parent(t))]
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
