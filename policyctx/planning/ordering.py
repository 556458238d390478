"""In which order a step takes what is ready, and when it has done enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.planning.reasons import Reason
from policyctx.policy.values import Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.planning.facts import Unit
    from policyctx.planning.outlook import Outlook
    from policyctx.policy.models import Step
    from policyctx.policy.models.gates import Until as UntilModel


def in_order(positions: Iterable[int], step: Step, outlook: Outlook) -> list[list[int]]:
    """Return the positions in the step's order, in portions; `until` is asked before each.

    A portion is one item, under `by_type` all items of one of the types.
    """
    oldest = sorted(positions)
    if step.select.order == "by_type":
        return _by_type(oldest, step, outlook)
    if step.select.order == "largest":
        unit = _unit(step, outlook)
        oldest.sort(key=lambda position: -outlook.size(position, unit))
    return [[position] for position in oldest]


def _by_type(oldest: Sequence[int], step: Step, outlook: Outlook) -> list[list[int]]:
    conversation = outlook.conversation
    named = step.select.types or ()
    portions: dict[int, list[int]] = {}
    for position in oldest:
        lineage = conversation.policy.types.lineage(conversation.items[position].type)
        rank = next((i for i, name in enumerate(named) if name in lineage), len(named))
        portions.setdefault(rank, []).append(position)
    return [portions[rank] for rank in sorted(portions)]


def _unit(step: Step, outlook: Outlook) -> Unit:
    """The unit of the nearest threshold of all: a policy in characters counts no tokens."""
    for level in (step.select, outlook.conversation.policy.policy):
        if level.min_chars is not None:
            return "chars"
        if level.min_tokens is not None:
            return "tokens"
    return "tokens"


class Until:
    """When a step has done enough; of a list of conditions any, in a map all."""

    def __init__(self, step: Step, outlook: Outlook) -> None:
        self._conditions = step.select.until or ()
        self._outlook = outlook
        self._freed = self._since = 0

    def resume(self) -> None:
        """Begin, or go on behind what others have taken since the pause."""
        self._since = self._total()

    def pause(self) -> None:
        """Let others take; what they free is not counted as the step's."""
        self._freed += self._since - self._total()

    def reached(self) -> Reason | None:
        """Return how it was reached, None while the step is to go on."""
        for condition in self._conditions:
            told = self._told(condition)
            if told is not None:
                return Reason("until_reached", {"until": told})
        return None

    def _told(self, condition: UntilModel) -> str | None:
        window = self._outlook.conversation.policy.policy.model.context_window
        told = []
        if condition.tokens is not None:
            tokens, under = self._outlook.tokens(), _exact(condition.tokens.under, window)
            if tokens >= under:
                return None
            told.append(f"tokens: {tokens:,} < {float(under):,.10g}")
        if condition.frees is not None:
            freed = self._freed + self._since - self._total()
            if freed < (least := _exact(condition.frees.at_least, window)):
                return None
            told.append(f"frees: {freed:,} >= {float(least):,.10g} tokens")
        return "; ".join(told)

    def _total(self) -> int:
        return self._outlook.total("tokens") if self._conditions else 0


def _exact(amount: int | Share, window: int) -> float:
    return amount.percent * window / 100 if isinstance(amount, Share) else amount  # type: ignore[return-value]
