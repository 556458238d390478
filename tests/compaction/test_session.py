"""A session that compacts: what is asked, kept, replaced, and found again."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from policyctx import Session, StoreError
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
from tests.conversations import calls, chat_calls, chat_result, picture, results, thinking, user
from tests.policies import policy


def test_the_history_is_replaced_by_the_summary_and_its_reply(tmp_path: Path) -> None:
    messages = conversation()
    before = copy.deepcopy(messages)
    result = session(tmp_path).apply(messages)
    assert result.compacted
    assert list(result.messages) == [SYSTEM, user(f"{SUMMARY}the summary"), said(REPLY)]
    assert result.messages[0] is messages[0]
    assert messages == before


def test_below_the_trigger_the_same_list_object_is_returned(tmp_path: Path) -> None:
    messages = conversation(2)
    result = session(tmp_path).apply(messages)
    assert not result.compacted
    assert result.messages is messages
    assert list(tmp_path.iterdir()) == []


def test_the_statistics_describe_the_compaction(tmp_path: Path) -> None:
    made = session(tmp_path).apply(conversation()).compaction
    assert made is not None
    stats = made.stats
    assert (stats.compacted_message_count, stats.retained_message_count) == (6, 1)
    assert (stats.restored_file_count, stats.restored_token_count) == (0, 0)
    assert stats.original_token_count == 2 + 3 * (2 + 2)
    assert stats.compaction_ratio == stats.compacted_token_count / stats.original_token_count


def test_the_replaced_messages_are_archived_whole(tmp_path: Path) -> None:
    used = session(tmp_path)
    messages = conversation()
    made = used.apply(messages).compaction
    assert made is not None
    document = json.loads(used.read("compaction-001"))
    assert compact_json(document["messages"]) == compact_json(messages[1:])
    assert any(event.path == "archive/compaction-001.json" for event in used.store.history())  # type: ignore[attr-defined]


def test_without_an_archive_only_the_session_state_is_written(tmp_path: Path) -> None:
    made = session(tmp_path, "{archive: false}").apply(conversation()).compaction
    assert made is not None
    assert made.archive_path is None
    assert [path.name for path in tmp_path.iterdir()] == [".policyctx"]


def test_a_full_list_that_is_sent_again_gets_the_same_beginning(tmp_path: Path) -> None:
    used = session(tmp_path)
    messages = conversation()
    first = used.apply(messages).messages
    later = used.apply([*messages, user("and now")])
    assert not later.compacted
    assert list(later.messages) == [*first, user("and now")]


def test_a_returned_list_that_is_passed_back_is_unchanged(tmp_path: Path) -> None:
    first = list(session(tmp_path).apply(conversation()).messages)
    for used in (session(tmp_path), session(tmp_path)):
        given = [*first, user("and now")]
        assert used.apply(given).messages is given


@pytest.mark.parametrize("restart", [False, True])
def test_compactions_follow_one_another(restart: bool, tmp_path: Path) -> None:
    texts = iter(["one", "two", "three", "four"])

    def answer(_: SummaryRequest) -> str:
        return next(texts)

    used = session(tmp_path, summary=answer)
    full, handed_out = conversation(), []
    for i in range(4):
        used = session(tmp_path, summary=answer) if restart else used
        handed_out.append(list(used.apply(full).messages))
        full += [user(f"more {i}"), said(), user("again"), said()]
    assert [m[1]["content"] for m in handed_out] == [
        f"{SUMMARY}one", f"{SUMMARY}two", f"{SUMMARY}three", f"{SUMMARY}four",
    ]  # fmt: skip
    assert all(len(m) == 3 for m in handed_out)


def test_an_earlier_summary_is_known_as_one(tmp_path: Path) -> None:
    seen: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> str:
        seen.append(request)
        return f"round {len(seen)}"

    used = session(tmp_path, summary=answer)
    full = conversation()
    used.apply(full)
    used.apply([*full, user(), said(), user(), said()])
    history = seen[1].history
    assert dict(history.earlier) == {0: "round 1"}
    assert history.written == {1}


def test_a_different_list_is_compacted_again(tmp_path: Path) -> None:
    used = session(tmp_path)
    used.apply(conversation())
    other = [SYSTEM, *conversation()[1:][::-1]]
    assert used.apply(other).compacted


def test_a_compaction_that_freed_nothing_does_not_run_again_before_something_is_new(
    tmp_path: Path,
) -> None:
    asked = Failing(0)
    used = session(tmp_path, summary=asked, over=1)
    messages = conversation()
    first = used.apply(messages)
    again = used.apply(messages)
    assert asked.asked == 1
    assert list(again.messages) == list(first.messages)
    assert again.plan.outcomes[0].stopped is not None
    assert again.plan.outcomes[0].stopped.code == "nothing_new"
    assert used.apply([*messages, user("something that is new")]).compacted


class TestFailure:
    """A summary that cannot be had leaves everything as it was, and says why."""

    def test_a_failed_summary_is_retried_with_growing_delays(self, tmp_path: Path) -> None:
        asked = Failing(2)
        used = session(tmp_path, "{summary: {by: mine, backoff: 0s}}", summary=asked)
        assert used.apply(conversation()).compacted
        assert asked.asked == 3

    @pytest.mark.parametrize("error", [RuntimeError("overloaded"), "  ", ValueError()])
    def test_the_unchanged_list_is_returned_after_the_last_attempt(
        self, error: Exception | str, tmp_path: Path
    ) -> None:
        asked = Failing(9, error)
        used = session(tmp_path, "{summary: {by: mine, backoff: 0s}}", summary=asked)
        messages = conversation()
        result = used.apply(messages)
        assert not result.compacted
        assert result.messages is messages
        assert asked.asked == 3
        assert result.warnings[0].startswith("not compacted, after 3 attempts: ")
        assert not (tmp_path / "archive").exists()

    def test_the_extractive_summary_may_be_the_fallback(self, tmp_path: Path) -> None:
        settings = "{summary: {by: mine, backoff: 0s, on_failure: extractive}}"
        used = session(tmp_path, settings, summary=Failing(9))
        result = used.apply([*conversation(), user("Never deploy on a Friday.")])
        assert result.compacted
        assert "Never deploy on a Friday." in result.messages[1]["content"]

    def test_a_keyboard_interrupt_is_propagated(self, tmp_path: Path) -> None:
        def interrupted(_: SummaryRequest) -> str:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            session(tmp_path, summary=interrupted).apply(conversation())

    def test_a_summary_that_is_too_long_is_rejected(self, tmp_path: Path) -> None:
        used = session(
            tmp_path, "{summary: {by: mine, backoff: 0s, attempts: 2, must_shrink_to: 50%}}",
            summary=lambda _: "x" * 100,
        )  # fmt: skip
        result = used.apply(conversation())
        assert not result.compacted
        assert result.warnings[0].startswith("not compacted, after 2 attempts: ")

    def test_nothing_is_replaced_when_the_archive_cannot_be_written(self, tmp_path: Path) -> None:
        messages = conversation()
        used = session(tmp_path)
        (tmp_path / "archive").write_text("in the way", encoding="utf-8")
        result = used.apply(messages)
        assert not result.compacted
        assert result.messages is messages
        assert "not compacted" in result.warnings[0]

    def test_a_failed_archive_is_an_error_if_the_policy_says_so(self, tmp_path: Path) -> None:
        compiled = policy(
            dedent("""\
            store: {sync: never, on_failure: raise}
            steps: [{name: summarise, do: compact}]
            """)
        )
        (tmp_path / "archive").write_text("in the way", encoding="utf-8")
        used = Session(compiled, root=tmp_path, session_id="s")
        with pytest.raises(StoreError):
            used.apply(conversation())


def test_pinned_texts_are_carried_verbatim_through_every_compaction(tmp_path: Path) -> None:
    before = "tools: {todo: {pin: true}}"
    used = session(tmp_path, before=before)
    todo = [calls(("a", "todo")), results(("a", "1. mend the port\n2. 测试"))]
    full = [*conversation(), *todo, said()]
    for _ in range(3):
        result = used.apply(full)
        assert "1. mend the port\n2. 测试" in result.messages[1]["content"]
        full = [*full, *conversation()[1:]]


def test_the_newest_messages_stay_behind_the_summary(tmp_path: Path) -> None:
    messages = [*conversation(), user("the newest")]
    result = session(tmp_path, "{keep_recent: {messages: 1}}").apply(messages)
    assert list(result.messages)[1:] == [
        user(f"{SUMMARY}the summary"), said(REPLY), user("the newest"),
    ]  # fmt: skip
    assert result.messages[-1] is messages[-1]


def test_before_an_assistant_message_the_reply_is_left_out(tmp_path: Path) -> None:
    messages = [*conversation(), calls(("a", "Read")), results(("a", "x"))]
    result = session(tmp_path, "{keep_recent: {messages: 1}}").apply(messages)
    assert [m["role"] for m in result.messages] == ["system", "user", "assistant", "user"]


def test_a_running_call_stays_with_all_behind_it(tmp_path: Path) -> None:
    running = [calls(("a", "Read"), ("b", "Read")), results(("a", "x"))]
    result = session(tmp_path).apply([*conversation(), *running])
    assert list(result.messages[-2:]) == running


def test_the_other_decisions_of_the_turn_are_carried_out_first(tmp_path: Path) -> None:
    text = """\
        store: {sync: never}
        items: {tool_result: {offload: true}}
        placeholder: "[gone to {relative_path}]"
        compaction: {keep_recent: {messages: 1}}
        steps:
          - {name: s, do: offload, select: {min_chars: 50}}
          - {name: summarise, do: compact, when: {messages: {over: 4}}}
        """
    seen: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> str:
        seen.append(request)
        return "short"

    used = Session(policy(text), root=tmp_path, session_id="s", summarizer=answer)
    full = [user(), calls(("a", "Read")), results(("a", "x" * 99)), said(), user("and now")]
    result = used.apply(full)
    assert "[gone to" in seen[0].history.messages[2]["content"][0]["content"]
    assert json.loads(used.read("compaction-001"))["messages"] == full[:-1]
    assert used.read("a") == "x" * 99
    assert list(used.apply([*full, said()]).messages) == [*result.messages, said()]


def test_thinking_images_and_the_chat_api_are_compacted_too(tmp_path: Path) -> None:
    odd = [
        {"role": "assistant", "content": [thinking(), {"type": "text", "text": "hm"}]},
        {"role": "user", "content": [picture(), {"type": "text", "text": "look"}]},
        chat_calls(("a", "Read", '{"path": "x"}')),
        chat_result("a", None),
    ]
    result = session(tmp_path).apply([*conversation(), *odd])
    assert result.compacted
    assert len(result.messages) == 3


def test_async_is_the_same(tmp_path: Path) -> None:
    async def answer(_: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "the summary"

    messages = conversation()
    sync = session(tmp_path / "a").apply(messages)
    used = session(tmp_path / "b", summary=answer)
    assert list(asyncio.run(used.apply_async(messages)).messages) == list(sync.messages)


def test_a_plan_asks_no_summarizer_and_changes_nothing(tmp_path: Path) -> None:
    asked = Failing(0)
    used = session(tmp_path, summary=asked)
    assert used.plan(conversation()).compaction is not None
    assert asked.asked == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("roles", [["system"] * 9, ["user"] * 9])
def test_lists_of_one_role(roles: Sequence[str], tmp_path: Path) -> None:
    messages = [{"role": role, "content": "words"} for role in roles]
    result = session(tmp_path).apply(messages)
    assert result.compacted == (roles[0] == "user")


def test_restored_files_have_their_current_content(tmp_path: Path) -> None:
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    (work_dir / "a.py").write_text("port = 8081\n", encoding="utf-8")
    before = "tools: {read_file: {reads_file: path}}"
    more = f"{{restore: {{work_dir: '{work_dir}'}}}}"
    used = session(tmp_path / "store", more, before=before)
    call = {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "a.py"}}
    read = [{"role": "assistant", "content": [call]}, results(("a", "port = 8080\n"))]
    full = [*conversation(), *read, said()]
    first = used.apply(full)
    content = "[Restored after compact] a.py:\nport = 8081\n"
    restored = [user(content), said("Noted, file content restored.")]
    assert list(first.messages[3:]) == restored
    second = used.apply([*full, *conversation()[1:]])
    assert list(second.messages[3:]) == restored
    assert [item.type for item in used.plan(second.messages).items] == [
        "system_prompt", "compaction_summary", "assistant_message", "restored_file",
        "assistant_message",
    ]  # fmt: skip


def test_a_compaction_above_its_trigger_waits_until_a_tenth_is_new(tmp_path: Path) -> None:
    full = [*conversation(), user("x" * 4000)]
    used = session(tmp_path, summary=lambda _: "y" * 4000, over=1)
    assert used.apply(full).compacted
    few = used.apply([*full, user("z" * 40)])
    assert not few.compacted
    assert few.plan.outcomes[0].stopped is not None
    assert few.plan.outcomes[0].stopped.code == "hardly_new"
    assert used.apply([*full, user("z" * 40), user("z" * 800)]).compacted


ANY = "summary: {must_shrink_to: false}"


@pytest.mark.parametrize(("share", "compacted"), [("0", True), ("0%", True), ("90%", False)])
def test_the_policy_sets_the_share_that_must_be_new(
    share: str, compacted: bool, tmp_path: Path
) -> None:
    used = session(tmp_path, f"{{min_new: {share}, {ANY}}}", summary=lambda _: "y" * 4000, over=1)
    full = conversation()
    assert used.apply(full).compacted
    assert used.apply([*full, user("z")]).compacted == compacted


def test_a_callable_is_retried_under_any_policy_summarizer(tmp_path: Path) -> None:
    asked = Failing(1)
    used = session(tmp_path, "{summary: {backoff: 0s}}", summary=asked)
    assert used.apply(conversation()).compacted
    assert asked.asked == 2
