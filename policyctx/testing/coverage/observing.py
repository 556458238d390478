"""Which sides of which rules one plan made decide.

A rule decided where it made the difference: a threshold for an item that nothing before it in the
language's order of evaluation has taken away, `keep_recent` for an item that would leave if it
were old. A gate that stayed closed changes nothing in what its step says of an item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from policyctx.definitions.items import Item
from policyctx.planning.compiled import OffloadPolicy, Treatment
from policyctx.planning.decisions import Decision, ItemVerdict
from policyctx.planning.paths import safe_part
from policyctx.planning.plan import Outcome, Plan
from policyctx.policy.lookup import Level, RulePath, levels, matches, nearest_given, offload_given
from policyctx.policy.models import Step
from policyctx.testing.coverage.rules import EXCERPT_KEYS
from policyctx.turns.compacting import Compacted

Side: TypeAlias = tuple[RulePath, str]

# The side of the rule that a verdict goes by, for reasons by which an item stays.
_STAYS = {
    "below_threshold": "below",
    "failed_result": "left",
    "not_ephemeral": "others",
    "offload_off": "refused",
    "pinned": "pinned",
}
_RECENT = frozenset({"recent", "batch_recent"})
_TOO_SMALL = frozenset({"nothing_long", "would_not_shrink"})


def decided_sides(plan: Plan) -> set[Side]:
    """Return the sides of rules that a plan made decide; some may be of keys that have defaults."""
    policy = plan.conversation.policy
    steps = {step.name: step for step in policy.all_steps}
    found = set(_types(plan, policy))
    for decision in plan.new:
        found.update(_of_decision(decision, steps[decision.step], policy))
    for outcome in plan.outcomes:
        step = steps[outcome.step]
        found.update(_of_outcome(outcome, step, plan))
        found.update(
            _of_compaction(outcome, plan)
            if step.action.takes_messages
            else _StepSides(plan, outcome, step).all()
        )
    return found


def _types(plan: Plan, policy: OffloadPolicy) -> Iterator[Side]:
    for item_type in {item.type for item in plan.items}:
        rule = policy.items.get(item_type)
        if rule is not None and rule.match is not None:
            yield ("items", item_type, "match"), "matched"


def _of_decision(decision: Decision, step: Step, policy: OffloadPolicy) -> Iterator[Side]:
    name = ("steps", step.name)
    yield name, "took"
    yield (*name, "must_shrink"), "shrank" if step.must_shrink else "took"
    with_input = (*name, "select", "with_input")
    if decision.rule_path == with_input:
        yield with_input, "shortened"
    if decision.reason.code == "with_unit":
        yield (*name, "select", "unit"), "along"
    if decision.wording is not None:
        path = _wording_path(step, _levels(policy, decision.item))
        yield path, "used"
        if decision.wording.template.fields & {"head", "tail", "gap"}:
            for key in EXCERPT_KEYS:
                yield (*path, key), "used"
    if decision.saves and decision.file is not None:
        yield ("store", "path"), "saved"
        if _is_escaped(decision, policy):
            yield ("store", "escape"), "escaped"
        if decision.file.relative_path != decision.wanted_path:
            yield ("store", "on_conflict"), "taken"


def _is_escaped(decision: Decision, policy: OffloadPolicy) -> bool:
    """Whether a name in the path of a file is not as it was."""
    item = decision.item
    names = filter(None, (item.item_id, item.type, item.tool, item.tool_use_id))
    forms = ((name, safe_part(name, policy.store.escape)) for name in names)
    return any(name != escaped and escaped in decision.wanted_path for name, escaped in forms)


def _wording_path(step: Step, given: Sequence[Level]) -> RulePath:
    if step.placeholder is not None:
        return "steps", step.name, "placeholder"
    return nearest_given(given, "placeholder")[1]


def _of_outcome(outcome: Outcome, step: Step, plan: Plan) -> Iterator[Side]:
    name = ("steps", step.name)
    for gate in outcome.gates:
        # The same gate may be in several alternatives.
        above = (*name, "when", str(gate.alternative)) if len(step.when) > 1 else (*name, "when")
        rule = (*above, *gate.gate.split("."), gate.comparison)
        yield rule, "opened" if gate.opens else "closed"
    codes = {reason.code for _, reason in outcome.left}
    if "not_saved" in codes:
        yield ("store", "on_failure"), "failed"
        if plan.conversation.policy.store.on_conflict == "error":
            yield ("store", "on_conflict"), "taken"
    if codes & _TOO_SMALL:
        yield (*name, "must_shrink"), "would not shrink"
    has_taken = any(decision.step == step.name for decision in plan.new)
    if outcome.stopped is not None:
        yield (*name, "select", "until"), "reached"
        if has_taken:
            yield (*name, "select", "order"), "chose"
    elif has_taken:
        yield (*name, "select", "until"), "not reached"


def _of_compaction(outcome: Outcome, plan: Plan) -> Iterator[Side]:
    """What a step that summarises says of the messages: those that it replaces, and the others."""
    name, replaces = ("steps", outcome.step), outcome.replaces
    if replaces is not None:
        yield name, "took"
    if any(replaces is None or item.message not in replaces.parts for item in plan.items):
        yield name, "left"


def carried_out_sides(compacted: Compacted, plan: Plan) -> set[Side]:
    """Return the sides of rules that a compaction made decide, once it was made."""
    found: set[Side] = set()
    policy = plan.conversation.policy
    for above in (("steps", compacted.replacement.step, "compaction"), ("compaction",)):
        wordings = {"compaction_summary": "summary", "restored_file": "restored"}
        for written in compacted.replacement.written:
            if written.item_type:
                wording = wordings[written.item_type]
                found.add(((*above, "wording", wording), "used"))
                found.add(((*above, "wording", f"{wording}_reply"), "used"))
        if compacted.replacement.carried is not None:
            found.add(((*above, "keep_newest_user_message"), "carried"))
        if compacted.archive_path is not None:
            found.add(((*above, "archive"), "saved"))
    came_back = {written.path for written in compacted.replacement.written}
    for item in plan.items:
        for glob in policy.tools if item.kind == "tool_call" else ():
            if matches(item.tool, [glob]) and any(path and path in item.text for path in came_back):
                found.add((("tools", glob, "reads_file"), "came back"))
    return found


class _StepSides:
    """What one step says of every item of a plan."""

    def __init__(self, plan: Plan, outcome: Outcome, step: Step) -> None:
        self._plan, self._step = plan, step
        self._policy = plan.conversation.policy
        self._candidates = plan.candidates[step.name]
        self._before = plan.conversation.fates_at(plan.at)
        self._new = {d.position for d in plan.new if d.step == step.name}
        self._left = {position for position, _ in outcome.left}
        self._name: RulePath = ("steps", step.name)

    def all(self) -> Iterator[Side]:
        for position, item in enumerate(self._plan.items):
            fate = self._before.get(position)
            # What was decided before is decided; only a `drop` may go further.
            if fate is None or (
                self._step.action.leaves_nothing and not fate.action.leaves_nothing
            ):
                yield from self._of_item(position, item)

    def _of_item(self, position: int, item: Item) -> Iterator[Side]:
        verdict = self._candidates.verdict(position, self._plan.at, self._plan.fates.get)
        if verdict is None:
            yield from self._passed_over(item)
            return
        is_taken = position in self._new
        if verdict.taken and not is_taken and self._arrived_before(position):
            return
        yield from self._selected(item)
        if not is_taken:
            yield self._name, "left"
        treatment = self._candidates.treatment(position)
        if verdict.taken:
            yield from self._ready(item, treatment)
            split = self._candidates.split_by(position, self._plan.at, self._plan.fates.get)
            if split is not None:
                yield (*split, "batches"), "split"
        else:
            yield from self._stays(position, item, verdict)

    def _arrived_before(self, position: int) -> bool:
        """Is it skipped by a step on arrival because it has been here for a while."""
        return self._step.on == "arrival" and position not in self._left

    def _passed_over(self, item: Item) -> Iterator[Side]:
        """A step that names no types does not select what may not be offloaded."""
        select = self._step.select
        in_tools = select.tools is None or matches(item.tool, select.tools)
        if select.types is None and self._step.action.is_bound_by_rules and in_tools:
            allowed, rule = offload_given(_levels(self._policy, item))
            if not allowed:
                yield rule, "refused"

    def _selected(self, item: Item) -> Iterator[Side]:
        select, path = self._step.select, (*self._name, "select")
        lineage = {"*", *self._policy.types.lineage(item.type)}
        for named in lineage.intersection(select.types or ()):
            yield (*path, "types", named), "selected"
        for glob in select.tools or ():
            if matches(item.tool, [glob]):
                yield (*path, "tools", glob), "selected"

    def _ready(self, item: Item, treatment: Treatment) -> Iterator[Side]:
        """An item that leaves, or would if a gate opened."""
        given = _levels(self._policy, item)
        if treatment.threshold is not None:
            yield treatment.threshold.rule, "above"
        if treatment.keep_recent is not None:
            yield treatment.keep_recent_rule, "old"
        if self._step.select.ephemeral:
            yield (*self._name, "select", "ephemeral"), "ephemeral"
        if self._step.action.is_bound_by_rules or self._step.select.types is None:
            yield offload_given(given)[1], "allowed"
        yield nearest_given(given, "pin")[1], "not pinned"

    def _stays(self, position: int, item: Item, verdict: ItemVerdict) -> Iterator[Side]:
        code = verdict.reason.code
        if code in _RECENT:
            if not self._candidates.stays_when_old(position):
                yield verdict.rule, "recent"
                if self._candidates.is_recent_by_candidates(position, self._plan.at):
                    yield (*verdict.rule, "of"), "older"
                if code == "batch_recent":
                    yield (*verdict.rule, "batches"), "together"
        elif code in _STAYS:
            yield verdict.rule, _STAYS[code]
        elif code == "excluded_tool":
            for glob in self._step.select.except_tools:
                if matches(item.tool, [glob]):
                    yield (*self._name, "select", "except_tools", glob), "excepted"
        elif code in _TOO_SMALL:
            yield (*self._name, "must_shrink"), "would not shrink"


def _levels(policy: OffloadPolicy, item: Item) -> list[Level]:
    return levels(policy.policy, policy.types.lineage(item.type), item.tool)
