from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.messages.editing import Edit, edited_message
from policyctx.messages.reading import Reading, items_of
from policyctx.messages.sources import Staying
from policyctx.messages.validity import new_problems, new_problems_around
from policyctx.testing.strategies import message_lists
from tests.messages.edits import some_edits
from tests.messages.odd_lists import (
    IMAGE,
    LEGACY_ANSWER,
    LEGACY_CALL,
    THINKING,
    answer,
    assistant,
    call,
    chat_call,
    chat_calls,
    odd_lists,
    result,
    text,
    user,
)

GO: Message = {"role": "user", "content": "go"}


@given(messages=st.one_of(message_lists(), odd_lists()), data=st.data())
def test_checking_around_the_edits_finds_the_same_as_checking_whole_lists(
    messages: list[Message], data: st.DataObject
) -> None:
    items = items_of(messages)
    edits = data.draw(some_edits(items))
    after = aligned(messages, edits)
    changed = {edit.item.message for edit in edits}
    left = [message for message in after if message is not None]
    found = new_problems_around(messages, after, changed, reading_of(messages))
    assert sorted(found) == sorted(new_problems(messages, left))


@pytest.mark.parametrize(
    ("gone", "problems"),
    [
        ({0}, ["the list begins with an assistant message"]),
        (
            {1},
            [
                "the result a has no call right before it",
                "the result b has no call right before it",
            ],
        ),
        ({2}, ["the call a has no result right after it"]),
        (
            {2, 3},
            ["the call a has no result right after it", "the call b has no result right after it"],
        ),
        ({1, 2, 3}, []),
        ({5}, ["the list ends with an assistant message"]),
        ({4, 5}, []),
        ({0, 1, 2, 3, 4, 5}, []),
    ],
)
def test_a_removed_message_is_noticed_at_its_place(gone: set[int], problems: list[str]) -> None:
    calls = chat_calls(chat_call("a"), chat_call("b"))
    messages = [GO, calls, answer("a"), answer("b"), assistant(text("done")), GO]
    after = [None if i in gone else message for i, message in enumerate(messages)]
    assert new_problems_around(messages, after, gone, reading_of(messages)) == problems


def test_a_reply_left_with_only_thinking_is_found() -> None:
    messages = [GO, assistant(THINKING, text("hi")), GO]
    after = [GO, assistant(THINKING), GO]
    assert new_problems_around(messages, after, [1], reading_of(messages)) == [
        "an assistant message holds nothing but thinking"
    ]


def test_a_pair_may_be_removed_if_its_id_had_an_earlier_unanswered_call() -> None:
    messages = [
        GO,
        assistant(call("a")),
        GO,
        assistant(call("a")),
        user(result("a")),
        GO,
        user(result("a")),
    ]
    after = [*messages[:3], None, None, *messages[5:]]
    assert new_problems_around(messages, after, [3, 4], reading_of(messages)) == []
    assert new_problems(messages, messages[:3] + messages[5:]) == []


class Watched(Sequence[Any]):
    """A list that counts how often it is looked into."""

    def __init__(self, messages: Sequence[object]) -> None:
        self._messages = messages
        self.looks = 0

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, i: Any) -> Any:
        self.looks += 1
        return self._messages[i]


def looks_after(messages: list[Message], after: Sequence[Message | None]) -> int:
    """How often the lists are looked into after the edit."""
    changed = [i for i, message in enumerate(messages) if after[i] is not message]
    before, edited = Watched(messages), Watched(after)
    new_problems_around(before, edited, changed, reading_of(messages))
    return before.looks + edited.looks


def rounds(number: int) -> list[Message]:
    pairs = ((assistant(call(f"c{i}")), user(result(f"c{i}"))) for i in range(number))
    return [GO, *(message for pair in pairs for message in pair), GO]


def test_a_longer_list_is_not_looked_into_more_often() -> None:
    looks = []
    for number in (4, 400):
        messages = rounds(number)
        after = [None if i == number else message for i, message in enumerate(messages)]
        looks.append(looks_after(messages, after))
    assert looks[0] == looks[1]


def test_adjacent_changes_are_checked_once() -> None:
    looks = []
    for number in (20, 40, 60):
        ids = [f"c{i}" for i in range(number)]
        messages = [GO, chat_calls(*map(chat_call, ids)), *map(answer, ids), GO]
        after = [answer(m["tool_call_id"], "gone") if m["role"] == "tool" else m for m in messages]
        looks.append(looks_after(messages, after))
    assert looks[2] - looks[1] == looks[1] - looks[0]


