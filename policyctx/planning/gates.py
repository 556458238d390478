"""Gates: whether a step runs, with the numbers compared."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from policyctx.definitions.gates import Nothing
from policyctx.policy.models.gates import COMPARISONS, GATES
from policyctx.policy.values import Duration, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from policyctx.definitions.gates import Comparison, Kind
    from policyctx.policy.lookup import RulePath
    from policyctx.policy.models import Model, Step
    from policyctx.policy.models.gates import Limits

Number: TypeAlias = int | float | Fraction


class StepGate(NamedTuple):
    """One gate of a step: what the policy gives for it, and the limit of each comparison."""

    name: str
    given: Limits[Any]
    limits: tuple[tuple[str, Number], ...]
    alternative: int


# The number of a gate, or why there is none to compare.
Measured: TypeAlias = Number | Nothing


class GateVerdict(NamedTuple):
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
            return f"{self.gate}: {Nothing(self.note).sentence}"
        comparison = COMPARISONS[self.comparison]
        sign = comparison.sign if self.opens else comparison.opposite
        return (
            f"{self.gate}: {_shown(self.number, self.kind)} {sign} {_shown(self.limit, self.kind)}"
        )


def gates_of(step: Step, model: Model) -> tuple[StepGate, ...]:
    """Return the gates of a step, in order, with their limits for this model."""
    return tuple(
        StepGate(name, given, tuple(_limits(given, model)), alternative)
        for alternative, gates in enumerate(step.when)
        for name in GATES
        if (given := getattr(gates, name)) is not None
    )


def gate_verdicts(
    step: str, gates: Sequence[StepGate], measured: Callable[[StepGate], Measured]
) -> tuple[GateVerdict, ...]:
    """Compare every gate of a step with its limits; a step without gates has no verdicts."""
    return tuple(verdict for gate in gates for verdict in _compared(step, gate, measured(gate)))


def opens(verdicts: Sequence[GateVerdict]) -> bool:
    """Return whether all gates of one alternative open; a step without gates is always open."""
    closed = {verdict.alternative for verdict in verdicts if not verdict.opens}
    return not verdicts or any(verdict.alternative not in closed for verdict in verdicts)


def sizes_of_selection(step: Step) -> frozenset[str]:
    """Return which sizes of what a step selects its gates need: tokens, chars, freed."""
    found = set()
    for gates in step.when:
        for name, gate in GATES.items():
            given = getattr(gates, name)
            if given is not None and gate.sizes:
                found.add(given.of if gate.sizes == "of" else gate.sizes)
    return frozenset(found)


def _compared(step: str, gate: StepGate, measured: Measured) -> Iterator[GateVerdict]:
    number, note = (None, str(measured)) if isinstance(measured, Nothing) else (measured, "")
    kind = GATES[gate.name].kind
    for comparison, limit in gate.limits:
        holds = number is not None and _holds(number, COMPARISONS[comparison], limit)
        yield GateVerdict(
            step, gate.name, comparison, number, limit, holds, kind, gate.alternative, note
        )


def _limits(given: Limits[Any], model: Model) -> Iterator[tuple[str, Number]]:
    for comparison in COMPARISONS:
        wanted = getattr(given, comparison)
        if wanted is not None:
            yield comparison, _limit(wanted, model)


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
