"""Which sides of which rules one plan made decide.

A rule decided where it made the difference: a threshold for an item that nothing before it in the
language's order of evaluation has taken away, `keep_recent` for an item that would leave if it
were old. A gate that stayed closed changes nothing in what its step says of an item.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from policyctx.definitions.items import Item, PlainValue
from policyctx.errors import present
from policyctx.paths import safe_part
from policyctx.patterns import name_in_marks, names_of_marks
from policyctx.planning.compiled import OffloadPolicy, Treatment
from policyctx.planning.decisions import Decision, ItemVerdict
from policyctx.planning.plan import Outcome, Plan
from policyctx.policy.lookup import Level, RulePath, levels, matches, nearest_given, offload_given
from policyctx.policy.models import Step
from policyctx.policy.models.gates import COMPARISONS, GATES
from policyctx.policy.nodes import Node, elements_of, pairs_of, steps_of
from policyctx.turns.result import Compacted

Sides: TypeAlias = tuple[str, ...]

# What the report says of a side that no scenario has covered. "Kept" means "not taken".
MISSING = {
    "above": "no item reached it",
    "allowed": "it let no item be taken",
    "along": "no item was taken with its unit",
    "below": "no item was below it",
    "came back": "no file was restored because of it",
    "carried": "the user's newest message was never replaced",
    "chose": "it never chose which items were taken",
    "closed": "the condition was never false",
    "ephemeral": "no item with a keep_recent was taken",
    "escaped": "no name had a character to escape",
    "excepted": "it excepted no item",
    "failed": "no write failed",
    "left": "it kept no item",
    "matched": "it matched no item",
    "not pinned": "it let no item be taken",
    "not reached": "the step never took items without reaching it",
    "old": "no older item was taken",
    "older": "it kept no item that `of: all` would not keep",
    "opened": "the condition was never true",
    "others": "no item without a keep_recent was kept",
    "pinned": "it kept no item",
    "reached": "it never stopped the step",
    "recent": "it kept no item",
    "redacted": "it matched no text",
    "refused": "it kept no item",
    "saved": "no file was saved",
    "selected": "it selected no item",
    "shortened": "no input was shortened or emptied",
    "shrank": "no item became smaller",
    "split": "no item was taken that `whole` would keep",
    "taken": "no file name was in use already",
    "together": "it kept no item that `split` would not keep",
    "took": "no item was taken",
    "used": "it was never used",
    "would not shrink": "it kept no item",
    "kept": "it kept no message",
    "replaced": "it replaced no placeholder",
    "superseded": "it took no item",
}

# The keys of a wording by which it shows something of the text.
EXCERPT_KEYS = ("head", "tail", "outline", "max_line_chars", "cut_mark", "gap", "line_numbers")
_STORE: Mapping[str, Sides] = {
    "path": ("saved",),
    "escape": ("escaped",),
    "on_conflict": ("taken",),
    "on_failure": ("failed",),
}
# The sides of the keys of a selection that do something if they are true, or not.
_IF_TRUE: dict[str, Sides] = {
    "placeholders": ("replaced",),
    "superseded": ("superseded", "others"),
    "ephemeral": ("ephemeral", "others"),
}
_IF_GIVEN: dict[str, Sides] = {"keep_first": ("kept",), "with_input": ("shortened",)}
Side: TypeAlias = tuple[RulePath, str]

# The side of the rule that a verdict goes by, for reasons by which an item stays.
_STAYS = {
    "below_threshold": "below",
    "failed_result": "left",
    "first": "kept",
    "not_ephemeral": "others",
    "not_superseded": "others",
    "offload_off": "refused",
    "pinned": "pinned",
}
_RECENT = frozenset({"recent", "batch_recent"})
_TOO_SMALL = frozenset({"nothing_long", "would_not_shrink"})


@dataclass(frozen=True, slots=True)
class CoverageRule:
    """A key that decides: its path, where it is written, and its sides.

    A step, and an element of a list, is named by what it is, an alternative of `when` by its
    index. `value` is what a person sees: empty for a map or a list.
    """

    path: RulePath
    file: str
    line: int
    value: str
    sides: Sides


def rules_of(tree: Node) -> tuple[CoverageRule, ...]:
    """Return the rules of a policy's tree, in the order of the reference."""
    found = [*_level(tree, ())]
    for section in ("items", "tools"):
        for name, node in pairs_of(tree.child(section)):
            found += _level(node, (section, name))
    found += _compaction(tree.child("compaction"), ("compaction",))
    for name, node in pairs_of(tree.child("redact")):
        # An inherited pattern is covered where it is written.
        if node.named_at.file == tree.place.file:
            found.append(_rule(("redact", name), node, ("redacted",), shows_value=False))
    for key, node in pairs_of(tree.child("store")):
        if key in _STORE:
            found.append(_rule(("store", key), node, _STORE[key]))
    for step in steps_of(tree):
        found += _step(step)
    return tuple(found)


