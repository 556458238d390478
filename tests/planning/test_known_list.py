"""Lists that come again: as the caller has kept them, as they were handed out, or otherwise."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policyctx import Request, Session
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import Message, calls, picture, results, session_of, thinking, user
from tests.policies import policy

LARGE = "x" * 400
TEXT = """\
    items: {tool_result: {offload: true}, user_message: {offload: true, min_chars: 300}}
    store: {sync: never}
    placeholder: "12345678 {path}"
    steps: [{name: s, do: offload, select: {types: [tool_result, user_message], keep_recent: 1}}]
    """


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(TEXT), root=tmp_path, session_id="s")


def more(call_id: str, content: str = LARGE) -> list[Message]:
    return [calls((call_id, "Bash")), results((call_id, content))]


def text_of(messages: Sequence[Message], message: int) -> Any:
    return messages[message]["content"][0]["content"]


def test_equal_messages_that_are_other_objects_are_known(session: Session) -> None:
    messages = session_of(LARGE, LARGE)
    first = session.apply(messages)
    again = session.apply(copy.deepcopy(messages))
    assert again.plan.conversation is first.plan.conversation
    assert again.messages == first.messages
    assert again.plan.new == ()


def test_of_equal_messages_the_latest_given_objects_are_returned(session: Session) -> None:
    session.apply(session_of(LARGE, LARGE))
    given = [*session_of(LARGE, LARGE), user("more")]
    result = session.apply(given)
    assert [new is old for new, old in zip(result.messages, given, strict=True)] == [
        True, True, False, True, True, True,
    ]  # fmt: skip


def test_the_given_message_objects_of_a_returned_list_are_returned(
    session: Session,
) -> None:
    given = copy.deepcopy([*session.apply(session_of(LARGE, LARGE)).messages, *more("d", LARGE)])
    result = session.apply(given)
    assert [new is old for new, old in zip(result.messages, given, strict=True)] == [
        True, True, True, True, False, True, True,
    ]  # fmt: skip


def test_a_value_that_only_compares_equal_is_handed_out_as_it_is(session: Session) -> None:
    def listed(value: int) -> list[Message]:
        messages = session_of(LARGE, LARGE)
        messages[3]["content"][0]["input"] = {"flag": value}
        return messages

    session.apply(listed(value=1))
    result = session.apply([*listed(value=True), user("more")])
    assert result.messages[3]["content"][0]["input"]["flag"] is True


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_may_be_a_tuple(kind: type, session: Session) -> None:
    messages = kind(session_of(LARGE))
    assert session.apply(messages).messages is messages
    result = session.apply(kind([*messages, *more("d")]))
    assert text_of(result.messages, 2).startswith("12345678 ")
    again = kind(result.messages)
    assert session.apply(again).messages is again


def test_a_list_that_grows_in_place_is_read_on(session: Session) -> None:
    messages = session_of(LARGE)
    assert session.apply(messages).messages is messages
    messages += more("d")
    assert text_of(session.apply(messages).messages, 2).startswith("12345678 ")


def test_a_caller_may_switch_between_the_full_and_the_edited_list(session: Session) -> None:
    full = session_of(LARGE, LARGE)
    edited = list(session.apply(full).messages)
    for i in range(4):
        grown = more(f"d{i}")
        full, given = [*full, *grown], [*edited, *grown]
        result = session.apply(full if i % 2 else given)
        assert len(result.plan.new) == 1
        assert result.messages[: len(edited) - 2] == edited[:-2]
        edited = list(result.messages)
        assert session.apply(full).messages == edited
        assert session.apply(edited).messages is edited


def test_a_list_trimmed_at_its_end_is_rendered_as_before(session: Session) -> None:
    messages = session_of(LARGE, LARGE)
    result = session.apply(messages)
    assert session.apply(messages[:3]).messages == result.messages[:3]
    assert session.apply(messages).messages == result.messages


def test_a_list_trimmed_at_its_beginning_is_rendered_as_before(session: Session) -> None:
    messages = [user("first"), *more("a"), user("second"), *more("b"), *more("c")]
    result = session.apply(messages)
    trimmed = session.apply(messages[3:])
    assert trimmed.messages == result.messages[3:]
    assert trimmed.plan.new == ()


def test_a_changed_last_message_is_read_again(session: Session) -> None:
    messages = session_of(LARGE, LARGE)
    result = session.apply([*messages, user("one")])
    other = session.apply([*messages, user("two")])
    assert other.messages == [*result.messages[:-1], user("two")]
    assert other.plan.new == ()


def test_a_message_that_was_put_in_between_is_read(session: Session) -> None:
    messages = session_of(LARGE, LARGE)
    result = session.apply(messages)
    longer = session.apply([messages[0], user("by the way"), *messages[1:]])
    assert longer.messages == [messages[0], user("by the way"), *result.messages[1:]]


def test_a_change_in_place_is_seen_with_the_changed_flag(session: Session) -> None:
    messages = session_of("small", "small")
    session.apply(messages)
    messages[2]["content"][0]["content"] = LARGE
    assert session.apply(messages).plan.new == ()
    result = session.apply(messages, changed=True)
    assert [d.item.item_id for d in result.plan.new] == ["c0"]


def test_the_changed_flag_on_an_unchanged_list_changes_nothing(session: Session) -> None:
    messages = session_of(LARGE, LARGE)
    first = session.apply(messages)
    again = session.apply(messages, changed=True)
    assert (again.messages, again.plan.new) == (first.messages, ())


def test_the_list_of_another_conversation_is_recognised_as_different(session: Session) -> None:
    session.apply(session_of(LARGE, LARGE))
    other = [user("another"), *more("z", "small")]
    assert session.apply(other).messages is other


def test_an_empty_list_after_another_is_nothing(session: Session) -> None:
    session.apply(session_of(LARGE, LARGE))
    empty: list[Message] = []
    assert session.apply(empty).messages is empty


ARRIVAL = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    placeholder: "[{item_id}]"
    steps: [{name: s, on: arrival, do: offload, select: {types: [tool_result]}}]
    """


