"""The calls that would write a policy's summaries; a replay makes none of them."""

from __future__ import annotations

from policyctx.compaction.prompt import instructions, instructions_in_place
from policyctx.definitions.summarizers import BUILT_IN_SUMMARIZERS, NONE
from policyctx.planning.compact import Replacing
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Facts
from policyctx.policy.models.compaction import Summary
from policyctx.policy.values import Share
from policyctx.pricing.dollars import CallPrices, prices_of
from policyctx.pricing.rows import row_of
from policyctx.replay.simulated import SummaryCall
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
    sent: int = 0,
) -> SummaryCall | None:
    """Return the call that would have written a summary; None where no model is asked.

    Its prompt is the instructions and what is replaced, shortened to `max_input`. Its output is
    taken to be as large as `summary`, which the text alone gave. It costs `summary.price`, else
    `model.price`, else what `summary.model` costs on that day, else what the recorded model costs.

    With `reuse_cache` its prompt is the session's own: what the last call was `sent`, in tokens, is
    read from the cache unless that has expired, and the rest is written to it.
    """
    step = policy.compacting_step
    if step is None:
        return None
    settings = policy.compaction(step).summary
    if settings.by in (OFFLINE, NONE):
        return None
    if settings.reuse_cache:
        own = facts.tokens_beside + replaced.tokens
        has_expired = facts.idle is not None and facts.idle > terms.ttl
        read = 0 if terms.cache is None or has_expired else min(own, sent)
        written = own - read if terms.cache is not None and terms.cache.bills_writes else 0
        prompt = own + facts.length(instructions_in_place(settings), "tokens")
        named = row_of(settings.model, at=at) if "model" in settings.model_fields_set else None
        prices = _prices(settings, policy, terms, None if named is None else named.prices)
        output = facts.length(summary, "tokens")
        return SummaryCall(number, prompt, output, prices, read=read, written=written)
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
