from __future__ import annotations

from typing import Any

import pytest

from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.replay.readers.reading import lengths, read_lines, read_one, roles

Record = dict[str, Any]
HEAD: Record = {"type": "session", "id": "s", "cwd": "/w"}


def entry(role: str, content: object, **more: Any) -> Record:
    links: Record = {key: more.pop(key) for key in ("id", "parentId") if key in more}
    return {"type": "message", **links, "message": {"role": role, "content": content, **more}}


def user(text: str, **more: Any) -> Record:
    return entry("user", [{"type": "text", "text": text}], **more)


def reply(*calls: str, prompt: int = 0, **more: Any) -> Record:
    content: list[Record] = [{"type": "text", "text": "so"}]
    content += [{"type": "toolCall", "id": c, "name": "sh", "arguments": {}} for c in calls]
    usage = {"input": prompt, "cacheRead": 2 * prompt, "cacheWrite": prompt, "output": 5}
    return entry("assistant", content, usage=usage, stopReason="stop", **more)


def result(call_id: str, **more: Any) -> Record:
    return entry("toolResult", [{"type": "text", "text": "done"}], toolCallId=call_id, **more)


def test_the_results_of_one_reply_are_one_message() -> None:
    recording = read_one([HEAD, user("go"), reply("a", "b"), result("a"), result("b")])
    assert roles(recording) == ["user", "assistant", "user"]
    results = recording.messages()[2]["content"]
    assert [block["tool_use_id"] for block in results] == ["a", "b"]


def test_a_failed_result_is_marked_as_error() -> None:
    recording = read_one([HEAD, user("go"), reply("a"), result("a", isError=True)])
    assert recording.after[1]["content"][0]["is_error"] is True


def test_an_image_takes_the_form_of_the_api() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    recording = read_one([HEAD, entry("user", [image])])
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert recording.messages()[0]["content"] == [{"type": "image", "source": source}]


def test_the_usage_belongs_to_the_reply() -> None:
    recording = read_one([HEAD, user("go"), reply(prompt=10), user("on"), reply()])
    assert [call.usage for call in recording.calls] == [Usage(10, 20, 10, 5), None]
    assert lengths(recording) == [1, 3]


def test_an_aborted_reply_without_content_is_ignored() -> None:
    aborted = entry("assistant", [], stopReason="aborted", usage={})
    recording = read_one([HEAD, user("go"), aborted, user("go!"), reply(prompt=1)])
    assert roles([*recording.calls[0].new]) == ["user", "user"]
    assert recording.not_prompt["empty reply"] == 1


def test_a_command_of_the_user_is_shown_with_its_output() -> None:
    ran = entry("bashExecution", None, command="ls", output="a.txt", exitCode=2)
    said = read_one([HEAD, ran]).messages()[0]["content"]
    assert "ls" in said
    assert "a.txt" in said
    assert "2" in said


def test_a_command_excluded_from_the_context_is_not_prompt() -> None:
    ran = entry("bashExecution", None, command="ls", output="a.txt", excludeFromContext=True)
    assert len(read_one([HEAD, user("go"), ran]).messages()) == 1


@pytest.mark.parametrize("first", [{"firstKeptEntryIndex": 3}, {"firstKeptEntryId": "3"}])
def test_a_compaction_keeps_the_messages_from_its_first_kept_entry(first: Record) -> None:
    compaction = {"type": "compaction", "id": "5", "parentId": "4", "summary": "in short", **first}
    records = [
        HEAD,
        user("go", id="1", parentId=None),
        reply(prompt=1, id="2", parentId="1"),
        user("on", id="3", parentId="2"),
        reply(prompt=1, id="4", parentId="3"),
        compaction,
        user("more", id="6", parentId="5"),
        reply(prompt=1, id="7", parentId="6"),
    ]
    recording = read_one(records)
    last = [*recording.contexts()][-1]
    assert last[0]["content"] == "in short"
    assert [m["content"][0]["text"] for m in last[1:]] == ["on", "so", "more"]
    assert [call.anew for call in recording.calls] == [True, False, True]


def compacted_in_a_run(begun: str, *bills: int) -> Recording:
    """A compaction at 10:00:10, a reply `begun` at some time, another of its run, and a prompt."""
    first, second, third = bills
    running = reply("a", prompt=first, id="6", parentId="5")
    running["message"] |= {"stopReason": "toolUse", "timestamp": f"2026-01-01T{begun}Z"}
    compaction = {"type": "compaction", "id": "5", "parentId": "4", "summary": "in short"}
    records = [
        HEAD,
        user("go", id="1", parentId=None),
        reply(prompt=90, id="2", parentId="1"),
        user("on", id="3", parentId="2"),
        reply(prompt=100, id="4", parentId="3"),
        {**compaction, "firstKeptEntryId": "3", "timestamp": "2026-01-01T10:00:10Z"},
        running,
        result("a", id="7", parentId="6"),
        reply(prompt=second, id="8", parentId="7"),
        user("more", id="9", parentId="8"),
        reply(prompt=third, id="10", parentId="9"),
    ]
    return read_one(records)


