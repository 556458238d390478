"""Gates: whether a step runs, the numbers that are compared, and how each number is measured."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from policyctx.definitions.items import PlainValue
from policyctx.planning.facts import Added, Unit
from policyctx.planning.outlook import Outlook
from policyctx.planning.select import Candidates
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import Step
from policyctx.policy.models.gates import (
    COMPARISONS,
    CallsGate,
    Comparison,
    CountGate,
    IdleGate,
    ItemsGate,
    Kind,
    Limits,
    Nothing,
    RatioGate,
    TokensGate,
    gates_in,
)
from policyctx.policy.values import Duration, Share
from policyctx.pricing.dollars import RATIOS, payback
from policyctx.tokens.usage import Correction

Number: TypeAlias = int | float | Fraction
# The share of a limit of tokens under which a compaction must bring the list.
_SAFELY_UNDER = Fraction(95, 100)


class StepGate(NamedTuple):
    """One gate of a step, its value in the policy, and the kind of its number."""

    name: str
    given: Any
    alternative: int
    kind: Kind
    limits: tuple[tuple[str, Comparison, object], ...]
    """Each comparison by its name, and the limit as it is in the policy."""


class Weighed(NamedTuple):
    """A number, and in words what it was made from."""

    number: Number
    sides: str


class GateAnswer(NamedTuple):
    """What a gate says that compares no number: whether it opens, and why."""

    opens: bool
    why: str


# The number of a gate, or why there is none to compare; a gate without comparisons answers.
Measured: TypeAlias = Number | Weighed | Nothing | GateAnswer


class GateVerdict(NamedTuple):
    """One comparison of one gate of a step, or the answer of a gate that compares no number.

    `number` is None when there was nothing to compare, and `note` says why; otherwise it says what
    the number was made from, where that is known. An answer has no comparison and no number, and
    its reason is the note. Of the comparisons of one `alternative` (a map of `when`) all
    must open, of the alternatives one.
    """

    step: str
    gate: str
    comparison: str
    number: Number | None
    limit: Number
    opens: bool
    kind: Kind
    alternative: int = 0
    note: str = ""
    is_one_of: bool = False
    """Whether `when` has several alternatives."""

    @property
    def rule(self) -> RulePath:
        """The key that gives the limit, below the index of one of several alternatives."""
        index = (str(self.alternative),) if self.is_one_of else ()
        comparison = (self.comparison,) if self.comparison else ()
        return ("steps", self.step, "when", *index, *self.gate.split("."), *comparison)

    @property
    def sentence(self) -> str:
        """The numbers compared, for people: `tokens: 12,000 < 160,000`."""
        if self.number is None:
            why = Nothing(self.note).sentence if self.comparison else self.note
            return f"{self.gate}: {why}"
        comparison = COMPARISONS[self.comparison]
        sign = comparison.sign if self.opens else comparison.opposite
        number, limit = _shown(self.number, self.kind), _shown(self.limit, self.kind)
        note = f" ({self.note})" if self.note else ""
        return f"{self.gate}: {number} {sign} {limit}{note}"


def gates_of(step: Step) -> tuple[StepGate, ...]:
    """Return the gates of a step, in order."""
    return tuple(
        StepGate(name, given, alternative, gate.kind, _limits(given))
        for alternative, gates in enumerate(step.when)
        for name, given, gate in gates_in(gates)
    )


def opens(verdicts: Sequence[GateVerdict]) -> bool:
    """Return whether all gates of one alternative open; a step without gates is always open."""
    opened, closed = set[int](), set[int]()
    for verdict in verdicts:
        (opened if verdict.opens else closed).add(verdict.alternative)
    return not verdicts or not opened <= closed


def sizes_of_selection(step: Step) -> frozenset[str]:
    """Return the sizes of its selection that a step's gates need: tokens, chars, freed."""
    found = set()
    for gates in step.when:
        for _, given, gate in gates_in(gates):
            if gate.sizes:
                found.add(given.of if gate.sizes == "of" else gate.sizes)
    return frozenset(found)


