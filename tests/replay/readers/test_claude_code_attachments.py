"""Attachments of Claude Code, which say to the model what the program adds to a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.replay.readers.claude_records import (
    CALLED,
    DONE,
    Record,
    calls_of,
    context_of,
    contexts_of,
    record,
    reply,
    result,
    said,
    text,
    user,
)
from tests.replay.readers.reading import read_lines

GO = user("1", None, "go")


def attachment(uuid: str, parent: str | None, kind: str, **fields: Any) -> Record:
    return record(uuid, parent, "attachment", attachment={"type": kind, **fields})


def reminders(records: list[Record]) -> list[str]:
    """What the program says to the model, by message."""
    found = []
    for message in context_of(records):
        blocks = message["content"] if isinstance(message["content"], list) else []
        said = [one["text"] for one in blocks if one.get("type") == "text"]
        found += [one for one in said if one.startswith("<system-reminder>\n")]
    return found


EDITED = {"filename": "/w/a.py", "snippet": "1\tx = 2"}
NESTED = {"path": "/w/sub/NOTES.md", "content": {"path": "x", "content": "use tabs"}}
TEXT_FILE = {"filename": "/w/b.py", "content": {"type": "text", "file": {"content": "y = 3"}}}


@pytest.mark.parametrize(("kind", "fields", "parts"), [
    ("edited_text_file", EDITED, ["/w/a.py", "1\tx = 2"]),
    ("skill_listing", {"content": "- review: reads", "names": ["review"]}, ["- review: reads"]),
    ("mcp_instructions_delta", {"addedBlocks": ["## a\nBe kind.", "## b"]}, ["Be kind.", "## b"]),
    ("deferred_tools_delta", {"addedLines": ["Zip", "Zap"], "removedNames": ["Zop"]},
     ["Zip\nZap\nZop"]),
    ("hook_additional_context", {"content": ["one", "two"], "hookName": "Start"},
     ["Start", "one\ntwo"]),
    ("hook_success", {"content": "it began", "hookEvent": "SessionStart"}, ["it began"]),
    ("nested_memory", NESTED, ["/w/sub/NOTES.md", "use tabs"]),
    ("file", TEXT_FILE, ["/w/b.py", "y = 3"]),
    ("invoked_skills", {"skills": [{"content": "one"}, {"content": "two"}]}, ["one\ntwo"]),
])  # fmt: skip
def test_the_text_of_an_attachment_is_in_the_prompt(
    kind: str, fields: Record, parts: list[str]
) -> None:
    records = [GO, attachment("2", "1", kind, **fields), reply("3", "2", "m1", text("done"))]
    (shown,) = reminders(records)
    assert all(part in shown for part in parts)
    assert contexts_of(records) == [[["go", shown]]]
    assert not read_lines(records)[0].not_prompt


@pytest.mark.parametrize("prompt", ["and hurry", [{"type": "text", "text": "and hurry"}]])
def test_what_the_user_wrote_while_the_model_replied_is_the_users_text(prompt: object) -> None:
    queued = attachment("2", "1", "queued_command", prompt=prompt)
    records = [GO, queued, reply("3", "2", "m1", text("done"))]
    assert contexts_of(records) == [[["go", "and hurry"]]]
    assert not reminders(records)


@pytest.mark.parametrize(("kind", "fields"), [
    ("task_reminder", {"content": [], "itemCount": 0}),
    ("hook_success", {"content": "", "hookEvent": "SessionStart"}),
    ("hook_success", {"content": "passed", "hookEvent": "PostToolUse"}),
    ("skill_listing", {"content": ""}),
    ("skill_listing", {"content": 5}),
    ("edited_text_file", {"filename": "a.png"}),
    ("date_change", {"newDate": "2026-01-01"}),
    ("unheard-of", {"content": "x"}),
])  # fmt: skip
def test_an_attachment_without_a_text_is_counted(kind: str, fields: Record) -> None:
    records = [GO, attachment("2", "1", kind, **fields), reply("3", "2", "m1", text("done"))]
    assert said(context_of(records)) == ["go", ["done"]]
    assert read_lines(records)[0].not_prompt == {"attachment": 1}


def test_an_attachment_after_a_result_stands_behind_it() -> None:
    records = [
        *CALLED,
        user("3", "2", [result("a")]),
        attachment("4", "3", "edited_text_file", **EDITED),
        reply("5", "4", "m2", text("done")),
    ]
    content = context_of(records)[2]["content"]
    assert [block["type"] for block in content] == ["tool_result", "text"]


def test_an_attachment_after_a_reply_is_a_message_of_its_own() -> None:
    records = [
        *DONE,
        attachment("3", "2", "skill_listing", content="- review"),
        user("4", "3", "and now?"),
        reply("5", "4", "m2", text("this")),
    ]
    messages = context_of(records)
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "user",
        "user",
        "assistant",
    ]
    assert [call.anew for call in calls_of(records)] == [True, False]


def test_attachments_before_the_first_prompt_are_kept() -> None:
    start = attachment("0", None, "hook_success", content="welcome", hookEvent="SessionStart")
    for parent in ("0", None):
        records = [start, user("1", parent, "go"), reply("2", "1", "m1", text("done"))]
        assert [said_[-1] for said_ in contexts_of(records)] == ["go"]
        assert len(reminders(records)) == 1


def test_the_attachment_of_a_prompt_that_was_taken_back_goes_with_it() -> None:
    records = [
        *DONE,
        user("3", "2", "mistyped"),
        attachment("4", "3", "edited_text_file", **EDITED),
        user("5", "2", "typed well"),
        reply("6", "5", "m2", text("sure")),
    ]
    assert said(context_of(records)) == ["go", ["done"], "typed well", ["sure"]]


def test_an_attachment_in_a_chain_is_a_link() -> None:
    records = [
        *CALLED,
        attachment("3", "2", "skill_listing", content="- review"),
        user("4", "3", [result("a")]),
        reply("5", "4", "m2", text("done")),
    ]
    kinds = [block["type"] for block in context_of(records)[2]["content"]]
    assert kinds == ["tool_result", "text"]
    assert [call.anew for call in calls_of(records)] == [True, False]