@pytest.mark.parametrize("form", ["given", "returned"])
def test_a_result_that_was_offloaded_on_arrival_is_not_sent_whole(
    form: str, tmp_path: Path
) -> None:
    session = Session(policy(ARRIVAL), root=tmp_path, session_id="s")
    messages = session_of(LARGE)
    first = session.apply([*messages, calls(("b", "Bash"))])
    known = [*messages, calls(("b", "Bash"))] if form == "given" else list(first.messages)
    arrived = results(("b", LARGE))
    session.on_tool_result(arrived, call=known[-1])
    given = [*known, arrived]
    assert text_of(session.preview(given), -1) == "[b]"
    assert text_of(session.apply(given).messages, -1) == "[b]"


def test_planning_does_not_influence_applying(tmp_path: Path) -> None:
    messages = session_of(LARGE, LARGE, LARGE)
    planning = Session(policy(TEXT), root=tmp_path / "one", session_id="s")
    applying = Session(policy(TEXT), root=tmp_path / "one", session_id="s")
    for end in (3, 5, 7):
        planning.plan(messages)
        planning.plan([user("something else"), *messages[1:]])
        planning.plan(messages[: end + 2])
        planned = planning.apply(messages[:end])
        applied = applying.apply(messages[:end])
        assert planned.messages == applied.messages
        assert planned.plan.decisions == applied.plan.decisions
    assert planning.ledger.entries == applying.ledger.entries


def test_a_returned_result_with_a_replaced_image_is_recognised(tmp_path: Path) -> None:
    text = """\
        items: {image: {offload: true}, tool_result: {offload: true}}
        store: {sync: never}
        placeholder: "12345678 {path}"
        steps:
          - {name: images, do: offload, select: {types: [image]}}
          - {name: rest, do: offload, select: {types: [tool_result], keep_recent: 1}}
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = session_of([{"type": "text", "text": LARGE}, picture(LARGE)])
    first = session.apply(messages)
    assert text_of(first.messages, 2)[1]["text"].startswith("12345678 ")
    longer = [*first.messages, *more("d")]
    second = session.apply(longer)
    assert text_of(second.messages, 2).startswith("12345678 ")
    [path] = second.files
    assert session.read(path) == LARGE
    store = ContextFileSystem(tmp_path, session="s")
    assert store.restore(path) == messages[2]["content"][0]
    assert session.apply([*messages, *more("d")]).messages == second.messages


def test_a_restart_with_the_edited_list_recognises_a_replaced_image(tmp_path: Path) -> None:
    """The result's text is another one then; what is in it is not offloaded again."""
    text = """\
        items: {image: {offload: true}}
        store: {sync: never}
        placeholder: "12345678 {path}"
        steps: [{name: images, do: offload, select: {types: [image]}}]
        """
    first = Session(policy(text), root=tmp_path, session_id="s")
    left = first.apply(session_of([{"type": "text", "text": LARGE}, picture(LARGE)])).messages
    second = Session(policy(text), root=tmp_path, session_id="s")
    assert second.apply(left).messages is left


