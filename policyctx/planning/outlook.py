"""`Outlook`: the list as it would be with what a plan has decided so far."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from policyctx.definitions.gates import Nothing
from policyctx.planning.paths import File, FreePaths
from policyctx.planning.prices import calls_to_pay_back

if TYPE_CHECKING:
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.decisions import Decision
    from policyctx.planning.facts import Facts, Unit
    from policyctx.planning.gates import Measured, StepGate
    from policyctx.planning.selection import Candidates
    from policyctx.policy.models.gates import CountGate, IdleGate, ItemsGate, RatioGate, TokensGate


class Outlook:
    """A conversation, which stays as it is, beside the decisions that a plan has come to."""

    def __init__(self, conversation: Conversation, facts: Facts) -> None:
        self.conversation, self.facts = conversation, facts
        self.at = conversation.checkpoint()
        self.taken: dict[int, Decision] = {}
        self.removed: set[int] = set()
        """Messages that the plan leaves nothing of."""
        self.gone = 0
        """How often the plan has left nothing of an item, or of one inside of it, by itself."""
        self._paths = FreePaths(beyond=conversation.paths)
        self._lost: dict[Unit, int] = {}

    def take(self, decision: Decision) -> None:
        """Count a decision as made."""
        for unit in self._lost:
            before = self.size(decision.position, unit)
            self._lost[unit] += before - self._left(decision, unit)
        self.taken[decision.position] = decision
        held = next(self.conversation.inside(decision.position), None) is not None
        self.gone += decision.action.leaves_nothing or decision.item.inside is not None or held

    def fate(self, position: int) -> Decision | None:
        """Return what became of an item, by this plan or before; None while it stands."""
        return self.taken.get(position) or self.conversation.fates.get(position)

    def is_out(self, position: int, *, even_of_placeholders: bool = False) -> bool:
        """Is there nothing of the item left for a step to take."""
        inner = self.conversation.items[position].inside
        fate = self.fate(position)
        if fate is not None:
            return not even_of_placeholders or fate.action.leaves_nothing
        return inner is not None and self.fate(inner) is not None

    def is_there(self, position: int) -> bool:
        """Is anything of the item left in the list, of one inside of another by itself."""
        fate, inside = self.fate(position), self.conversation.items[position].inside
        if inside is not None and self.fate(inside) is not None:
            return False
        return fate is None or not fate.action.leaves_nothing

    def is_removed(self, message: int) -> bool:
        """Is nothing left of a message."""
        return message in self.removed or message in self.conversation.removed

    def size(self, position: int, unit: Unit) -> int:
        """Return what the item takes in the list as it would be."""
        if (decision := self.taken.get(position)) is not None:
            return self._left(decision, unit)
        size = self.conversation.size(position, unit)
        inner = [i for i in self.conversation.inside(position) if i in self.taken]
        lost = sum(self.conversation.size(i, unit) - self.size(i, unit) for i in inner)
        return size - lost

    def total(self, unit: Unit) -> int:
        """Return the size of all messages."""
        if unit not in self._lost:
            outermost = [d for d in self.taken.values() if not self._is_inside_of_taken(d)]
            self._lost[unit] = sum(
                self.conversation.size(d.position, unit) - self._left(d, unit) for d in outermost
            )
        return self.conversation.tally(unit).total - self._lost[unit]

    def tokens(self) -> int:
        """Return the tokens of the list with what is sent beside it, corrected by usage."""
        return self.facts.correction.corrected(self.total("tokens") + self.facts.tokens_beside)

    def file(self, wanted_path: str) -> File:
        """Return the file expected for a path; only the store knows which names the disk has."""
        path = wanted_path
        if self.conversation.policy.policy.store.on_conflict == "suffix":
            path = self._paths.take(wanted_path)
        return File(path, f"{self.facts.root}/{path}")

    def _is_inside_of_taken(self, decision: Decision) -> bool:
        return decision.item.inside is not None and decision.item.inside in self.taken

    def _left(self, decision: Decision, unit: Unit) -> int:
        return 0 if decision.placeholder is None else self.facts.length(decision.placeholder, unit)


class Measures:
    """What the gates of one step compare, in the list as the steps before it would leave it.

    Each gate has a method of its name, which takes what the policy gives for the gate.
    """

    def __init__(self, outlook: Outlook, candidates: Candidates) -> None:
        self._outlook, self._candidates = outlook, candidates
        self._in = outlook.conversation

    def of(self, gate: StepGate) -> Measured:
        """Return the number that a gate compares, or why there is none."""
        measured: Measured = getattr(self, gate.name)(gate.given)
        return measured

    def tokens(self, _: TokensGate) -> int:
        """Return the tokens of the list, with what is sent beside it."""
        return self._outlook.tokens()

    def messages(self, _: CountGate) -> int:
        """Return the number of messages in the list."""
        removed = len(self._in.removed) + len(self._outlook.removed)
        return self._in.reading.message_count - removed

    def turns(self, _: CountGate) -> int:
        """Return the number of turns in the list."""
        starts = set(self._in.reading.turn_starts) if self._outlook.removed else set()
        return self._in.turns() - len(starts & self._outlook.removed)

    def items(self, gate: ItemsGate) -> int:
        """Return the number of items of the gate's types in the list."""
        lineage = self._in.policy.types.lineage

        def is_counted(item_type: str) -> bool:
            return not {"*", *lineage(item_type)}.isdisjoint(gate.types)

        counted = sum(n for item_type, n in self._in.counts.items() if is_counted(item_type))
        gone = (i for i in self._touched() if not self._outlook.is_there(i))
        types_gone = (self._in.items[i].type for i in gone if self._in.is_there(i))
        return counted - sum(map(is_counted, types_gone))

    def ratio(self, gate: RatioGate) -> Fraction | Nothing:
        """Return the size of all that the step selects, divided by that of all messages."""
        selected, everything = self._sum(gate.of), self._outlook.total(gate.of)
        if everything == 0:
            return Nothing.MEASURED
        return Fraction(selected, everything) if selected else Nothing.SELECTED

    def frees(self, _: TokensGate) -> int:
        """Return the tokens that the step would free, net of placeholders."""
        return self._sum("freed")

    def idle(self, _: IdleGate) -> float | Nothing:
        """Return the seconds since the last model call."""
        idle = self._outlook.facts.idle
        return Nothing.CALLED if idle is None else idle

    def pays_back(self, _: CountGate) -> float | Nothing:
        """Return the model calls until the saving has paid for rewriting the changed prefix."""
        model, freed = self._in.policy.policy.model, self._sum("freed")
        rewritten = max(0, self._cached_behind() - (freed - self._freed_unsent()))
        calls = calls_to_pay_back(rewritten=rewritten, freed=freed, model=model)
        return Nothing.SAVED if calls == math.inf else calls

    def _cached_behind(self) -> int:
        """Tokens behind the first change that the provider's cache still holds."""
        cache, idle = self._in.policy.policy.model.cache, self._outlook.facts.idle
        tally = self._in.tally("tokens")
        sent = tally.before(self._in.sent)
        first = self._candidates.first()
        if first is None or idle is None or idle > cache.ttl.seconds or sent < cache.min_tokens:
            return 0
        return max(0, sent - tally.before(self._in.items[first].message))

    def _freed_unsent(self) -> int:
        """Tokens that the step would free of what no model has been sent."""
        new = range(self._in.items_of(self._in.sent).start, len(self._in.items))
        ready = (draft for i in new if (draft := self._candidates.ready.get(i)) is not None)
        return sum(draft.sizes.get("freed", 0) for draft in ready)

    def _sum(self, size: str) -> int:
        """The sum over what is ready, as what the plan has taken already leaves it."""
        unit: Unit = "chars" if size == "chars" else "tokens"
        candidates, total = self._candidates, self._candidates.sums[size]
        to_drop = candidates.step.action.leaves_nothing
        for position in self._touched():
            if (draft := candidates.ready.get(position)) is not None and draft.sizes:
                total -= draft.sizes[size]
                small = candidates.is_small(position, self._outlook.taken.get(position))
                if not small and not self._outlook.is_out(position, even_of_placeholders=to_drop):
                    lost = self._in.size(position, unit) - self._outlook.size(position, unit)
                    total += draft.sizes[size] - lost
        return total

    def _touched(self) -> set[int]:
        """What the plan has taken, with the items inside of it and the one around it."""
        taken = self._outlook.taken
        around = {d.item.inside for d in taken.values() if d.item.inside is not None}
        return around.union(taken, *map(self._in.inside, taken))
