"""What the user turned down: a proposal right before an objection stands for nothing.

"No, put it in the header" leaves of the agent's message before it what was found, and takes what
was proposed. An order that forbids something takes back only what was proposed or announced.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.revisions import subject_words
from policyctx.compaction.extractive.statements import AGENT, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said

_QUESTION_MARKS = ("?", "？")
# Words of a question that does not say what it is about.
_LITTLE = 2


class Objected(NamedTuple):
    """What is left after the user's objections."""

    left: list[Said]
    rejected: frozenset[int]
    """The agent's messages that the user turned down as a whole."""


def objected(said: Sequence[Said], cues: Cues) -> Objected:
    """Return the sentences without the agent's that the user turned down right after."""
    messages = [list(together) for _, together in groupby(said, key=_message)]
    left: list[Said] = []
    rejected: set[int] = set()
    for i, together in enumerate(messages):
        reply = messages[i + 1] if i + 1 < len(messages) else []
        first = next((one for one in reply if not one.pasted), None)
        if first is None or first.speaker != USER or together[-1].speaker != AGENT:
            left += together
            continue
        folded = f"{first.text.casefold().strip()}."
        objects = cues.objections.match(folded) is not None
        if not objects and cues.refusals.match(folded) is None:
            left += together
            continue
        # "No" to a question answers it, unless that asks for what was said before it.
        last = together[-1].text
        asks = last.rstrip().endswith(_QUESTION_MARKS)
        offers = cues.proposals.found_in(last) or len(subject_words(last, cues)) <= _LITTLE
        whole = objects and (offers or not asks)
        left += [one for one in together if not _turned_down(one, cues, whole=whole)]
        if whole:
            rejected.add(together[-1].message)
    return Objected(left, frozenset(rejected))


def _turned_down(one: Said, cues: Cues, *, whole: bool) -> bool:
    if one.speaker != AGENT:
        return False
    return one.plans or cues.proposals.found_in(one.text) or (whole and not one.tells)


def _message(one: Said) -> int:
    return one.message
