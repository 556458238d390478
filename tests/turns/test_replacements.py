"""The list that compactions make of a caller's list: its sources, and markers that move in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policyctx.compaction.assembly import WrittenMessage
from policyctx.definitions.items import Message
from policyctx.definitions.items import Path as Place
from policyctx.messages.markers import markers_of, unmarked, with_markers
from policyctx.planning.ledger import Ledger
from policyctx.turns.replacement import Places, Replaced, Replacement
from policyctx.turns.replacements import Replacements
from tests.conversations import user
from tests.policies import policy

MARKER = {"type": "ephemeral"}
TASK, MORE = user("the task"), user("go on")


def blocks(*texts: str) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def place(block: int) -> Place:
    return ("content", block)


def marked(message: Message, block: int) -> Message:
    return with_markers(message, {place(block): MARKER})


def compaction(summary: str) -> Replacement:
    return Replacement(
        skipped=0,
        count=1,
        sha256="",
        written=(WrittenMessage("user", summary, "compaction_summary"),),
        summary=summary,
    )


def made(summary: str, left: Message, places: Places | None = None) -> Replaced:
    """A list of two: the first is replaced, and the second edited if it has places."""
    edited = {} if places is None else {1: places}
    return Replaced([user(summary), left], (None, range(1, 2)), edited)


def seen_by(replacements: Replacements, messages: list[Message]) -> Sequence[Message]:
    return replacements.seen(messages, Ledger(), policy("steps: []\n"))


WITHOUT_FIRST = {place(1): place(0), place(2): place(1)}


@pytest.fixture
def replacements() -> Replacements:
    """Those of a list whose last message lost the first of three blocks."""
    found = Replacements()
    given = [TASK, blocks("a", "b", "c")]
    assert seen_by(found, given) is given
    found.add(compaction("one"), given, made("one", blocks("b", "c"), WITHOUT_FIRST))
    return found


def test_a_marker_moves_in_the_edited_message(replacements: Replacements) -> None:
    given = [TASK, marked(blocks("a", "b", "c"), 2)]
    assert seen_by(replacements, given) == [user("one"), marked(blocks("b", "c"), 1)]
    assert seen_by(replacements, [*map(unmarked, given), MORE])[1:] == [blocks("b", "c"), MORE]
    assert seen_by(replacements, [TASK, marked(given[1], 0), MORE])[1:] == [blocks("b", "c"), MORE]
    assert replacements.sources_of((range(3),)) == (None, range(1, 3))


def test_places_are_followed_through_a_second_compaction(replacements: Replacements) -> None:
    given = [TASK, blocks("a", "b", "c")]
    seen_by(replacements, given)
    replacements.add(compaction("two"), given, made("two", blocks("c"), {place(1): place(0)}))
    seen = seen_by(replacements, [TASK, marked(given[1], 2)])
    assert seen == [user("two"), marked(blocks("c"), 0)]
    assert replacements.sources_of((range(2),)) == (None, range(1, 2))
    assert markers_of(seen_by(replacements, [TASK, marked(given[1], 1)])[1]) == {}


def test_an_edited_message_stays_edited_in_a_second_compaction(replacements: Replacements) -> None:
    given = [TASK, blocks("a", "b", "c")]
    seen_by(replacements, given)
    replacements.add(compaction("two"), given, made("two", blocks("b", "c")))
    assert seen_by(replacements, [*given, MORE]) == [user("two"), blocks("b", "c"), MORE]
    seen = seen_by(replacements, [TASK, marked(given[1], 1), MORE])
    assert seen == [user("two"), marked(blocks("b", "c"), 0), MORE]


def test_a_list_that_differs_in_more_is_read_anew(replacements: Replacements) -> None:
    given = [TASK, blocks("a", "b", "other")]
    assert seen_by(replacements, given) is given
    assert replacements.sources_of((range(2),)) == (range(2),)
