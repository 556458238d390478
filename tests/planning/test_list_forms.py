"""Earlier removals in lists that come in another form than the list that they were made in."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.messages.validity import new_problems
from policyctx.turns.result import Result
from tests.conversations import Message, call, calls, picture, results, session_of, thinking, user
from tests.policies import policy

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


REPLIES = """\
    items: {assistant_message: {offload: true}}
    store: {sync: never}
    steps:
      - {name: replies, do: drop, select: {types: [assistant_message], keep_recent: 1}}
    """


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def turn(number: int) -> list[Message]:
    """A call, and a result with a text and an image of its own."""
    content = [{"type": "text", "text": f"result {number}"}, picture(f"AAAA{number}")]
    return [calls((f"c{number}", "Bash")), results((f"c{number}", content))]


def conversation(*numbers: int) -> list[Message]:
    """Questions, and the answer to each."""
    turns = [(user(f"question {i}"), said(f"answer {i}")) for i in numbers]
    return [message for one in turns for message in one]


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


GONE_THEN_DROPPED = """\
    items:
      tool_call: {{offload: true}}
      tool_result: {{offload: true}}
      user_message: {{offload: true}}
    placeholder: "[gone]"
    store: {{sync: never}}
    steps:
      - {{name: gone, do: clear, must_shrink: false, select: {{types: [{kind}]}}, {moment}}}
      - name: dropped
        do: drop
        select: {{types: [{kind}], keep_recent: 0}}
        when: {{messages: {{at_least: 7}}}}
    """


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("kind", "moment", "length"),
    [
        ("tool_result", "on: arrival", 4),
        ("tool_result", "when: {messages: {at_least: 5}}", 4),
        ("tool_call", "when: {messages: {at_least: 5}}", 3),
        ("tool_call", "when: {messages: {at_least: 5}}", 4),
        ("user_message", "when: {messages: {at_least: 5}}", 5),
    ],
)
def test_what_must_stay_in_a_shorter_list_has_its_placeholder_of_before_the_drop(
    kind: str, moment: str, length: int, restarts: bool, tmp_path: Path
) -> None:
    compiled = policy(GONE_THEN_DROPPED.format(kind=kind, moment=moment))
    session = Session(compiled, root=tmp_path, session_id="s")
    pair = [call("c0", "Bash", {"command": "look at all of it"}), turn(0)[1]]
    full = [user("one"), said("I look"), *pair, user("two"), said("b"), user("three")]
    placeholders = applied(session, full[:5]).messages
    assert placeholders != full[:5]
    dropped = applied(session, full)
    assert len(dropped.messages) < len(full)
    if restarts:
        session = restarted(session)
    cut = applied(session, full[:length])
    assert cut.messages == placeholders[:length]
    assert cut.plan.new == ()
    assert applied(session, full).messages == dropped.messages


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
    assert result.plan.decision(0).reason.sentence == (
        "without it no message would be left; it stays until a message follows"
    )


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


def restarted(session: Session) -> Session:
    """Return a session that knows only what the store of this one holds."""
    return Session(session.policy, root=session.store.root, session_id=session.session_id)


def test_pairs_with_one_id_in_several_replies_are_dropped_one_by_one(tmp_path: Path) -> None:
    """What went earlier between two pairs does not count for either of them."""
    text = OLD_CALLS.replace("tool_call], keep", "tool_call], tools: [Read, Bash], keep")
    session = Session(policy(text), root=tmp_path, session_id="s")
    answer = results(("a", "with words"))
    answer["content"].append({"type": "text", "text": "and then?"})
    read = [calls(("b", "Read")), results(("b", "first"))]
    twice = [calls(("a", "Grep"), ("a", "Glob")), results(("a", "second"), ("a", "third"))]
    full = [user("the task"), *read, *twice, calls(("a", "Bash")), answer]
    full += [calls(("c", "Bash")), results(("c", "fourth")), user("more")]
    first = applied(session, full)
    assert first.messages == [*full[:5], user_text("and then?"), *full[7:]]
    full += [calls(("d", "Bash"), ("e", "Read")), results(("d", "fifth"), ("e", "sixth"))]
    second = applied(session, full)
    expected = [full[0], *twice, user_text("and then?"), user("more"), *full[10:]]
    assert second.messages == expected
    assert applied(restarted(session), full).messages == expected


def user_text(text: str) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_a_pair_that_lost_an_image_while_it_was_back_is_dropped_after_a_restart(
    tmp_path: Path,
) -> None:
    text = OLD_CALLS.replace("[tool_call], keep_recent: 1", "[tool_call, image]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("the task"), said("I look"), calls(("a", "Bash"))]
    full += [results(("a", [picture()])), user("more")]
    whole = applied(session, full)
    assert whole.messages == [*full[:2], full[4]]
    cut = applied(session, full[:4])
    assert "[Content removed]" in str(cut.messages)
    anew = applied(restarted(session), full)
    assert anew.messages == whole.messages
    assert anew.plan.new == ()
    assert anew.warnings == ()


def test_a_call_that_was_dropped_with_two_results_is_dropped_after_a_restart(
    tmp_path: Path,
) -> None:
    session = Session(policy(OLD_CALLS), root=tmp_path, session_id="s")
    full = session_of("one", "two")
    whole = applied(session, full)
    other = [*full[:2], results(("c0", "another result")), *full[3:]]
    assert applied(session, other).messages == whole.messages
    for messages in (full, other):
        anew = applied(restarted(session), messages)
        assert anew.messages == whole.messages
        assert anew.plan.new == ()
        assert anew.warnings == ()


def test_a_result_that_was_dropped_without_its_call_stays_dropped_after_a_restart(
    tmp_path: Path,
) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        store: {sync: never}
        steps: [{name: all, do: drop, select: {types: [tool_result]}}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    orphan = results(("lost", "done"))
    orphan["content"].append({"type": "text", "text": "go on"})
    whole = applied(session, [user("the task"), orphan])
    assert whole.messages == [user("the task"), user_text("go on")]
    anew = applied(restarted(session), [user("the task"), orphan])
    assert anew.messages == whole.messages
    assert anew.plan.new == ()
    assert anew.warnings == ()


def test_equal_placeholders_are_told_apart_after_a_restart(tmp_path: Path) -> None:
    """One of three was dropped before the last one came."""
    text = """\
        items: {user_message: {offload: true, keep_recent: 1}}
        store: {sync: never}
        placeholder: "[gone]"
        steps:
          - {name: old, do: drop, select: {types: [user_message], keep_recent: 3}}
          - {name: large, do: offload, must_shrink: false, select: {types: [user_message]}}
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("the very first")]
    back: Sequence[Message] = full
    for word in ("one", "two", "three", "four", "five"):
        more = [said(f"after {word}"), user(word)]
        full = [*full, *more]
        result = applied(session, [*back, *more])
        again = applied(restarted(session), result.messages)
        assert again.messages == result.messages
        assert again.plan.new == ()
        back = result.messages