def _compaction(node: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    """Yield the rules of a map that says how history is summarised."""
    for key, child in pairs_of(node):
        if key == "archive" and child.value:
            yield _rule((*path, key), child, ("saved",))
        if key == "keep_newest_user_message" and child.value:
            yield _rule((*path, key), child, ("carried",))
        if key == "wording":
            for name, text in pairs_of(child):
                if text.value:
                    yield _rule((*path, key, name), text, ("used",))


def _step(step: Node) -> Iterator[CoverageRule]:
    name = present(step.child("name"))
    path: RulePath = ("steps", name.value)
    yield _rule(path, name, ("took", "left"), shows_value=False)
    yield from _gates(step.child("when"), (*path, "when"))
    yield from _select(step.child("select"), (*path, "select"))
    yield from _wording(step.child("placeholder"), (*path, "placeholder"))
    yield from _compaction(step.child("compaction"), (*path, "compaction"))
    if (shrinks := step.child("must_shrink")) is not None:
        sides = ("shrank", "would not shrink") if shrinks.value else ("took",)
        yield _rule((*path, "must_shrink"), shrinks, sides)


def _gates(when: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    alternatives = elements_of(when)
    for index, gates in enumerate(alternatives):
        above = (*path, str(index)) if len(alternatives) > 1 else path
        yield from _comparisons(gates, above)


def _comparisons(node: Node, path: RulePath, within: str = "") -> Iterator[CoverageRule]:
    """Yield the rules of all gates of a map: each comparison, or a gate that has none."""
    for key, child in pairs_of(node):
        name, at = f"{within}{key}", (*path, key)
        if name not in GATES:
            yield from _comparisons(child, at, f"{name}.")
            continue
        limits = [(one, limit) for one, limit in pairs_of(child) if one in COMPARISONS]
        for one, limit in limits:
            yield _rule((*at, one), limit, ("opened", "closed"))
        if not limits:
            yield _rule(at, child, ("opened", "closed"))


def _select(select: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    if select is None:
        return
    yield from _level(select, path)
    for key, side in (("types", "selected"), ("tools", "selected"), ("except_tools", "excepted")):
        for entry in elements_of(select.child(key)):
            yield _rule((*path, key, str(entry.value)), entry, (side,), shows_value=False)
    for key, node in pairs_of(select):
        if sides := _sides_of_select(key, node, stops=select.child("until") is not None):
            yield _rule((*path, key), node, sides)


def _sides_of_select(key: str, node: Node, *, stops: bool) -> Sides:
    if key == "errors":
        return () if node.value else ("left",)
    if key in _IF_TRUE:
        return _IF_TRUE[key] if node.value else ()
    if key in _IF_GIVEN:
        return () if node.plain() in (None, False, [], {"messages": 0}) else _IF_GIVEN[key]
    if key == "unit":
        return () if node.value == "item" else ("along",)
    # Without an `until` a step takes all that is ready, in whatever order.
    if key == "order":
        return ("chose",) if stops else ()
    return ("reached", "not reached") if key == "until" else ()


def _level(node: Node, path: RulePath) -> Iterator[CoverageRule]:
    """Yield the rules of a map that may give rule keys: the top level, a type, a tool, a select."""
    for key, child in pairs_of(node):
        if key == "placeholder":
            yield from _wording(child, (*path, key))
        elif sides := _sides_of_level(key, child.plain()):
            yield _rule((*path, key), child, sides)
            if key == "keep_recent" and (batches := child.child("batches")) is not None:
                side = "split" if batches.value == "split" else "together"
                yield _rule((*path, key, "batches"), batches, (side,))
            of = child.child("of") if key == "keep_recent" else None
            if of is not None and of.value == "candidates":
                yield _rule((*path, key, "of"), of, ("older",))


def _sides_of_level(key: str, value: PlainValue) -> Sides:
    if key in {"min_tokens", "min_chars"}:
        return ("above",) if value in {0, "0%"} else ("above", "below")
    if key == "keep_recent":
        counts = value.values() if isinstance(value, dict) else [value]
        return ("old",) if any(count in {0, "0%"} for count in counts) else ("recent", "old")
    if key == "pin":
        return ("pinned",) if value else ("not pinned",)
    if key == "offload":
        return ("allowed",) if value else ("refused",)
    return {"match": ("matched",), "reads_file": ("came back",)}.get(key, ())


def _wording(node: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    if node is None:
        return
    yield _rule(path, node, ("used",))
    for key, child in pairs_of(node):
        if key in EXCERPT_KEYS and child.value:
            yield _rule((*path, key), child, ("used",))


def _rule(path: RulePath, node: Node, sides: Sides, *, shows_value: bool = True) -> CoverageRule:
    is_scalar = not isinstance(node.value, dict | list)
    value = node.value if shows_value and is_scalar else ""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return CoverageRule(path, node.named_at.file, node.named_at.line, shown, sides)


def decided_sides(plan: Plan) -> set[Side]:
    """Return the sides of rules that a plan made decide; some may be of keys that have defaults."""
    policy = plan.conversation.policy
    steps = {step.name: step for step in policy.all_steps}
    found = set(_types(plan, policy)).union(_secrets(plan, policy))
    for decision in plan.new:
        found.update(_of_decision(decision, steps[decision.step], policy))
    for outcome in plan.outcomes:
        if (step := steps.get(outcome.step)) is None:
            continue  # a compaction on demand, without a step of the policy
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


def _secrets(plan: Plan, policy: OffloadPolicy) -> Iterator[Side]:
    found = {name for item in plan.items for name in names_of_marks(item.text)}
    for name in policy.policy.redact:
        if name_in_marks(name) in found:
            yield ("redact", name), "redacted"


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
        if decision.wording.template.fields & {"head", "tail", "outline", "gap"}:
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
        yield gate.rule, "opened" if gate.opens else "closed"
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
            # What was decided before is decided, unless this step may go further.
            if fate is None or fate.gives_way_to(self._step):
                yield from self._of_item(position, item)

    def _of_item(self, position: int, item: Item) -> Iterator[Side]:
        verdict = self._candidates.verdict(position, self._plan.at, self._plan.fates.get)
        if verdict is None:
            yield from self._passed_over(item)
            return
        is_taken = position in self._new
        is_skipped = self._step.on == "arrival" and position not in self._left
        if verdict.taken and not is_taken and is_skipped:  # it has been here for a while
            return
        yield from self._selected(item)
        if is_taken and position in self._before:
            yield (*self._name, "select", "placeholders"), "replaced"
        if not is_taken:
            yield self._name, "left"
        treatment = self._candidates.treatment(position)
        if verdict.taken:
            yield from self._ready(item, treatment)
            split = self._candidates.recency.split_by(position, self._plan.at, self._plan.fates.get)
            if split is not None:
                yield (*split, "batches"), "split"
        else:
            yield from self._stays(position, item, verdict)

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
        if self._step.select.superseded:
            yield (*self._name, "select", "superseded"), "superseded"
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
                if self._candidates.recency.is_recent_by_candidates(position, self._plan.at):
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
