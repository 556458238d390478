"""What the usage of a recording's calls teaches a session that takes the recording over."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from policyctx.replay.sent_list import MessageSizes, SentList
from policyctx.tokens.correction import Correction

if TYPE_CHECKING:
    from policyctx.planning.facts import Facts
    from policyctx.replay.recording import Recording


def learnt(recording: Recording, calls: int, facts: Facts) -> Correction:
    """Return what `Session.observe` would have learnt from the first `calls` calls.

    The lists are counted as they were recorded, with the counter and the scale of `facts`; each
    message is counted once. Without usage the result is a new `Correction`.
    """
    made = recording.calls[:calls]
    correction = Correction()
    if all(call.usage is None for call in made):
        return correction
    sizes = MessageSizes()
    sizes.measure((message for call in made for message in call.new), facts)
    whole = SentList(sizes)
    for call, context in zip(made, islice(recording.contexts(), calls), strict=True):
        beside = tuple(part for part in (call.system, call.tools) if part)
        sent = whole.sent(context, replace(facts, beside=beside))
        if call.usage is not None:
            correction = correction.observed(sent.tokens, call.usage)
    return correction
