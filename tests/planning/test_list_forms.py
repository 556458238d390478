"""Earlier removals in lists that come in another form than the list that they were made in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from policyctx import Session
from policyctx.messages.validity import new_problems
from tests.conversations import calls, picture, results, session_of, thinking, user
from tests.policies import policy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from policyctx.turns.result import Result
    from tests.conversations import Message

IMAGES_THEN_CALLS = """\
    items:
      tool_call: {{offload: true}}
      tool_result: {{offload: true}}
      image: {{offload: true}}
    store: {{sync: never}}
    steps:
      - {{name: images, do: {do}, select: {{types: [image], keep_recent: 1}}}}
      - {{name: calls, do: drop, select: {{types: [tool_call], keep_recent: 2}}}}
    """
WORDS = """\
    items: {user_message: {offload: true}, assistant_message: {offload: true}}
    store: {sync: never}
    steps:
      - {name: words, do: drop, select: {types: [user_message], keep_recent: 1}}
    """
OLD_CALLS = """\
    items: {tool_call: {offload: true}, tool_result: {offload: true}}
    store: {sync: never}
    steps: [{name: old, do: drop, select: {types: [tool_call], keep_recent: 1}}]
    """


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def turn(number: int) -> list[Message]:
    """A call, and a result with a text and an image of its own."""
    content = [{"type": "text", "text": f"result {number}"}, picture(f"AAAA{number}")]
    return [calls((f"c{number}", "Bash")), results((f"c{number}", content))]


def applied(session: Session, messages: Sequence[Message]) -> Result:
    result = session.apply(messages)
    assert new_problems(messages, result.messages) == []
    return result


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("do", ["drop", "offload"])
def test_the_full_list_after_the_edited_one_keeps_no_orphan_results(
    do: str, restarts: bool, tmp_path: Path
) -> None:
    compiled = policy(IMAGES_THEN_CALLS.format(do=do))
    session = Session(compiled, root=tmp_path, session_id="s")
    full = [user("the task")]
    back: Sequence[Message] = full
    for number in range(5):
        full = [*full, *turn(number)]
        back = applied(session, [*back, *turn(number)]).messages
    if restarts:
        session = Session(compiled, root=tmp_path, session_id="s")
    result = applied(session, full)
    assert result.messages == back
    assert result.plan.new == ()


def test_a_result_is_known_again_after_an_image_in_it_left(tmp_path: Path) -> None:
    compiled = policy(IMAGES_THEN_CALLS.format(do="drop"))
    full = [user("the task"), *turn(0), *turn(1)]
    first = Session(compiled, root=tmp_path, session_id="s").apply(full)
    second = Session(compiled, root=tmp_path, session_id="s")
    third = applied(second, [*first.messages, *turn(2)])
    dropped = {d.item.item_id for d in third.plan.new if d.action == "drop"}
    assert "c0" in dropped
    assert applied(second, [*full, *turn(2)]).messages == third.messages


def test_a_list_cut_off_behind_a_dropped_call_keeps_the_call(tmp_path: Path) -> None:
    session = Session(policy(OLD_CALLS), root=tmp_path, session_id="s")
    full = session_of("one", "two", "three")
    whole = applied(session, full)
    cut = applied(session, full[:2])
    assert cut.messages == full[:2]
    [kept] = [d for d in cut.plan.decisions if d.item.kind == "tool_call"]
    assert (kept.action, kept.reason.code) == ("keep", "restored")
    assert "its result would have no call" in kept.reason.sentence
    assert applied(session, full).messages == whole.messages


def test_another_result_for_a_dropped_call_brings_the_call_back(tmp_path: Path) -> None:
    session = Session(policy(OLD_CALLS), root=tmp_path, session_id="s")
    full = session_of("one", "two", "three")
    applied(session, full)
    other = [*full[:2], results(("c0", "another result"))]
    assert applied(session, other).messages == other


def test_the_newest_user_message_of_a_shorter_list_stays(tmp_path: Path) -> None:
    session = Session(policy(WORDS), root=tmp_path, session_id="s")
    full = [user("one"), said("a"), user("two"), said("b"), user("three")]
    applied(session, [*full, said("c"), user("four")])
    for end in (1, 3, 5):
        assert applied(session, full[:end]).messages[-1] == full[end - 1]


def test_a_shorter_list_does_not_begin_or_end_with_the_assistant(tmp_path: Path) -> None:
    text = WORDS.replace("[user_message]", "[user_message, tool_result]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("the task"), *turn(0), *turn(1), user("more"), *turn(2)]
    applied(session, full)
    for end in range(1, len(full)):
        restarted = Session(policy(text), root=tmp_path, session_id="s")
        assert applied(session, full[:end]).messages == applied(restarted, full[:end]).messages


def test_thinking_does_not_stand_alone_in_a_shorter_list(tmp_path: Path) -> None:
    text = OLD_CALLS.replace("[tool_call]", "[tool_call, assistant_message]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    reply = {"role": "assistant", "content": [thinking(), *calls(("a", "Bash"))["content"]]}
    full = [user("one"), reply, results(("a", "done")), user("two"), said("b"), *turn(1), *turn(2)]
    applied(session, full)
    for end in range(1, len(full)):
        applied(session, full[:end])


def test_a_removal_that_was_held_back_applies_again_when_the_list_grows(tmp_path: Path) -> None:
    session = Session(policy(WORDS), root=tmp_path, session_id="s")
    full = [user("one"), said("a"), user("two"), said("b"), user("three")]
    whole = applied(session, full)
    for end in range(1, len(full) + 1):
        live = applied(session, full[:end])
    assert live.messages == whole.messages
    assert live.plan.new == ()


def test_no_step_drops_the_only_messages_of_a_list(tmp_path: Path) -> None:
    text = OLD_CALLS.replace("keep_recent: 1", "keep_recent: 0")
    session = Session(policy(text), root=tmp_path, session_id="s")
    result = applied(session, session_of("one")[1:])
    assert len(result.messages) == 2
    assert result.plan.decision(0).reason.sentence == "without it no message would be left"


def test_a_list_that_ends_where_it_was_compacted_does_not_end_with_the_reply(
    tmp_path: Path,
) -> None:
    text = """\
        store: {sync: never}
        compaction: {keep_recent: {messages: 1}}
        steps: [{name: compact, do: compact, when: {messages: {over: 5}}}]
        """
    full = [user("one"), said("a"), user("two"), said("b"), user("three"), said("c"), user("four")]
    live = Session(policy(text), root=tmp_path, session_id="s")
    whole = applied(live, full)
    assert whole.compacted
    for _ in range(2):
        cut = applied(live, full[:6])
        assert cut.messages == whole.messages[:1]
        assert applied(live, full).messages == whole.messages
        live = Session(policy(text), root=tmp_path, session_id="s")


def test_async_sessions_keep_no_orphan_results(tmp_path: Path) -> None:
    session = Session(policy(IMAGES_THEN_CALLS.format(do="drop")), root=tmp_path, session_id="s")

    async def run() -> None:
        full = [user("the task")]
        back: Sequence[Message] = full
        for number in range(5):
            full = [*full, *turn(number)]
            back = (await session.apply_async([*back, *turn(number)])).messages
        result = await session.apply_async(full)
        assert new_problems(full, result.messages) == []

    asyncio.run(run())