def test_a_system_prompt_inside_the_list_does_not_hide_the_first_role() -> None:
    system: Message = {"role": "system", "content": "Be brief."}
    messages = [GO, assistant(text("hi")), system, GO, assistant(text("done")), GO]
    after = [*messages[:3], None, *messages[4:]]
    assert new_problems_around(messages, after, [3], reading_of(messages)) == []


def aligned(messages: Sequence[Message], edits: Sequence[Edit]) -> list[Message | None]:
    """Return the edited messages, each where it was, None for those that are gone."""
    after: list[Message | None] = list(messages)
    for i in {edit.item.message for edit in edits}:
        after[i] = edited_message(messages[i], [e for e in edits if e.item.message == i])
    return after


def test_messages_removed_by_an_earlier_edit_count_as_removed() -> None:
    """A call that went with its result in an earlier turn is not missed in a later one."""
    both = assistant(call("a"), call("b"))
    before = [GO, both, user(result("a")), user(result("b")), user(text("more"))]
    after = [GO, assistant(call("a")), before[2], None, user(text("less"))]
    assert new_problems_around(before, after, {4}, reading_of(before)) == []


def test_a_result_does_not_answer_a_call_elsewhere_with_the_same_id() -> None:
    """Between the two changes stand messages that neither of them can affect."""
    twice = assistant(call("a"), call("a", "write"))
    before = [
        GO,
        assistant(call("b")),
        user(result("b")),
        twice,
        user(result("a"), result("a")),
        assistant(call("a")),
        user(result("a"), text("and?")),
        assistant(call("c")),
        user(result("c")),
        GO,
    ]
    # The pair `a` of the second reply went in an earlier turn.
    after = [GO, None, None, *before[3:5], None, user(text("and?")), None, None, GO]
    assert new_problems_around(before, after, {1, 2, 7, 8}, reading_of(before)) == []


def test_what_an_earlier_edit_removed_does_not_make_up_for_a_new_problem() -> None:
    """The result that went in an earlier turn does not outweigh the one that lacks its call."""
    before = [
        GO,
        assistant(call("a")),
        user(result("a"), text("and?")),
        assistant(call("a"), call("b")),
        user(result("a"), result("b")),
        GO,
    ]
    after = [GO, None, user(text("and?")), assistant(call("b")), *before[4:]]
    assert new_problems_around(before, after, {3}, reading_of(before)) == [
        "the result a has no call right before it"
    ]


REPLIES: tuple[list[Message], ...] = (
    [assistant(call("a"), call("a", "write")), user(result("a"), result("a"))],
    [assistant(call("a")), user(result("a"), text("and?"))],
    [assistant(text("so"), call("b"), call("a")), user(result("a")), user(result("b"))],
    [chat_calls(chat_call("a"), chat_call("b")), answer("a"), answer("b")],
    [assistant(call("a")), user(result("a", [text("seen"), IMAGE]))],
    [LEGACY_CALL, LEGACY_ANSWER],
)


@given(
    parts=st.lists(st.tuples(st.sampled_from(REPLIES), st.booleans()), min_size=3, max_size=8),
    data=st.data(),
)
def test_calls_removed_earlier_do_not_change_what_is_found(
    parts: list[tuple[list[Message], bool]], data: st.DataObject
) -> None:
    messages = [GO, *(deepcopy(message) for reply, _ in parts for message in reply), GO]
    pairs = {"tool_call", "tool_result"}
    is_earlier = [False, *(drops for reply, drops in parts for _ in reply), False]
    items = items_of(messages)
    earlier = [Edit(i, None) for i in items if is_earlier[i.message] and i.kind in pairs]
    later = data.draw(some_edits([i for i in items if not is_earlier[i.message]]))
    assert new_problems(messages, kept(aligned(messages, earlier))) == []
    after = aligned(messages, [*earlier, *later])
    staying = Staying([range(len(messages))])
    for i, message in enumerate(aligned(messages, earlier)):
        if message is None:
            staying.remove(i)
    for there in (None, staying):
        found = new_problems_around(
            messages, after, {edit.item.message for edit in later}, reading_of(messages), there
        )
        assert sorted(found) == sorted(new_problems(messages, kept(after)))


def reading_of(messages: Sequence[Message]) -> Reading:
    """Return the reading of a list."""
    reading = Reading()
    reading.extend(messages)
    return reading


def kept(messages: Sequence[Message | None]) -> list[Message]:
    """Return the messages that are not gone."""
    return [message for message in messages if message is not None]