def test_words_that_were_said_again_stay_when_the_first_of_them_has_gone(tmp_path: Path) -> None:
    text = """\
        items: {user_message: {offload: true}}
        store: {sync: never}
        steps: [{name: s, do: drop, select: {types: [user_message], keep_recent: 2}}]
        """
    said = [user("the task"), user("go on"), user("go on"), user("go on")]
    session = Session(policy(text), root=tmp_path, session_id="s")
    left = list(session.apply(said).messages)
    assert left == [user("go on")] * 2
    assert session.apply(left).messages is left


def test_a_message_that_lost_its_thinking_is_not_treated_as_removed(tmp_path: Path) -> None:
    """In a list that is read anew, its words still part the prompt from what follows."""
    text = """\
        items: {user_message: {offload: true}}
        steps:
          - {name: forget, do: drop, select: {types: [thinking]}}
          - {name: words, do: drop, select: {types: [user_message]}}
        """
    session = Session(policy(text), root=tmp_path)
    said = {"role": "assistant", "content": [thinking(), {"type": "text", "text": "done"}]}
    messages = [user("the task"), said, user("now this")]
    first = session.apply(messages)
    assert first.messages[1]["content"] == [{"type": "text", "text": "done"}]
    assert session.apply(messages, changed=True).messages == first.messages


FORGET = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [user_message], keep_recent: 2}}]
    """


def test_the_returned_list_is_not_a_shorter_form_of_the_own_list_of_equal_messages(
    tmp_path: Path,
) -> None:
    session = Session(policy(FORGET), root=tmp_path, session_id="s")
    go_on = user("go on")
    left = session.apply([go_on] * 3).messages
    assert left == [go_on] * 2
    assert session.apply(left).messages is left


def test_the_objects_of_returned_messages_tell_that_the_list_was_returned(tmp_path: Path) -> None:
    session = Session(policy(FORGET), root=tmp_path, session_id="s")
    left = session.apply([user("go on") for _ in range(3)]).messages
    copied = [*left]
    assert session.apply(copied).messages is copied


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("is_same_list", [False, True])
def test_messages_equal_to_a_removed_one_may_follow_the_returned_list(
    is_same_list: bool, count: int, tmp_path: Path
) -> None:
    """With one more, the list is as long as the caller's own one was, and equal to it."""
    session = Session(policy(FORGET), root=tmp_path, session_id="s")
    left = session.apply([user("go on") for _ in range(3)]).messages
    assert isinstance(left, list)
    grown: list[Message] = left if is_same_list else [*left]
    grown += [user("go on") for _ in range(count)]
    result = session.apply(grown)
    assert [*map(id, result.messages)] == [*map(id, grown[count:])]
    assert [decision.item.message for decision in result.plan.new] == [*range(count)]


def test_the_objects_of_the_own_list_tell_that_it_was_shortened(tmp_path: Path) -> None:
    session = Session(policy(FORGET), root=tmp_path, session_id="s")
    own = [user("go on") for _ in range(3)]
    session.apply(own)
    shortened = session.apply(own[:2])
    assert [*map(id, shortened.messages)] == [id(own[1])]
    assert shortened.plan.new == ()


def test_the_returned_list_with_markers_of_the_policy_is_not_a_shorter_form_of_the_own_list(
    tmp_path: Path,
) -> None:
    text = f"""\
    model: {{cache: {{breakpoints: auto}}}}
{FORGET}"""
    session = Session(policy(text), root=tmp_path, session_id="s")
    left = session.apply([user("go on")] * 3, request=Request(takes_markers=True)).messages
    assert "cache_control" in str(left)
    again = session.apply(left)
    assert again.messages == left
    assert again.plan.new == ()
