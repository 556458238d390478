"""`plan`: from items and a policy to decisions. Pure: nothing is read or written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from policyctx.planning.decisions import Decision, Plan, Reason
from policyctx.planning.paths import File, FreePaths, relative_path
from policyctx.planning.placeholders import rendered_placeholder
from policyctx.planning.protection import protected
from policyctx.planning.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.messages.items import Item
    from policyctx.planning.facts import Facts
    from policyctx.planning.ledger import Key, Ledger
    from policyctx.planning.offload_policy import ItemRule, OffloadPolicy
    from policyctx.planning.selection import Verdict
    from policyctx.policy.models import Step

Moment = Literal["arrival", "model_call"]


def plan(
    items: Sequence[Item],
    policy: OffloadPolicy,
    ledger: Ledger,
    facts: Facts,
    *,
    moments: tuple[Moment, ...] = ("arrival", "model_call"),
) -> Plan:
    """Decide what becomes of each item.

    The steps of each of the `moments` run in the order of the policy; a step sees what those
    before it have left. What the ledger knows stays as it was decided.
    """
    items = tuple(map(policy.typed, items))
    # While results arrive one by one, calls made together with them still run.
    held = protected(items, with_pending="model_call" in moments)
    planner = _Planner(items, policy, ledger, facts, held)
    for moment in moments:
        for step in policy.steps(moment):
            planner.run(step)
    decisions = tuple(planner.decided[i] for i in sorted(planner.decided))
    return Plan(items, decisions, ledger, facts)


class _Planner:
    def __init__(
        self,
        items: tuple[Item, ...],
        policy: OffloadPolicy,
        ledger: Ledger,
        facts: Facts,
        held: Mapping[int, Reason],
    ) -> None:
        self.items, self.policy, self.facts, self.protected = items, policy, facts, held
        self.paths = FreePaths(entry.relative_path for entry in ledger.entries.values())
        self.decided: dict[int, Decision] = {}
        self.keys = ledger.keys(items)
        for i, item in enumerate(items):
            if (decision := _remembered(item, self.keys[i], ledger)) is not None:
                self.decided[i] = decision

    def run(self, step: Step) -> None:
        """Decide what this step decides; what is offloaded or is a placeholder is passed over."""
        selection = Selection(step, self.policy, self.items, self.protected, self.facts)
        for i, (verdict, rule) in selection.verdicts().items():
            earlier = self.decided.get(i)
            if earlier is None or (
                earlier.action == "keep" and earlier.reason.code != "placeholder"
            ):
                self.decided[i] = self._decision(step, i, verdict, rule)

    def _decision(self, step: Step, i: int, verdict: Verdict, rule: ItemRule) -> Decision:
        item = self.items[i]
        kept = Decision(item, self.keys[i], "keep", verdict.reason, step.name, verdict.rule)
        if not verdict.taken:
            return kept
        wanted = self._path(item)
        file = self._file(wanted)
        text = rendered_placeholder(rule.placeholder, item, file, self.facts)
        if step.must_shrink and (reason := self._would_not_shrink(item, text, rule)):
            return replace(kept, reason=reason, rule=f"steps.{step.name}.must_shrink")
        self.paths.take(wanted)
        return replace(
            kept,
            action="offload",
            placeholder=text,
            wording=rule.placeholder,
            file=file,
            wanted_path=wanted,
        )

    def _would_not_shrink(self, item: Item, text: str, rule: ItemRule) -> Reason | None:
        unit = rule.threshold.unit
        size, placeholder = self.facts.size(item, unit), self.facts.length(text, unit)
        if placeholder < size:
            return None
        return Reason("would_not_shrink", {"size": size, "placeholder": placeholder, "unit": unit})

    def _path(self, item: Item) -> str:
        values = {
            "item_id": item.item_id,
            "item_type": item.type,
            "tool_name": item.tool,
            "tool_use_id": item.tool_use_id,
            "session_id": self.facts.session_id,
            "ext": "md",
        }
        return relative_path(self.policy.path_parts, values, item.text)

    def _file(self, path: str) -> File:
        """The file that is expected; only the store knows which names are taken on the disk."""
        if self.policy.policy.store.on_conflict == "suffix":
            path = self.paths.free(path)
        return File(path, f"{self.facts.root}/{path}")


def _remembered(item: Item, key: Key, ledger: Ledger) -> Decision | None:
    if (entry := ledger.entry(key, item)) is not None:
        reason = Reason("decided", {"step": entry.step})
        return Decision(item, key, "offload", reason, entry.step, "", entry.placeholder)
    if item.text in ledger.placeholders:
        return Decision(item, key, "keep", Reason("placeholder"), "", "")
    return None