def _limits(given: PlainValue) -> tuple[tuple[str, Comparison, object], ...]:
    if not isinstance(given, Limits):
        return ()
    found = ((name, one, getattr(given, name)) for name, one in given.noted(Comparison).items())
    return tuple((name, one, wanted) for name, one, wanted in found if wanted is not None)


def _holds(number: Number, comparison: Comparison, limit: Number) -> bool:
    if number == limit:
        return not comparison.is_open
    return (number > limit) == comparison.is_lower


def _shown(number: Number, kind: Kind) -> str:
    if kind == "ratio":
        return f"{float(number) * 100:.4g} %"
    if kind == "seconds":
        return f"{float(number):,.0f} s"
    whole = int(number) if number == int(number) else float(number)
    return f"{whole:,} tokens" if kind == "tokens" else f"{whole:,}"


class AfterReplacing(NamedTuple):
    """The sizes that a step's gates compare, without what its compaction would replace."""

    verdicts: tuple[tuple[GateVerdict, int], ...] = ()
    """Those of the alternatives that are open, each with the number that is left.

    Empty where one of these has no gate on the size of the list, which a compaction could close.
    """
    tokens: int = 0
    """Of the request, as they are counted."""
    correction: Correction = Correction()

    def still_open(self, added: Added) -> list[tuple[GateVerdict, int]]:
        """Return what stays open once this is added, with the numbers; nothing if the gates close.

        Tokens hardly under their limit would open the gate again with the next message.
        """
        found = [(one, self._number(one, left, added)) for one, left in self.verdicts]
        closed = {one.alternative for one, number in found if not _is_about_open(one, number)}
        return [(one, number) for one, number in found if one.alternative not in closed]

    def tokens_with(self, added: Added) -> int:
        """Return the tokens of the request once this is added, corrected by usage."""
        return self.correction.corrected(self.tokens + added.tokens)

    def _number(self, verdict: GateVerdict, left: int, added: Added) -> int:
        if verdict.gate == "tokens":
            return self.tokens_with(added)
        return left + getattr(added, verdict.gate, 0)


def _is_about_open(verdict: GateVerdict, number: int) -> bool:
    share = _SAFELY_UNDER if verdict.gate == "tokens" else 1
    return _holds(number, COMPARISONS[verdict.comparison], verdict.limit * share)


