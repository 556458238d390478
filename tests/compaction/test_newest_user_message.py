"""The user's newest message, kept behind the summary where a policy says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx.compaction.assembly import SummaryRequest
from policyctx.messages.json_text import compact_json
from tests.compaction.compacting import (
    REPLY,
    SUMMARY,
    SYSTEM,
    Failing,
    conversation,
    said,
    session,
)
from tests.conversations import Message, calls, picture, results, user

CARRY = "{keep_newest_user_message: true, keep_recent: {messages: 1}}"


def long_turn(task: Message, count: int = 3) -> list[Message]:
    """Return a session whose newest turn is the task and so many calls with their results."""
    pairs = ((calls((f"c{i}", "Read")), results((f"c{i}", f"r{i}"))) for i in range(count))
    return [*conversation(2), task, *(message for pair in pairs for message in pair)]


def test_the_newest_user_message_follows_the_summary_unchanged(tmp_path: Path) -> None:
    task = user("now the tests")
    messages = long_turn(task)
    result = session(tmp_path, CARRY).apply(messages)
    assert list(result.messages) == [
        SYSTEM, user(f"{SUMMARY}the summary"), said(REPLY), task, *messages[-2:],
    ]  # fmt: skip
    assert result.messages[3] is task


def test_it_is_neither_in_the_history_nor_counted_as_replaced(tmp_path: Path) -> None:
    seen: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> str:
        seen.append(request)
        return "short"

    messages = long_turn(user("now the tests"))
    made = session(tmp_path, CARRY, summary=answer).apply(messages).compaction
    assert made is not None
    assert list(seen[0].history.messages) == [*messages[1:5], *messages[6:10]]
    assert (made.stats.compacted_message_count, made.stats.retained_message_count) == (8, 4)


def test_it_follows_the_restored_files(tmp_path: Path) -> None:
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    (work_dir / "a.py").write_text("port", encoding="utf-8")
    more = f"{{keep_newest_user_message: true, restore: {{work_dir: '{work_dir}'}}}}"
    used = session(tmp_path / "store", more, before="tools: {Open: {reads_file: path}}")
    call = {"type": "tool_use", "id": "a", "name": "Open", "input": {"path": "a.py"}}
    read = [{"role": "assistant", "content": [call]}, results(("a", "port"))]
    result = used.apply([*conversation(2), user("go on"), *read, said()])
    assert [str(message["content"])[:10] for message in result.messages[1:]] == [
        "[Conversat", "Understood", "[Restored ", "Noted, fil", "go on",
    ]  # fmt: skip


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("content", ["go on", [picture(), {"type": "text", "text": "look"}]])
def test_a_full_list_with_it_gets_the_same_beginning_again(
    restart: bool, content: Any, tmp_path: Path
) -> None:
    task: Message = {"role": "user", "content": content}
    messages, asked = long_turn(task), Failing(0)
    used = session(tmp_path, CARRY, summary=asked)
    first = used.apply(messages).messages
    used = session(tmp_path, CARRY, summary=asked) if restart else used
    later = used.apply([*messages, said()])
    assert compact_json(later.messages) == compact_json([*first, said()])
    assert later.messages[3] is task
    assert asked.asked == 1


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("passes_back", [False, True])
def test_one_message_is_carried_by_compactions_that_follow_one_another(
    restart: bool, passes_back: bool, tmp_path: Path
) -> None:
    texts = iter(["one", "two", "three"])

    def answer(_: SummaryRequest) -> str:
        return next(texts)

    task = user("now the tests")
    used, given = session(tmp_path, CARRY, summary=answer), long_turn(task)
    for i, text in enumerate(["one", "two", "three"]):
        used = session(tmp_path, CARRY, summary=answer) if restart else used
        messages = list(used.apply(given).messages)
        assert messages[1:4] == [user(f"{SUMMARY}{text}"), said(REPLY), task]
        assert messages[3] is task
        assert len(messages) == 6
        more = [said(f"more {i}"), said(), calls((f"d{i}", "Read")), results((f"d{i}", "x"))]
        given = [*(messages if passes_back else given), *more]


def test_only_the_newer_of_two_equal_messages_is_carried(tmp_path: Path) -> None:
    older, newer = user("go on"), user("go on")
    messages = [*conversation(1), older, said(), newer, said("a"), said("b")]
    used = session(tmp_path, CARRY)
    first = used.apply(messages).messages
    assert first[3] is newer
    assert [m["content"] for m in first].count("go on") == 1
    assert list(used.apply([*messages, said("c")]).messages) == [*first, said("c")]


def test_a_summary_is_not_a_user_message(tmp_path: Path) -> None:
    used = session(tmp_path, "{keep_newest_user_message: true, keep_first: 1}", over=4)
    messages = [SYSTEM, user("the task"), *(said(f"{i}") for i in range(4))]
    used.apply(messages)
    again = used.apply([*messages, said("5" * 40), said("6" * 40)])
    assert again.compacted
    assert [m["role"] for m in again.messages] == ["system", "user", "user", "assistant"]


def test_a_huge_carried_message_does_not_trigger_endless_compactions(tmp_path: Path) -> None:
    asked = Failing(0)
    used = session(tmp_path, CARRY, summary=asked, over=1)
    messages = long_turn(user("x" * 4000))
    used.apply(messages)
    again = used.apply(messages)
    assert asked.asked == 1
    assert again.plan.outcomes[0].stopped is not None
    assert again.plan.outcomes[0].stopped.code == "nothing_new"
