"""Selection: which items a step may take, and why the others stay.

`ORDER` is the language's order of evaluation. A verdict goes through it from the beginning. To keep
a turn cheap, `Candidates` asks for most of it only once for each item: for what lasts when the item
stops being recent, for what may pass while it waits, and for its draft when nothing holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Literal, NamedTuple, TypeAlias

from policyctx.definitions.items import Item
from policyctx.errors import present
from policyctx.messages.shapes.shape import head_of
from policyctx.planning.compiled import SizeThreshold, Treatment
from policyctx.planning.conversation import Checkpoint, Conversation
from policyctx.planning.decisions import Decision, ItemVerdict, Reason
from policyctx.planning.facts import Facts, Unit
from policyctx.planning.outlook import protection
from policyctx.planning.recency import FateOf, Recency
from policyctx.planning.take import Draft, drafted, freed_tokens, is_replaced
from policyctx.policy.lookup import RulePath, why_never
from policyctx.policy.models import Step

# Why a candidate stays. What nobody may read is not computed: a reason may count tokens.
Why: TypeAlias = "Callable[[], ItemVerdict]"
# What holds a candidate for good: `Treatment.refusal`, a failed result that the step leaves, or a
# size below the threshold.
Lasting: TypeAlias = Literal["refused", "failed", "small"]


class View(NamedTuple):
    """A point of a conversation, and the fate that each item had then."""

    at: Checkpoint
    fate_of: FateOf


class Case(NamedTuple):
    """A candidate of a step, as `ORDER` looks at it."""

    step: Step
    conversation: Conversation
    recency: Recency
    position: int
    item: Item
    treatment: Treatment
    view: View


def _first(case: Case) -> Why | None:
    """`keep_first` counts its message."""
    kept = case.step.select.keep_first
    if kept is None or not is_first(case.item, case.step, case.conversation):
        return None
    rule = ("steps", case.step.name, "select", "keep_first")
    return lambda: _stays(Reason("first", {"kept": kept.messages}), rule)


def is_first(item: Item, step: Step, conversation: Conversation) -> bool:
    """Return whether `keep_first` keeps the message of an item."""
    kept = step.select.keep_first
    return kept is not None and item.message < head_of(conversation.roles) + kept.messages


def _recent(case: Case) -> Why | None:
    """`keep_recent` counts it among the newest."""
    at, rule = case.view.at, case.treatment.keep_recent_rule
    if not case.recency.is_recent(case.position, at):
        return None
    return lambda: _stays(Reason("recent", case.recency.values(case.position, at)), rule)


def _recent_in_batch(case: Case) -> Why | None:
    """A recent candidate was called together with it."""
    other = case.recency.recent_in_batch(case.position, *case.view)
    if other is None:
        return None
    item = case.conversation.items[other]
    treatment = case.conversation.policy.treatment(case.step, item.type, item.tool)
    rule = () if treatment is None else treatment.keep_recent_rule
    return lambda: _stays(Reason("batch_recent"), rule)


def _shown_nowhere(case: Case) -> Why | None:
    """No later result shows it again, and `superseded` wants one that does."""
    by = case.conversation.superseded.by
    if not case.step.select.superseded or by(case.position, case.view.fate_of) is not None:
        return None
    rule = ("steps", case.step.name, "select", "superseded")
    return lambda: _stays(Reason("not_superseded"), rule)


def _protected(case: Case) -> Why | None:
    """The loop still needs it as it is."""
    reason = protection(case.conversation, case.position, case.step, case.view.at)
    return None if reason is None else lambda: _stays(reason)


def _lasting(
    step: Step, item: Item, treatment: Treatment, facts: Facts, left: str | None = None
) -> Lasting | None:
    """Return what holds a candidate as long as the item is as it is; None for nothing.

    `left` is its placeholder, if the step may take that.
    """
    if treatment.refusal is not None:
        return "refused"
    if item.error and not step.select.errors:
        return "failed"
    threshold = treatment.threshold
    if threshold is None:
        return None
    if left is not None:
        return None if facts.length(left, threshold.unit) >= threshold.amount else "small"
    return None if facts.reaches(item, threshold.amount, threshold.unit) else "small"


def _held_for_good(case: Case) -> Why | None:
    """It is refused, failed or small, in this order."""
    step, item, treatment, facts = case.step, case.item, case.treatment, case.conversation.facts
    left = _left(case.view.fate_of(case.position), step)
    lasting = _lasting(step, item, treatment, facts, left)
    if lasting == "refused" and (refusal := treatment.refusal) is not None:
        return lambda: _stays(*refusal)
    if lasting == "failed":
        return lambda: _stays(Reason("failed_result"), ("steps", step.name, "select", "errors"))
    if lasting == "small" and (threshold := treatment.threshold) is not None:
        return lambda: _stays(
            Reason("below_threshold", _sizes(item, threshold, facts, left)), threshold.rule
        )
    return None


def _left(fate: Decision | None, step: Step) -> str | None:
    """Return the placeholder of an item that a step may take in its place."""
    return fate.placeholder if fate is not None and is_replaced(fate, step) else None


def _without_gain(case: Case) -> Why | None:
    """Its placeholder would be no smaller, or it is a placeholder itself."""
    fate = case.view.fate_of(case.position)
    draft = drafted(case.conversation, case.position, case.step, case.treatment, fate)
    if isinstance(draft, Draft):
        return None
    is_rule = draft.code != "placeholder"
    return lambda: _stays(draft, ("steps", case.step.name, "must_shrink") if is_rule else ())


Check: TypeAlias = "Callable[[Case], Why | None]"
# What a candidate may outgrow as the list grows.
PASSING = (_recent, _recent_in_batch, _shown_nowhere, _protected)
# The order of evaluation: a candidate stays for the first of these that applies.
ORDER: tuple[Check, ...] = (_first, *PASSING, _held_for_good, _without_gain)


class Candidates:
    """The items that one step may take from a conversation that grows.

    An item is judged when it stops being recent and nothing holds it back any more; from then on
    it is ready, until a step takes it. `sizes` are those of the ready items that are summed up.
    """

    def __init__(
        self, step: Step, conversation: Conversation, sizes: frozenset[str] = frozenset()
    ) -> None:
        self.step = step
        self.ready: dict[int, Draft] = {}
        """What the step would take if its gates were open, by position."""
        self.sums: Counter[str] = Counter()
        """The sizes of all that is ready, added up."""
        self.recency = Recency(step, conversation)
        self._in, self._sizes = conversation, sizes
        self._first: list[int] = []
        self._waiting: list[int] = []
        self._below: set[int] = set()
        self._unseen: set[int] = set()
        """What waits for a later result that shows it again."""
        self._superseded = 0
        self._looked_at = 0

    def settle(self) -> None:
        """Look at what is new, and make ready each old item that nothing holds back any more."""
        if self.step.select.superseded:
            self._in.superseded.extend(self._in.fates.get)
        self._look_at_new()
        for position in self.recency.aged():
            if (treatment := self._treatment(position)) is not None:
                self._await(position, treatment)
        if self.step.select.superseded:
            self._look_at_superseded()
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        now = View(self._in.checkpoint(), self._in.fates.get)
        for position in waiting:
            treatment = self.treatment(position)
            if self._is_held(position, treatment, now):
                self._waiting.append(position)
            else:
                self._make_ready(position, treatment)

    def _look_at_superseded(self) -> None:
        found = self._in.superseded.found
        for position in self._unseen.intersection(found[self._superseded :]):
            self._unseen.remove(position)
            self._await(position, self.treatment(position))
        self._superseded = len(found)

    def is_superseded(self, position: int, fate_of: FateOf) -> bool:
        """Return whether a later result that stands shows an item again, if the step wants one."""
        if not self.step.select.superseded:
            return True
        return self._in.superseded.by(position, fate_of) is not None

    def note(self, position: int, fate: Decision) -> None:
        """Take note of the new fate of an item."""
        if self.step.select.superseded:
            for earlier in self._in.superseded.shown_by(position):
                if not self.is_superseded(earlier, self._in.fates.get) and self._forget(earlier):
                    self._unseen.add(earlier)
        was_ready = self._forget(position)
        for inner in self._in.inside(position):
            self._forget(inner)
        if was_ready:
            self._make_ready(position, self.treatment(position))
        elif position in self._below and self._may_take(position, fate):
            self._waiting.append(position)
        around = self._in.items[position].inside
        if around is not None and self._forget(around):
            self._make_ready(around, self.treatment(around))

    def first(self) -> int | None:
        """Return the position of the first item that is ready."""
        while self._first and self._first[0] not in self.ready:
            heappop(self._first)
        return self._first[0] if self._first else None

    def verdict(self, position: int, at: Checkpoint, fate_of: FateOf) -> ItemVerdict | None:
        """Judge one item as the list stood `at` that point; None for what is no candidate.

        `fate_of` returns the fate that each item had then.
        """
        treatment = self._treatment(position)
        if treatment is None:
            return None
        case = self._case(position, treatment, View(at, fate_of))
        for check in ORDER:
            if (why := check(case)) is not None:
                return why()
        return self.taken(position, at, fate_of(position))

    def why_kept(self, position: int, at: Checkpoint, fate_of: FateOf) -> Reason | None:
        """Return why the step keeps an item that goes with another one; None where it may go.

        That it is not selected, or small, is no reason then.
        """
        item, treatment = self._in.items[position], self._treatment(position)
        if is_first(item, self.step, self._in):
            return Reason("first", {"kept": present(self.step.select.keep_first).messages})
        if treatment is None:
            why = why_never(self.step, self._in.policy.types.lineage(item.type))
            return None if why is None else Reason("protected", {"why": why})
        case = self._case(position, treatment, View(at, fate_of))
        checks = (_first, _recent, _recent_in_batch, _shown_nowhere)
        held = next(filter(None, (check(case) for check in checks)), None)
        lasting = _lasting(self.step, item, treatment, self._in.facts) if held is None else None
        if lasting in {"refused", "failed"}:
            held = _held_for_good(case)
        reason = None if held is None else held().reason
        return None if reason is None or reason.code == "not_ephemeral" else reason

    def draft_on_arrival(self, position: int, at: Checkpoint) -> Draft | Reason | None:
        """Return the draft for an item that arrives, or why it stays; None if that is for good."""
        item, treatment = self._in.items[position], self._treatment(position)
        if treatment is None or _lasting(self.step, item, treatment, self._in.facts):
            return None
        return protection(self._in, position, self.step, at) or self.draft(position)

    def taken(self, position: int, at: Checkpoint, fate: Decision | None = None) -> ItemVerdict:
        """Return the verdict on a candidate with a fate, if nothing holds it."""
        treatment, item = self.treatment(position), self._in.items[position]
        if self.step.select.superseded:
            by = self._in.superseded.by(position, self._in.fates.get)
            name = "" if by is None else self._in.items[by].item_id
            key: RulePath = ("steps", self.step.name, "select", "superseded")
            return ItemVerdict(taken=True, reason=Reason("superseded", {"by": name}), rule=key)
        recency, threshold = self.recency.values(position, at), treatment.threshold
        if threshold is None or not threshold.amount:  # a threshold of 0 decides nothing
            rule = treatment.keep_recent_rule if recency else ("steps", self.step.name, "select")
            return ItemVerdict(
                taken=True, reason=Reason("old" if recency else "selected", recency), rule=rule
            )
        values = _sizes(item, threshold, self._in.facts, _left(fate, self.step)) | recency
        reason = Reason("old_and_large" if recency else "large", values)
        return ItemVerdict(taken=True, reason=reason, rule=threshold.rule)

    def may_take_later(self, position: int) -> bool:
        """Return whether the step could take an item once it is neither recent nor protected."""
        item, treatment = self._in.items[position], self._treatment(position)
        if treatment is None or not self._in.is_there(position):
            return False
        if is_first(item, self.step, self._in):
            return False
        if not self.is_superseded(position, self._in.fates.get):
            return False
        if not self._outlasts(_lasting(self.step, item, treatment, self._in.facts), position):
            return False
        return isinstance(self.draft(position), Draft)

    def stays_when_old(self, position: int) -> bool:
        """Return whether a candidate stays whatever its age."""
        item, treatment = self._in.items[position], self.treatment(position)
        return (
            is_first(item, self.step, self._in)
            or _lasting(self.step, item, treatment, self._in.facts) is not None
        )

    def treatment(self, position: int) -> Treatment:
        """Return how the step treats a candidate."""
        return present(self._treatment(position))

    def _treatment(self, position: int) -> Treatment | None:
        """Return how the step treats an item; None for what is no candidate."""
        item = self._in.items[position]
        return self._in.policy.treatment(self.step, item.type, item.tool)

    def grown(self, taken: Mapping[int, Decision], fate_of: FateOf) -> Iterator[int]:
        """Yield what was below the threshold before a placeholder larger than it was left."""
        if self.step.action.leaves_nothing or self.step.select.placeholders:
            yield from self._free(sorted(self._below.intersection(taken)), fate_of)

    def released(self, fate_of: FateOf) -> Iterator[int]:
        """Yield what only a recent item held back that is gone according to `fate_of`."""
        yield from self._free(self._waiting, fate_of)

    def draft(self, position: int) -> Draft | Reason:
        """Return the draft for a candidate, or why nothing is gained by taking it."""
        if (ready := self.ready.get(position)) is not None:
            return ready
        fate = self._in.fates.get(position)
        return drafted(self._in, position, self.step, self.treatment(position), fate)

    def is_small(self, position: int, fate: Decision | None) -> bool:
        """Return whether the placeholder that is left of a candidate is below the threshold."""
        if fate is None or fate.placeholder is None:
            return False
        threshold = self.treatment(position).threshold
        if threshold is None:
            return False
        return self._in.facts.length(fate.placeholder, threshold.unit) < threshold.amount

    def _case(self, position: int, treatment: Treatment, view: View) -> Case:
        item = self._in.items[position]
        return Case(self.step, self._in, self.recency, position, item, treatment, view)

    def _look_at_new(self) -> None:
        """Let each candidate that is new in the list wait; `keep_recent` counts it first."""
        items, treatment_of = self._in.items, self._in.policy.treatment
        for position in range(self._looked_at, len(items)):
            item = items[position]
            treatment = treatment_of(self.step, item.type, item.tool)
            if treatment is None or is_first(item, self.step, self._in):
                continue
            if treatment.keep_recent is None:
                self._await(position, treatment)
            else:
                self.recency.add(position, treatment, treatment.keep_recent)
        self._looked_at = len(items)

    def _await(self, position: int, treatment: Treatment) -> None:
        """Let an item that is not recent wait until nothing holds it, unless it stays for good."""
        if not self.is_superseded(position, self._in.fates.get):
            self._unseen.add(position)
            return
        lasting = _lasting(self.step, self._in.items[position], treatment, self._in.facts)
        if lasting == "small":
            self._below.add(position)
        if self._outlasts(lasting, position):
            self._waiting.append(position)

    def _outlasts(self, lasting: Lasting | None, position: int) -> bool:
        """Whether a candidate may leave though this holds it, and goes further than its fate."""
        fate = self._in.fates.get(position)
        # A placeholder that was left of a small item may be larger than the threshold.
        may_leave = lasting is None or (lasting == "small" and fate is not None)
        return may_leave and self._may_take(position, fate)

    def _make_ready(self, position: int, treatment: Treatment) -> None:
        fate = self._in.fates.get(position)
        if not self._may_take(position, fate):
            return
        draft = drafted(self._in, position, self.step, treatment, fate)
        if isinstance(draft, Reason):
            return
        self.ready[position] = draft
        if self._sizes:
            self._measure(position, treatment, draft)
            heappush(self._first, position)

    def _measure(self, position: int, treatment: Treatment, draft: Draft) -> None:
        """Add an item's sizes to the sums; those of one inside another are a part of that one's."""
        if self._in.items[position].inside in self.ready:
            return
        for inner in self._in.inside(position):
            if (part := self.ready.get(inner)) is not None:
                self.sums.subtract(part.sizes)
                self.ready[inner] = part._replace(sizes={})
        sizes = self._sizes_now(position, treatment, draft)
        self.ready[position] = Draft(draft.wanted_path, sizes, draft.left)
        self.sums.update(sizes)

    def _sizes_now(self, position: int, treatment: Treatment, draft: Draft) -> dict[str, int]:
        units: tuple[Unit, ...] = ("tokens", "chars")
        sizes = {str(unit): self._in.size(position, unit) for unit in units if unit in self._sizes}
        if "freed" in self._sizes:
            sizes["freed"] = freed_tokens(self._in, position, self.step, treatment, draft)
        return sizes

    def _forget(self, position: int) -> bool:
        draft = self.ready.pop(position, None)
        if draft is not None:
            self.sums.subtract(draft.sizes)
        return draft is not None

    def _may_take(self, position: int, fate: Decision | None) -> bool:
        """Whether the step's action goes further than the fate, and enough is left of the item."""
        if self._in.items[position].inside in self._in.fates:
            return False  # it went with the result that it is in
        if fate is None:
            return True
        return fate.gives_way_to(self.step) and not self.is_small(position, fate)

    def _free(self, positions: Iterable[int], fate_of: FateOf) -> Iterator[int]:
        """Yield those that nothing holds and of which enough is left."""
        now = View(self._in.checkpoint(), fate_of)
        for position in positions:
            is_held = self._is_held(position, self.treatment(position), now)
            if not is_held and self._may_take(position, fate_of(position)):
                yield position

    def _is_held(self, position: int, treatment: Treatment, view: View) -> bool:
        case = self._case(position, treatment, view)
        return any(check(case) is not None for check in PASSING)


def _sizes(
    item: Item, threshold: SizeThreshold, facts: Facts, left: str | None
) -> dict[str, str | int]:
    """Return the values of a reason that compares an item, or what is left, with its threshold."""
    unit = threshold.unit
    size = facts.size(item, unit) if left is None else facts.length(left, unit)
    return {"size": size, "threshold": threshold.amount, "unit": threshold.unit}


def _stays(reason: Reason, rule: RulePath = ()) -> ItemVerdict:
    return ItemVerdict(taken=False, reason=reason, rule=rule)
