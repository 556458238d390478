"""Steps that do nothing, or what nobody could want."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.reach import NOT_OFFLOADED, outermost, refusal, selected_types, taken_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import Step
    from policyctx.policy.nodes import Path

_SHOWN = 4
_SAID_IN_THE_CHAT = frozenset({"user_message", "assistant_message"})


def no_steps_at_all(checked: Checked) -> Iterator[Diagnostic]:
    """PC315, for rules that say what to offload where no step does it."""
    meant = [
        (kind, name)
        for kind in ("items", "tools")
        for name, rule in getattr(checked.policy, kind).items()
        if rule.offload
    ]
    if meant and not checked.policy.steps:
        kind, name = meant[0]
        sentence = f"{name!r} is to be offloaded, but the policy has no steps, so nothing ever is"
        hint = "add a step such as `- {name: retire, do: offload}`, or extend a policy that has one"
        yield checked.warning("PC315", (kind, name, "offload"), sentence, hint)


def steps_that_never_fire(checked: Checked) -> Iterator[Diagnostic]:
    """PC301, for steps of which the selection is empty whatever the messages."""
    for path, step in checked.steps:
        if taken_types(checked, step):
            continue
        types = selected_types(checked, step)
        why = _why_not(checked, step, types) if types else _nothing_selected(step)
        only_offload = {refusal(checked, step, t) for t in types} <= {NOT_OFFLOADED}
        is_empty = step.select.types == ()
        hint = (
            "give a type `offload: true` under `items`"
            if only_offload and not is_empty
            else "select what it can take, or remove the step"
        )
        at = (*path, "select", "types") if step.select.types is not None else (*path, "name")
        sentence = f"step {step.name!r} can never take anything: {why}"
        yield checked.warning("PC301", at, sentence, hint)


def _nothing_selected(step: Step) -> str:
    if step.select.types is None:
        return "it names no types, and no type has `offload: true`"
    return "`types` is empty"


def _why_not(checked: Checked, step: Step, types: list[str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for item_type in types:
        reason = refusal(checked, step, item_type) or ""
        by_reason.setdefault(reason, []).append(item_type)
    told = {reason: _listed(outermost(checked, names)) for reason, names in by_reason.items()}
    return ", ".join(f"{names} ({reason})" for reason, names in told.items())


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def cleared_for_good(checked: Checked) -> Iterator[Diagnostic]:
    """PC306, for types that a `clear` may take and that no call brings back."""
    for path, step in checked.steps:
        lost = [] if step.do != "clear" else taken_types(checked, step)
        for item_type in lost:
            if checked.kind(item_type) in _SAID_IN_THE_CHAT:
                sentence = (
                    f"step {step.name!r} clears {item_type}: nothing is saved, and no tool call "
                    "brings it back"
                )
                at = _where_selected(checked, path, step, item_type)
                yield checked.warning("PC306", at, sentence, "use `do: offload`, or select less")


def _where_selected(checked: Checked, path: Path, step: Step, item_type: str) -> Path:
    """The element of `types` that selects this type, else the step's `do`."""
    named = step.select.types or ()
    for name in (*checked.lineage(item_type), "*"):
        if name in named:
            return (*path, "select", "types", named.index(name))
    return (*path, "do")