def test_words_that_a_shorter_list_lacked_stay_dropped_when_they_follow_again(
    tmp_path: Path,
) -> None:
    """The caller goes back twice, and then sends the list of the second turn once more."""
    text = WORDS.replace("[user_message], keep_recent: 1", "[assistant_message]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("one"), said("a"), user("two"), said("b"), user("three")]
    back = applied(session, full).messages
    grown = [*back, said("c"), user("four")]
    whole = applied(session, grown)
    assert whole.messages == [user(word) for word in ("one", "two", "three", "four")]
    applied(session, full)
    anew = applied(restarted(session), grown)
    live = applied(session, grown)
    assert live.messages == anew.messages == whole.messages
    assert live.plan.new == anew.plan.new == ()


def test_words_dropped_at_the_end_stay_dropped_when_the_list_goes_on_with_them(
    tmp_path: Path,
) -> None:
    """The caller sends its own list, then what it was handed before and what came since."""
    text = WORDS.replace("[user_message], keep_recent: 1", "[assistant_message]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("one"), said("a"), user("two")]
    back = applied(session, full).messages
    assert applied(session, [*full, said("b"), said("c")]).messages == back
    grown = [*back, said("c"), user("three")]
    anew = applied(restarted(session), grown)
    live = applied(session, grown)
    assert live.messages == anew.messages == [*back, user("three")]
    assert live.plan.new == anew.plan.new == ()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_words_stay_dropped_when_the_returned_list_is_cut_and_the_own_list_follows(
    length: int, tmp_path: Path
) -> None:
    """The caller goes back to the beginning of the list that it was handed, and starts again."""
    text = WORDS.replace("[user_message], keep_recent: 1", "[assistant_message]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("one"), said("a"), user("two"), said("b"), user("three")]
    back = applied(session, full).messages
    assert back == [user("one"), user("two"), user("three")]
    applied(session, copy.deepcopy(back))
    applied(session, copy.deepcopy(back[:length]))
    own = copy.deepcopy([*full, said("c"), user("four")])
    anew = applied(restarted(session), own)
    live = applied(session, own)
    assert live.messages == anew.messages == [*back, user("four")]
    assert [d.item.text for d in live.plan.new] == ["c"]


def test_words_stay_dropped_when_the_returned_list_is_cut_and_goes_on_with_them(
    tmp_path: Path,
) -> None:
    text = WORDS.replace("[user_message], keep_recent: 1", "[assistant_message]")
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [user("one"), said("a"), user("two"), said("b"), user("three")]
    back = applied(session, full).messages
    applied(session, copy.deepcopy(back[:2]))
    mixed = copy.deepcopy([*back[:2], *full[3:]])
    anew = applied(restarted(session), mixed)
    live = applied(session, mixed)
    assert live.messages == anew.messages == back
    assert live.plan.new == ()


def test_words_stay_dropped_after_a_restart_when_the_own_list_is_cut(tmp_path: Path) -> None:
    """What was dropped later is missing because the list ends before it."""
    session = Session(policy(REPLIES), root=tmp_path, session_id="s")
    own = conversation(0, 1, 2, 3)
    applied(session, own[:4])
    applied(session, own)
    for length in range(3, 8):
        cut = applied(restarted(session), own[:length])
        assert cut.messages == [*own[:length:2], *own[7:length]]
        assert cut.plan.new == ()


def test_words_dropped_from_returned_lists_stay_dropped_when_the_own_list_is_cut(
    tmp_path: Path,
) -> None:
    """Some of the items that they follow were dropped, others are the results of tools."""
    session = Session(policy(REPLIES), root=tmp_path, session_id="s")
    own = [said("hello"), *conversation(0, 1), *turn(0), said("so far"), *conversation(2, 3)]
    back: list[Message] = []
    for message in own:
        back = list(applied(session, [*back, message]).messages)
    for length in range(1, len(own)):
        cut = applied(restarted(session), own[:length])
        assert [d.item.text for d in cut.plan.new] == []


def test_words_said_again_stay_when_the_first_of_them_and_more_has_gone(tmp_path: Path) -> None:
    """Behind the same words of the user, too."""
    session = Session(policy(REPLIES), root=tmp_path, session_id="s")
    own = conversation(0, 1, 2, 3)
    back = applied(session, own).messages
    again = [*back, own[0], own[1], user("thanks")]
    anew = applied(restarted(session), again)
    live = applied(session, again)
    assert live.messages == anew.messages
    assert own[1] in anew.messages


THINKING_THEN_WORDS = """\
    items: {assistant_message: {offload: true}}
    store: {sync: never}
    steps:
      - {name: words, do: drop, select: {types: [assistant_message], keep_recent: 0}}
    """


def test_words_leave_again_once_their_thinking_has_led_to_more(tmp_path: Path) -> None:
    """The own list is cut off behind words that would leave their thinking alone."""
    session = Session(policy(THINKING_THEN_WORDS), root=tmp_path, session_id="s")
    own: list[Message] = [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"},
        {"type": "message", "role": "assistant", "content": "I look into it."},
        {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
    ]
    without = [message for message in own if message is not own[2]]
    assert applied(session, own).messages == without
    for one in (restarted(session), session):
        assert applied(one, own[:3]).messages == own[:3]
        grown = applied(one, own[:4])
        assert grown.messages == without[:3]
        assert grown.plan.new == ()
        assert applied(one, own).messages == without


ARRIVED_THEN_COMPACTED = """\
    items: {{tool_result: {{offload: true}}}}
    store: {{sync: never, {store}}}
    steps:
      - name: large
        on: arrival
        do: offload
        select: {{types: [tool_result]}}
        placeholder: "[gone]"
      - name: compact
        do: compact
        when: {{messages: {{over: {over}}}}}
        compaction: {{keep_recent: {{messages: 1}}, summary: {{must_shrink_to: false}}}}
    """


def large(character: str) -> list[Message]:
    """The content of a result, in blocks."""
    return [{"type": "text", "text": text} for text in (character * 99, "and more")]


@pytest.mark.parametrize("store", ["", "blocks: json"])
def test_a_list_that_ends_before_a_compaction_has_the_placeholders_of_before(
    store: str, tmp_path: Path
) -> None:
    """The caller goes back in its own list, behind which a summary stood meanwhile."""
    text = ARRIVED_THEN_COMPACTED.format(store=store, over=6)
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [*session_of(*map(large, "xyz")), user("go on"), said("done"), user("more")]
    before = applied(session, full[:5]).messages
    assert [m["content"][0]["content"] for m in before[2::2]] == ["[gone]", "[gone]"]
    assert applied(session, full).compacted
    for one in (restarted(session), session):
        assert applied(one, full[:3]).messages == before[:3]
        assert applied(one, full[:5]).messages == before


@pytest.mark.parametrize("store", ["", "blocks: json"])
def test_a_list_that_grows_again_has_its_placeholders_and_then_its_summary(
    store: str, tmp_path: Path
) -> None:
    """The caller goes back in its own list, and sends it once more message by message."""
    text = ARRIVED_THEN_COMPACTED.format(store=store, over=6)
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = [*session_of(*map(large, "xyz")), user("go on"), said("done"), user("more")]
    before = [*applied(session, full[:5]).messages, full[5]]
    compacted = applied(session, full)
    assert compacted.compacted
    for length in range(1, len(before) + 1):
        grown = applied(session, full[:length])
        assert grown.messages == before[:length]
        assert grown.plan.new == ()
    assert applied(session, full).messages == compacted.messages
    live = applied(session, [*full, said("done"), user("and now?")])
    assert live.messages == [*compacted.messages, said("done"), user("and now?")]


@pytest.mark.parametrize("store", ["", "blocks: json"])
def test_a_compaction_of_another_list_brings_no_replaced_result_back(
    store: str, tmp_path: Path
) -> None:
    """The caller cuts the beginning off for some turns, and then sends all of its own list."""
    text = ARRIVED_THEN_COMPACTED.format(store=store, over=7)
    session = Session(policy(text), root=tmp_path, session_id="s")
    full = session_of(*map(large, "vwxyz"))
    full.insert(7, user("more"))
    assert applied(session, full[:8]).compacted
    before = applied(session, full).messages
    assert [m["content"][0]["content"] for m in before[-3::2]] == ["[gone]", "[gone]"]
    branch = [*full[7:], said("done"), user("and now?"), said("done"), user("and now?")]
    assert applied(session, branch).compacted
    for one in (restarted(session), session):
        assert applied(one, full).messages == before
