"""Gates: whether a step runs, with the numbers compared."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from policyctx.policy.models.gates import COMPARISONS
from policyctx.policy.values import Duration, Share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.planning.facts import Unit
    from policyctx.policy.lookup import RulePath
    from policyctx.policy.models import Model, Step
    from policyctx.policy.models.gates import Gates

Number: TypeAlias = int | float | Fraction
# What a number is: it says how to show it.
Kind: TypeAlias = Literal["tokens", "count", "ratio", "seconds"]

_SIGNS = {
    "at_least": (">=", "<"),
    "over": (">", "<="),
    "under": ("<", ">="),
    "at_most": ("<=", ">"),
}
_NOTES = {
    "nothing_measured": "there is nothing in the messages",
    "nothing_selected": "nothing is selected",
    "no_call_yet": "no model was called yet",
    "never": "nothing would be saved",
}


class Numbers(Protocol):
    """What gates compare: the list as it is now, and what the step would take."""

    def tokens(self) -> int:
        """Tokens of the list, with what is sent beside it."""
        ...

    def messages(self) -> int:
        """Messages in the list."""
        ...

    def turns(self) -> int:
        """Turns in the list."""
        ...

    def items(self, types: Sequence[str]) -> int:
        """Items of these types in the list."""
        ...

    def selected(self, unit: Unit) -> int:
        """The size of all that the step selects."""
        ...

    def everything(self, unit: Unit) -> int:
        """The size of all messages."""
        ...

    def frees(self) -> int:
        """Tokens that the step would free, net of placeholders."""
        ...

    def idle(self) -> float | None:
        """Seconds since the last model call, None before the first."""
        ...

    def pays_back(self) -> float:
        """Model calls until the saving has paid for writing the changed prefix anew."""
        ...


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """One comparison of one gate of a step.

    `number` is None when there was nothing to compare, and `note` says why. Of the comparisons of
    one `alternative` (a map of `when`) all must open, of the alternatives one.
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

    @property
    def rule(self) -> RulePath:
        """The key that gives the limit."""
        return ("steps", self.step, "when", self.gate, self.comparison)

    @property
    def sentence(self) -> str:
        """The numbers compared, for people: `tokens: 12,000 < 160,000`."""
        if self.number is None:
            return f"{self.gate}: {_NOTES[self.note]}"
        sign = _SIGNS[self.comparison][not self.opens]
        return (
            f"{self.gate}: {_shown(self.number, self.kind)} {sign} {_shown(self.limit, self.kind)}"
        )


class Gate(NamedTuple):
    """One gate of a step, with what each of its comparisons has for a limit."""

    name: str
    given: Gates
    limits: tuple[tuple[str, Number], ...]
    alternative: int


def gates_of(step: Step, model: Model) -> tuple[Gate, ...]:
    """Return the gates of a step, in order, with their limits for this model."""
    return tuple(
        Gate(name, gates, tuple(_limits(comparisons, model)), alternative)
        for alternative, gates in enumerate(step.when)
        for name in type(gates).model_fields
        if (comparisons := getattr(gates, name)) is not None
    )


def gate_verdicts(step: str, gates: Sequence[Gate], numbers: Numbers) -> tuple[GateVerdict, ...]:
    """Compare the numbers with every gate of a step; no gates, no verdicts."""
    return tuple(verdict for gate in gates for verdict in _compared(step, gate, numbers))


def opens(verdicts: Sequence[GateVerdict]) -> bool:
    """Do all gates of one alternative open; a step without gates is always open."""
    closed = {verdict.alternative for verdict in verdicts if not verdict.opens}
    return not verdicts or any(verdict.alternative not in closed for verdict in verdicts)


def measures(step: Step) -> frozenset[str]:
    """Return which sizes of what a step selects its gates ask for: tokens, chars, freed."""
    found = {gates.ratio.of for gates in step.when if gates.ratio is not None}
    asks = any(gates.frees or gates.pays_back for gates in step.when)
    return frozenset({*found, "freed"} if asks else found)


def _compared(step: str, gate: Gate, numbers: Numbers) -> Iterator[GateVerdict]:
    number, kind, note = _measured(gate.name, gate.given, numbers)
    for comparison, limit in gate.limits:
        holds = number is not None and _holds(number, comparison, limit)
        yield GateVerdict(
            step, gate.name, comparison, number, limit, holds, kind, gate.alternative, note
        )


def _limits(comparisons: object, model: Model) -> Iterator[tuple[str, Number]]:
    for comparison in COMPARISONS:
        wanted = getattr(comparisons, comparison)
        if wanted is not None:
            yield comparison, _limit(wanted, model)


def _measured(gate: str, gates: Gates, numbers: Numbers) -> tuple[Number | None, Kind, str]:
    if gate == "ratio":
        return _ratio(gates, numbers)
    if gate == "items":
        assert gates.items is not None  # noqa: S101 - the caller has seen to it
        return numbers.items(gates.items.types), "count", ""
    if gate == "idle":
        idle = numbers.idle()
        return idle, "seconds", "no_call_yet" if idle is None else ""
    if gate == "pays_back":
        calls = numbers.pays_back()
        return (None, "count", "never") if calls == float("inf") else (calls, "count", "")
    number: int = getattr(numbers, gate)()
    return number, "tokens" if gate in {"tokens", "frees"} else "count", ""


def _ratio(gates: Gates, numbers: Numbers) -> tuple[Number | None, Kind, str]:
    assert gates.ratio is not None  # noqa: S101 - the caller has seen to it
    everything = numbers.everything(gates.ratio.of)
    selected = numbers.selected(gates.ratio.of)
    if everything == 0:
        return None, "ratio", "nothing_measured"
    if selected == 0:
        return None, "ratio", "nothing_selected"
    return Fraction(selected, everything), "ratio", ""


def _limit(wanted: object, model: Model) -> Number:
    if isinstance(wanted, Share):
        limit = wanted.percent * model.context_window / 100
        return int(limit) if limit == int(limit) else limit
    if wanted == "cache_ttl":
        return model.cache.ttl.seconds
    if isinstance(wanted, Duration):
        return wanted.seconds
    assert isinstance(wanted, int | Fraction)  # noqa: S101 - the models have no other
    return wanted


def _holds(number: Number, comparison: str, limit: Number) -> bool:
    if comparison == "at_least":
        return number >= limit
    if comparison == "over":
        return number > limit
    return number < limit if comparison == "under" else number <= limit


def _shown(number: Number, kind: Kind) -> str:
    if kind == "ratio":
        return f"{float(number) * 100:.4g} %"
    if kind == "seconds":
        return f"{float(number):,.0f} s"
    whole = int(number) if number == int(number) else float(number)
    return f"{whole:,} tokens" if kind == "tokens" else f"{whole:,}"
