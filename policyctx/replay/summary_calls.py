"""The calls that would write a policy's summaries; a replay makes none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.compaction.prompt import instructions
from policyctx.policy.models.compaction import BUILT_IN_SUMMARIZERS
from policyctx.policy.values import Share
from policyctx.pricing.dollars import prices_of
from policyctx.pricing.rows import row_of
from policyctx.replay.simulated import SummaryCall

if TYPE_CHECKING:
    from policyctx.planning.compact import Replacing
    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.planning.facts import Facts
    from policyctx.policy.models.compaction import Summary
    from policyctx.pricing.dollars import CallPrices
    from policyctx.replay.terms import CallTerms

# Makes a summary from the text alone.
OFFLINE = "extractive"


def summary_call(
    number: int,
    replaced: Replacing,
    summary: str,
    *,
    policy: OffloadPolicy,
    terms: CallTerms,
    facts: Facts,
    at: float | None,
) -> SummaryCall | None:
    """Return the call that would have written a summary; None where no model is asked.

    Its prompt is the instructions and what is replaced, shortened to `max_input`. Its output is
    taken to be as large as `summary`, which the text alone gave. It costs `summary.price`, else
    `model.price`, else what `summary.model` costs on that day, else what the recorded model costs.
    """
    step = policy.compacting_step
    if step is None:
        return None
    settings = policy.compaction(step).summary
    if settings.by == OFFLINE:
        return None
    row = row_of(settings.model, at=at) if settings.by in BUILT_IN_SUMMARIZERS else None
    window = terms.window if row is None else row.context_window
    most = settings.max_input
    room = most.of(window) if isinstance(most, Share) else most
    prompt = facts.length(instructions(settings), "tokens") + min(replaced.tokens, int(room))
    prices = _prices(settings, policy, terms, None if row is None else row.prices)
    return SummaryCall(number, prompt, facts.length(summary, "tokens"), prices)


def _prices(
    settings: Summary, policy: OffloadPolicy, terms: CallTerms, of_model: CallPrices | None
) -> CallPrices | None:
    written = settings.price or policy.model.price
    if written is not None:
        return prices_of(written)
    return terms.prices if of_model is None else of_model
