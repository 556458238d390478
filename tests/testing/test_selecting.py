"""Selectors: which items a phrase in a step means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.testing.contents import MessageBuilder, pieces
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.kinds import COUNT_WORDS
from policyctx.testing.selecting import EXAMPLES, TurnEvent, selection
from policyctx.testing.world import World
from tests.policies import policy

# The results by their ids: a to e of Bash, f and g of Read.
BASH, READ = "abcde", "fg"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world with one turn: seven results after their calls, in 15 messages."""
    world = World(tmp_path / "context", folders=[tmp_path])
    talk = MessageBuilder()
    given: list[dict[str, Any]] = [talk.message("user", "the task")]
    for tool, ids in (("Bash", BASH), ("Read", READ)):
        for id_ in ids:
            given += talk.messages(pieces(f'a result "{id_}" of 20 characters from {tool}'))
    session = Session(policy("steps: []\n"), root=tmp_path / "context")
    world._session = session
    world.turns.append(TurnEvent("model call", given, list(given), session.plan(given)))
    return world


def ids_of(world: World, phrase: str) -> str:
    return "".join(fate.item.tool_use_id or "-" for fate in world.fates_of(phrase))


@pytest.mark.parametrize(
    ("phrase", "ids"),
    [
        ("the first result", "a"),
        ("the second result", "b"),
        ("the 3rd result", "c"),
        ("the first two results", "ab"),
        ("the last three results", "efg"),
        ("the two newest Bash results", "de"),
        ("the two Read results", "fg"),
        ("all the seven results", "abcdefg"),
        ("the fourth result", "d"),
        ("the last result", "g"),
        ("the newest Bash result", "e"),
        ("the 2nd newest Bash result", "d"),
        ("the 2nd last result", "f"),
        ("the 3rd oldest result", "c"),
        ("the first 2 results", "ab"),
        ("the oldest 2 results", "ab"),
        ("the 2 oldest Bash results", "ab"),
        ("the last 3 results", "efg"),
        ("the 2 newest Bash results", "de"),
        ("all the first 2 results", "ab"),
        ("only the first 2 results", "ab"),
        ("the 2nd to 4th results", "bcd"),
        ("the 2nd to the 4th result", "bcd"),
        ("the 2nd–4th results", "bcd"),
        ("the 2nd-4th Bash results", "bcd"),
        ("the 1st and 2nd results", "ab"),
        ("the 1st and 2nd result", "ab"),
        ("the 1st, 3rd and 5th results", "ace"),
        ("the 1st, 3rd, and 5th results", "ace"),
        ("the first and last result", "ag"),
        ("the first and the last Bash results", "ae"),
        ("the 1st and 4th to 5th results", "ade"),
        ("the 5th and 1st and 1st results", "ae"),
        ("the first 2 kept results", "ab"),
        ("the first 2 results from Read", "fg"),
        ("the 2nd Re* result", "g"),
        ("the 2 Read results", "fg"),
        ("all 2 Read results", "fg"),
        ("all the 7 results", "abcdefg"),
        ('the results "b" and "a"', "ab"),
        ("messages 1 to 3", "-aa"),
        ("messages 1–3", "-aa"),
        ("messages 1, 3 and 5", "-ab"),
        ("message 3", "a"),
    ],
)
def test_a_phrase_selects_items(world: World, phrase: str, ids: str) -> None:
    assert ids_of(world, phrase) == ids


@pytest.mark.parametrize(
    ("phrase", "found"),
    [
        ("the 8th result", "only 7 of them"),
        ("the first 6 Bash results", "only 5 of them"),
        ("the last 3 Read results", "only 2 of them"),
        ("the 2nd to 9th results", "only 7 of them"),
        ("the 1st and 9th results", "only 7 of them"),
        ("the 8th newest result", "only 7 of them"),
        ("the 3 Read results", "2 of them"),
        ("the 2 Bash results", "5 of them"),
        ("messages 14 to 16", "only 15 messages"),
        ("message 99", "only 15 messages"),
        ('the result "z"', "no such item in the context"),
        ('no result "z"', "no such item in the context"),
        ("the Bash result", "5 such items"),
        ("the first user message from Bash", "no such item in the context"),
    ],
)
def test_items_that_are_not_there_are_an_error(world: World, phrase: str, found: str) -> None:
    with pytest.raises(OutcomeError) as error:
        world.fates_of(phrase)
    assert error.value.found == found


@pytest.mark.parametrize(
    "phrase",
    [
        "no Bsh result",
        "3 Bsh results",
        "the first 2 Bsh results",
        "every Bsh result",
        "the results from Bsh",
    ],
)
def test_an_unknown_tool_is_an_error_that_lists_the_tools(world: World, phrase: str) -> None:
    with pytest.raises(OutcomeError) as error:
        world.fates_of(phrase)
    assert error.value.expected == phrase
    assert (
        error.value.found == "no tool 'Bsh' in the context; did you mean 'Bash'? It has Bash, Read"
    )


