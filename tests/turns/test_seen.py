from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import Session
from policyctx.turns.seen import SeenList, _Numbers
from tests.conversations import user
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

FORGET = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [user_message], keep_recent: 2}}]
    """
RECORD: dict[str, Any] = {
    "record": "list",
    "given": [3, "0f", [0, 2]],
    "left": [2, "0e", [0, 3]],
    "drops": 3,
    "ended": [],
    "is_guess": False,
}


@given(st.lists(st.integers(0, 30)))
def test_runs_have_the_numbers_that_were_added(numbers: list[int]) -> None:
    bounds = _Numbers(numbers).bounds
    pairs = [*zip(bounds[::2], bounds[1::2], strict=True)]
    assert [n for first, end in pairs for n in range(first, end)] == sorted({*numbers})
    assert all(end < first for (_, end), (first, _) in pairwise(pairs))


def test_a_record_is_read_as_it_was_written() -> None:
    seen = SeenList.of(RECORD)
    assert seen is not None
    assert seen.record() == RECORD | {"given": (3, "0f", [0, 2]), "left": (2, "0e", [0, 3])}


@pytest.mark.parametrize(
    "change",
    [
        {"given": None},
        {"given": [3]},
        {"given": "abc"},
        {"left": [-1, "0e", []]},
        {"left": [2, "0e", 7]},
        {"left": [2, "0e", ["0", "1"]]},
        {"drops": -1},
        {"drops": None},
        {"ended": [1]},
        {"ended": [2, 1]},
        {"ended": None},
    ],
)
def test_a_record_that_no_session_has_written_is_skipped_with_a_warning(
    change: dict[str, Any],
) -> None:
    store, compiled = MemoryStore(), policy(FORGET)
    own = [user("one"), user("two"), user("three"), user("four")]
    left = Session(compiled, store=store, session_id="s").apply(own).messages
    store.remember([RECORD | change])
    result = Session(compiled, store=store, session_id="s").apply(own)
    assert result.messages == left
    assert len(result.warnings) == 1
    assert SeenList.of(RECORD | change) is None


def test_a_record_of_the_list_is_written_when_words_are_dropped_and_not_in_other_turns() -> None:
    store = MemoryStore()
    session = Session(policy(FORGET), store=store, session_id="s")
    written = []
    own = [user("one")]
    for text in ("two", "three", "four", ""):
        own += [user(text)] if text else []
        session.apply(list(own))
        written.append(sum(one["record"] == "list" for one in store.records()))
    assert written == [0, 1, 2, 2]