class Measures:
    """The numbers that the gates of one step compare, in the list as earlier steps leave it.

    Each gate has a method of its name, which takes the gate's value in the policy; the one of
    `since_last.turns` is `since_last_turns`. A measure must not cost more as the list grows: the
    selection is summed up as items become ready.
    """

    def __init__(self, outlook: Outlook, candidates: Candidates) -> None:
        self._outlook, self._candidates = outlook, candidates
        self._in = outlook.conversation
        self._step = candidates.step.name

    @property
    def _ttl(self) -> int:
        """The seconds that the provider's cache lives."""
        return self._in.policy.model.cache.seconds(self._outlook.facts.cache_ttl)

    def verdicts(self, gates: Sequence[StepGate]) -> tuple[GateVerdict, ...]:
        """Compare every gate of the step with its limits; a step without gates has no verdicts."""
        found = list[GateVerdict]()
        is_one_of = len(self._candidates.step.when) > 1
        for name, given, alternative, kind, limits in gates:
            measured: Measured = getattr(self, name.replace(".", "_"))(given)
            number: Number | None
            if isinstance(measured, GateAnswer):
                answered = "", None, 0, measured.opens, kind, alternative, measured.why
                found.append(GateVerdict(self._step, name, *answered, is_one_of))
                continue
            assert limits, f"the gate `{name}` compares nothing, so it has to answer"  # noqa: S101
            if isinstance(measured, Nothing):
                number, note = None, str(measured)
            else:
                number, note = measured if isinstance(measured, Weighed) else (measured, "")
            about = kind, alternative, note, is_one_of
            for comparison, how, wanted in limits:
                limit = self._limit(wanted, kind)
                holds = number is not None and _holds(number, how, limit)
                compared = comparison, number, limit, holds
                found.append(GateVerdict(self._step, name, *compared, *about))
        return tuple(found)

    def _limit(self, wanted: object, kind: Kind) -> Number:
        """Return a limit as a number; a share is of the calls that were made, or of the window."""
        if isinstance(wanted, Share):
            model, replies = self._in.policy.model, self._in.reading.reply_starts
            whole = len(replies) if kind == "calls" else self._outlook.facts.window(model)
            numerator = wanted.percent.numerator * whole
            denominator = wanted.percent.denominator * 100
            quotient, rest = divmod(numerator, denominator)
            return Fraction(numerator, denominator) if rest else quotient
        if wanted == "cache_ttl":
            return self._ttl
        if isinstance(wanted, Duration):
            return wanted.seconds
        assert isinstance(wanted, int | Fraction)  # noqa: S101 - the models have no other
        return wanted

    def tokens(self, _: TokensGate) -> int:
        """Return the tokens of the list, with what is sent beside it."""
        return self._outlook.tokens()

    def messages(self, _: CountGate) -> int:
        """Return the number of messages in the list."""
        return self._outlook.messages

    def turns(self, _: CountGate) -> int:
        """Return the number of turns in the list."""
        starts = set(self._in.reading.turn_starts) if self._outlook.removed else set()
        return self._in.turns() - len(starts & self._outlook.removed)

    def items(self, gate: ItemsGate) -> int:
        """Return the number of items of the gate's types in the list."""
        is_counted = self._counted_by(gate.types)
        counted = sum(n for item_type, n in self._in.counts.items() if is_counted(item_type))
        gone = (i for i in self._touched() if not self._outlook.is_there(i))
        types_gone = (self._in.items[i].type for i in gone if self._in.is_there(i))
        return counted - sum(map(is_counted, types_gone))

    def _counted_by(self, types: Iterable[str]) -> Callable[[str], bool]:
        lineage, counted = self._in.policy.types.lineage, frozenset(types)
        return lambda item_type: not counted.isdisjoint(("*", *lineage(item_type)))

    def left_without(
        self,
        gates: Sequence[StepGate],
        verdicts: Sequence[GateVerdict],
        messages: Sequence[int],
        tokens: int,
    ) -> AfterReplacing:
        """Return what the open gates would measure without these messages of so many tokens."""
        facts = self._outlook.facts
        without = tokens + facts.tokens_around(len(messages))
        left_tokens = self._outlook.tokens(corrected=False) - without
        given = {(gate.alternative, gate.name): gate.given for gate in gates}
        closed = {verdict.alternative for verdict in verdicts if not verdict.opens}
        is_open = [verdict for verdict in verdicts if verdict.alternative not in closed]
        left = [
            (verdict, number)
            for verdict in is_open
            if (number := self._without(verdict, given, messages)) is not None
        ]
        told = {verdict.alternative for verdict, _ in left}
        is_told = told == {verdict.alternative for verdict in is_open}
        return AfterReplacing(tuple(left) if is_told else (), left_tokens, facts.correction)

    def _without(
        self, verdict: GateVerdict, given: Mapping[tuple[int, str], Any], messages: Sequence[int]
    ) -> int | None:
        """Return what a gate would count; None for a gate that does not count the list."""
        number = int(verdict.number or 0)
        match verdict.gate:
            case "tokens":
                return number
            case "messages":
                return number - len(messages)
            case "turns":
                return number - sum(map(self._in.reading.begins_turn, messages))
            case "items":
                is_counted = self._counted_by(given[verdict.alternative, "items"].types)
                positions = (i for message in messages for i in self._in.items_of(message))
                there = (self._in.items[i].type for i in positions if self._outlook.is_there(i))
                return number - sum(map(is_counted, there))
        return None

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

    def pays_back(self, _: CallsGate) -> Weighed | Nothing:
        """Return the model calls until the saving has paid for rewriting the changed prefix."""
        facts, freed = self._outlook.facts, self._sum("freed")
        if freed <= 0:
            return Nothing.SAVED
        rewritten = max(0, self._cached_behind() - (freed - self._freed_unsent()))
        prices = facts.prices(self._in.policy.model)
        # Later calls have the prompt that the edit leaves; its size only matters with tiers.
        rates = RATIOS if prices is None else prices.rates(self._outlook.tokens() - freed)
        found = payback(rewritten=rewritten, freed=freed, rates=rates, ttl=self._ttl)
        if found.calls == math.inf:
            return Nothing.SAVED
        scale, sign = facts.correction.scale, "" if prices is None else "$"
        cost, saved = (scale * float(one) / 1_000_000 for one in (found.cost, found.saved))
        unit = " times the price of a million tokens of input" if prices is None else ""
        sides = f"costs {sign}{cost:.4f}, saves {sign}{saved:.4f} a call{unit}"
        return Weighed(int(found.calls), sides)

    def since_last_messages(self, _: CountGate) -> int:
        """Return the number of messages that came since the step last took something."""
        end = self._end_of_last()
        removed = sum(message > end for message in self._outlook.removed)
        return self._in.messages_behind(end) - removed

    def since_last_turns(self, _: CountGate) -> int:
        """Return the number of turns that began since the step last took something."""
        end = self._end_of_last()
        removed = (m for m in self._outlook.removed if m > end and self._in.reading.begins_turn(m))
        return self._in.turns_behind(end) - sum(1 for _ in removed)

    def since_last_tokens(self, _: TokensGate) -> int:
        """Return the tokens of the messages that came since the step last took something."""
        return self._outlook.tokens_behind(self._end_of_last())

    def failed(self, step: str) -> GateAnswer:
        """Return whether a step was due in this turn and made no summary."""
        if step in self._outlook.failed:
            return GateAnswer(opens=True, why=f"{step} made no summary")
        return GateAnswer(opens=False, why=f"no summary of {step} has failed in this turn")

    def _end_of_last(self) -> int:
        """Return the message that the list ended with when the step last took something, or -1."""
        return self._in.marks.message(self._step)

    def _cached_behind(self) -> int:
        """Return the tokens behind the first change that the provider's cache still holds."""
        cache, idle = self._in.policy.model.cache, self._outlook.facts.idle or 0
        tally = self._in.tally("tokens")
        sent = tally.before(self._sent())
        first = self._candidates.first()
        if first is None or idle > self._ttl or sent < cache.min_tokens:
            return 0
        return max(0, sent - tally.before(self._in.items[first].message))

    def _sent(self) -> int:
        """Return the number of messages, from the first on, that were sent to a model.

        A session that knows of no call takes what is before the newest reply to be sent just now,
        so that no edit is made at a loss.
        """
        is_known = self._outlook.facts.idle is not None
        return self._in.sent if is_known else self._in.reading.before_reply

    def _freed_unsent(self) -> int:
        """Return the tokens that the step would free of messages that no model was sent."""
        new = range(self._in.items_of(self._sent()).start, len(self._in.items))
        ready = (draft for i in new if (draft := self._candidates.ready.get(i)) is not None)
        return sum(draft.sizes.get("freed", 0) for draft in ready)

    def _sum(self, size: str) -> int:
        """Return the sum over what is ready, after what the plan has taken already."""
        unit: Unit = "chars" if size == "chars" else "tokens"
        candidates, total = self._candidates, self._candidates.sums[size]
        if not self._outlook.taken:
            return total
        for position in self._touched():
            if (draft := candidates.ready.get(position)) is not None and draft.sizes:
                total -= draft.sizes[size]
                small = candidates.is_small(position, self._outlook.taken.get(position))
                if not small and not self._outlook.is_out_for(position, candidates.step):
                    lost = self._in.size(position, unit) - self._outlook.size(position, unit)
                    total += draft.sizes[size] - lost
        return total

    def _touched(self) -> set[int]:
        """Return what the plan has taken, with the items inside and around."""
        taken = self._outlook.taken
        around = {d.item.inside for d in taken.values() if d.item.inside is not None}
        return around.union(taken, *map(self._in.inside, taken))
