"""What a `compact` step would replace, or why it replaces nothing; the summary comes later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.planning.partition import partition, tokens_of
from policyctx.planning.reasons import Reason
from policyctx.policy.lookup import compaction_of
from policyctx.policy.values import Share
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.planning.facts import Facts
    from policyctx.planning.outlook import Outlook
    from policyctx.planning.partition import Partition
    from policyctx.policy.models import Step
    from policyctx.policy.models.compaction import Compaction, Summary

_EMPTY = Reason("nothing_to_summarise")
_NOTHING_NEW = Reason("nothing_new")


@dataclass(frozen=True, slots=True)
class Replacing:
    """The messages that a compaction is to replace."""

    step: str
    settings: Compaction
    parts: Partition
    messages: int
    """How many are replaced, of those that are still in the list."""
    tokens: int
    """What they take as the steps before have left them."""
    pinned: tuple[str, ...] = ()
    """Texts among them that the summary carries over as they are."""


def replacing(step: Step, outlook: Outlook) -> Replacing | Reason:
    """Return what a step whose gates are open replaces, or why there is nothing to do."""
    policy = outlook.conversation.policy
    settings = compaction_of(policy.policy, step)
    parts = partition(outlook, settings, policy.kept(settings.keep_recent))
    there = [i for i in parts if not outlook.is_removed(i)]
    if not there:
        return _EMPTY
    new = [message for message in there if not outlook.conversation.is_written(message)]
    if not new:
        return _NOTHING_NEW
    tokens = sum(tokens_of(message, outlook) for message in there)
    came = sum(tokens_of(message, outlook) for message in new)
    needed = -(-tokens * settings.min_new.numerator // settings.min_new.denominator)
    # Nothing is held back but what was summarised before.
    if came < tokens and came < needed:
        return Reason("hardly_new", {"new": came, "tokens": tokens, "needed": needed})
    pinned = tuple(_pinned(parts, outlook))
    if (too_large := _too_large(pinned, tokens, settings.summary, outlook.facts)) is not None:
        return too_large
    return Replacing(step.name, settings, parts, len(there), tokens, pinned)


def _too_large(
    pinned: tuple[str, ...], tokens: int, settings: Summary, facts: Facts
) -> Reason | None:
    """Why a summary of so many tokens of history could not carry what is pinned, if it could not.

    Its limit is `must_shrink_to`, and `max_words` where that is off. The same text counts once.
    """
    texts, limit = dict.fromkeys(pinned), settings.must_shrink_to
    if isinstance(limit, Share):
        unit, most = "tokens", limit.of(tokens)
        pins = sum(facts.length(text, "tokens") for text in texts)
    else:
        unit, most = "words", settings.max_words
        pins = sum(map(words_in, texts))
    if pins <= most:
        return None
    return Reason("pins_too_large", {"pins": pins, "limit": most, "unit": unit})


def _pinned(parts: Partition, outlook: Outlook) -> Iterator[str]:
    conversation = outlook.conversation
    for position, item in enumerate(conversation.items):
        is_there = item.message in parts and item.inside is None and outlook.is_there(position)
        if is_there and conversation.policy.pinned(item.type, item.tool) is not None:
            yield item.text