def test_an_unknown_tool_is_an_error_where_no_tool_is_known(tmp_path: Path) -> None:
    world = World(tmp_path / "context", folders=[tmp_path])
    session = Session(policy("steps: []\n"), root=tmp_path / "context")
    given = [{"role": "user", "content": "the task"}]
    world._session = session
    world.turns.append(TurnEvent("model call", given, list(given), session.plan(given)))
    with pytest.raises(OutcomeError, match="no tool 'Bash' in the context; no tool is known"):
        world.fates_of("no Bash result")


def test_a_tool_stays_known_after_its_items_left(world: World) -> None:
    given = [{"role": "user", "content": "go on"}]
    world.turns.append(TurnEvent("model call", given, list(given), world.session.plan(given)))
    assert world.fates_of("no Bash result") == []


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("every 2nd result", "write `the` or `only the` before a position"),
        ("no first result", "write `the` or `only the` before a position"),
        ("2 1st results", "write `the` or `only the` before a position"),
        ("the last results", "say how many"),
        ("the 1st results", "say how many"),
        ("the 0th result", "positions begin at 1"),
        ("the first 0 results", "positions begin at 1"),
        ("messages 0 to 2", "positions begin at 1"),
        ("the 4th to 2nd results", "the range runs backwards"),
        ("messages 4 to 2", "the range runs backwards"),
        ("every 2 results", "names no items"),
        ("the 2st result", "write `2nd` instead of `2st`"),
        ("the 1st and 3th results", "write `3rd` instead of `3th`"),
        ("the 1th to 2nd results", "write `1st` instead of `1th`"),
        ("the 11st result", "write `11th` instead of `11st`"),
        ("the 112nd newest result", "write `112th` instead of `112nd`"),
        ("the 22th result", "write `22nd` instead of `22th`"),
        ("every two results", "names no items"),
        ("the first eleven results", "say how many"),
        ("the 2nd to last result", "names no items"),
        ("the 1st and results", "names no items"),
        ("the", "names no items"),
        ("the first", "names no items"),
        ("the first 2", "names no items"),
        ("the first 2 things", "no items are called 'things'"),
        ("the Bsh thing", "no items are called 'Bsh thing'"),
    ],
)
def test_a_phrase_without_a_meaning_is_an_error(phrase: str, reason: str) -> None:
    with pytest.raises(WordingError) as error:
        selection(phrase)
    assert reason in str(error.value)


def test_a_quoted_name_is_always_a_tool() -> None:
    assert selection('the first 2 "2" results').tool == "2"
    assert selection("the `first` result").tool == "first"
    assert selection('the results from "my tool"').tool == "my tool"


def test_types_of_the_policy_are_known() -> None:
    found = selection("the first 2 web pages", ["web_page"])
    assert (found.type, found.tool) == ("web_page", None)
    assert selection("the notes", ["notes"]).type == "notes"


@pytest.mark.parametrize("phrase", EXAMPLES)
def test_every_example_can_be_read(phrase: str) -> None:
    assert selection(phrase).phrase == phrase


@pytest.mark.parametrize(
    ("phrase", "holding", "outcome"),
    [
        ("only 2 results", "ab", None),
        ("only 2 Bash results", "ab", None),
        ("only 2 results", "abc", "3"),
        ("only 2 Bash results", "abf", "1 other as well"),
        ("only the first 2 results", "ab", None),
        ("only the first 2 results", "abc", "1 other as well"),
        ("the first 2 results", "abc", None),
        ("the first 2 results", "a", "1 of 2"),
        ("no result", "", None),
    ],
)
def test_an_outcome_is_required_of_the_items_selected(
    world: World, phrase: str, holding: Sequence[str], outcome: str | None
) -> None:
    def holds(fate: Any) -> bool:
        return fate.item.kind == "tool_result" and fate.item.tool_use_id in holding

    if outcome is None:
        world.select(phrase).require(world.fates, holds, "are so")
        return
    with pytest.raises(OutcomeError) as error:
        world.select(phrase).require(world.fates, holds, "are so")
    assert error.value.found == outcome


@pytest.mark.parametrize("word", COUNT_WORDS)
def test_a_count_is_a_word_or_digits(word: str) -> None:
    digits = str(COUNT_WORDS.index(word) + 1)
    for phrase in ("{} results", "at least {} results", "the first {} results", "all {} results"):
        in_words = selection(phrase.format(word))
        assert replace(in_words, phrase="") == replace(selection(phrase.format(digits)), phrase="")
    assert pieces(f"{word} results of 9 tokens") == pieces(f"{digits} results of 9 tokens")
