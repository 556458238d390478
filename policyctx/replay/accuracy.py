"""How well the size of a session's next prompt is foreseen, against what was billed for it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from policyctx.tokens.correction import Correction
from policyctx.tokens.provider_models import provider_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.replay.recording import Recording
    from policyctx.tokens.counter import TokenCounter

# Before this call a session has hardly anything to learn from.
SETTLED_FROM = 10


@dataclass(frozen=True, slots=True)
class Prediction:
    """One call's prompt, in tokens: as it was counted, foreseen from the calls before, billed."""

    call: int
    """From 1 on, among those with usage."""
    counted: int
    predicted: int
    billed: int

    @property
    def error(self) -> float:
        """The share of the bill by which the prediction was off, above 0 when it was too high."""
        return (self.predicted - self.billed) / self.billed


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors of predictions without their sign, as shares of what was billed."""

    calls: int
    median: float
    within: float
    """What 95 % of the calls are within."""
    largest: float


def predictions(recording: Recording, counter: TokenCounter) -> Iterator[Prediction]:
    """Foresee each billed call of a session from those before it, as `Session.observe` would."""
    correction = Correction()
    billed = 0
    for call, context in zip(recording.calls, recording.contexts(), strict=True):
        if call.usage is None or not call.usage.prompt:
            continue
        billed += 1
        model = provider_model(context, call.language_model)
        counted = counter.count_messages(context, call.tools, call.system, model=model)
        yield Prediction(billed, counted, correction.corrected(counted), call.usage.prompt)
        correction = correction.observed(counted, call.usage)


def accuracy(made: Sequence[Prediction]) -> Accuracy | None:
    """Sum up the predictions from the tenth call on; None where a session has no more than nine."""
    errors = sorted(abs(one.error) for one in made if one.call >= SETTLED_FROM)
    if not errors:
        return None
    within = errors[min(len(errors) - 1, int(len(errors) * 0.95))]
    return Accuracy(len(errors), median(errors), within, errors[-1])