def test_a_run_that_goes_on_keeps_its_list_over_a_compaction() -> None:
    recording = compacted_in_a_run("10:00:09", 110, 120, 40)
    # The last call has the summary, what the compaction kept, the rest of the run, and the prompt.
    assert lengths(recording) == [1, 3, 4, 6, 7]
    assert [call.anew for call in recording.calls] == [True, False, False, False, True]
    last = [*recording.contexts()][-1]
    assert last[0]["content"] == "in short"
    assert roles(last[1:]) == ["user", "assistant", "assistant", "user", "assistant", "user"]


def test_a_reply_that_was_begun_after_a_compaction_has_the_new_list() -> None:
    recording = compacted_in_a_run("10:00:11", 30, 40, 50)
    assert lengths(recording) == [1, 3, 3, 5, 7]
    assert [call.anew for call in recording.calls] == [True, False, True, False, False]


def test_a_bill_that_falls_within_a_run_shows_the_new_list() -> None:
    recording = compacted_in_a_run("10:00:09", 110, 40, 50)
    assert lengths(recording) == [1, 3, 4, 5, 7]
    assert [call.anew for call in recording.calls] == [True, False, False, True, False]


def test_a_run_that_goes_on_at_the_end_leaves_the_compacted_context() -> None:
    records = [
        HEAD,
        user("go", id="1", parentId=None),
        {"type": "compaction", "id": "2", "parentId": "1", "summary": "in short",
         "timestamp": "2026-01-01T10:00:10Z"},
        reply(prompt=9, id="3", parentId="2", timestamp="2026-01-01T10:00:09Z"),
    ]  # fmt: skip
    recording = read_one(records)
    assert lengths(recording) == [1]
    assert recording.messages()[0]["content"] == "in short"
    assert roles(recording) == ["user", "assistant"]


@pytest.mark.parametrize("first", [{"firstKeptEntryIndex": 3}, {"firstKeptEntryId": "3"}])
def test_a_compaction_may_point_to_an_entry_that_is_not_a_message(first: Record) -> None:
    records = [
        HEAD,
        user("go", id="1", parentId=None),
        reply(prompt=1, id="2", parentId="1"),
        {"type": "model_change", "id": "3", "parentId": "2"},
        user("on", id="4", parentId="3"),
        {"type": "compaction", "id": "5", "parentId": "4", "summary": "in short", **first},
    ]
    summary, kept = read_one(records).messages()
    assert summary["content"] == "in short"
    assert kept["content"][0]["text"] == "on"


def test_an_entry_that_is_written_twice_counts_once() -> None:
    records = [
        HEAD,
        user("go", id="1", parentId=None),
        reply("a", prompt=1, id="2", parentId="1"),
        result("a", id="3", parentId="2"),
        reply(prompt=1, id="4", parentId="3"),
    ]
    (twice,) = read_lines([record for record in records for _ in range(2)])
    assert twice.messages() == read_one(records).messages()
    assert len(twice.calls) == 2
    assert twice.not_prompt == {"session": 1, "repeated entry": 5}


def test_a_branch_that_was_left_is_left_out() -> None:
    records = [
        HEAD,
        user("go", id="1", parentId=None),
        reply(prompt=1, id="2", parentId="1"),
        user("this way", id="3", parentId="2"),
        user("that way", id="4", parentId="2"),
        reply(prompt=1, id="5", parentId="4"),
    ]
    texts = [m["content"][0]["text"] for m in read_one(records).messages()]
    assert texts == ["go", "so", "that way", "so"]


def test_an_entry_with_a_missing_parent_follows_the_previous_entry() -> None:
    recording = read_one([HEAD, user("go", id="1", parentId="lost"), user("on", parentId="x")])
    assert len(recording.messages()) == 2


def test_every_record_is_accounted_for() -> None:
    records = [HEAD, user("go"), {"type": "custom"}, {"type": "unheard-of"}]
    recording = read_one(records)
    assert recording.records == 4
    assert recording.not_prompt == {"session": 1, "custom": 1}
    assert recording.not_understood == {"unheard-of": 1}
