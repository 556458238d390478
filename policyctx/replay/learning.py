"""What the usage of a recording's calls teaches a session that takes the recording over."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from policyctx.replay.billing import call_shares
from policyctx.replay.sent_list import MessageSizes, SentList
from policyctx.tokens.correction import Correction

if TYPE_CHECKING:
    from policyctx.planning.facts import Facts
    from policyctx.replay.recording import Recording


def learnt(recording: Recording, calls: int, facts: Facts) -> Correction:
    """Return what `Session.observe` would have learnt from the first `calls` calls.

    `recording` is whole: where only a sum was billed, each call has its share of it. The lists are
    counted as they were recorded, with the counter and the scale of `facts`; each message is
    counted once. Without usage the result is a new `Correction`.
    """
    made = recording.calls[:calls]
    correction = Correction()
    if recording.bill is None and all(call.usage is None for call in made):
        return correction
    counted = made if recording.bill is None else recording.calls
    sizes = MessageSizes()
    sizes.measure((message for call in counted for message in call.new), facts)
    shares = call_shares(recording, sizes, facts)
    whole = SentList(sizes)
    for call, context, share in zip(
        made, islice(recording.contexts(), calls), shares, strict=False
    ):
        beside = tuple(part for part in (call.system, call.tools) if part)
        sent = whole.sent(context, replace(facts, beside=beside))
        billed = call.usage if call.usage is not None and call.usage.prompt else share
        if billed is not None and billed.prompt:
            correction = correction.observed(sent.tokens, billed)
    return correction
