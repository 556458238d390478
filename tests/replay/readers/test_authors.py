"""Readers mark what a recording says that the user did not write."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

from policyctx.definitions.items import author_of
from policyctx.messages.reading import items_of
from tests.replay.readers import claude_records as claude
from tests.replay.readers import test_codex as codex
from tests.replay.readers import test_pi as pi
from tests.replay.readers.reading import read_one

Record = dict[str, Any]


def authors(records: list[Record]) -> list[tuple[str, str]]:
    """Return the beginning of each text of a user, with its author."""
    items = items_of(read_one(records).messages())
    return [(item.text.split()[0], item.author) for item in items if item.kind == "user_message"]


def test_claude_code_marks_what_is_meta_and_its_summaries() -> None:
    records = [
        claude.user("a", None, "Summary so far", isCompactSummary=True),
        claude.user("b", "a", "Skill text", isMeta=True),
        claude.user("c", "b", "Typed words"),
        claude.reply("d", "c", "m1", claude.text("so")),
    ]
    assert authors(records) == [("Summary", "summary"), ("Skill", "program"), ("Typed", "")]


def test_claude_code_marks_attachments_beside_the_users_words() -> None:
    note = {"type": "critical_system_reminder", "content": "Reminder"}
    records = [
        claude.user("a", None, "Typed words"),
        claude.record("b", "a", "attachment", attachment=note),
        claude.reply("c", "b", "m1", claude.text("so")),
    ]
    assert authors(records) == [("Typed", ""), ("<system-reminder>", "program")]


def test_codex_marks_what_no_event_repeats_as_typed() -> None:
    typed = codex.beside("event_msg", type="user_message", message="Typed words")
    records = [
        codex.said("user", "<environment_context>x</environment_context>"),
        codex.said("user", "Typed words"),
        typed,
        codex.said("assistant", "so"),
    ]
    assert authors(records) == [
        ("<environment_context>x</environment_context>", "program"),
        ("Typed", ""),
    ]


def test_codex_without_such_events_marks_nothing() -> None:
    records = [codex.said("user", "Typed words"), codex.said("assistant", "so")]
    assert authors(records) == [("Typed", "")]


def test_codex_marks_the_summary_of_its_compaction() -> None:
    records = [
        codex.said("user", "go"),
        codex.said("assistant", "so"),
        codex.beside("compacted", message="Summary so far"),
        codex.said("assistant", "on"),
    ]
    assert authors(records) == [("go", ""), ("Summary", "summary")]


def test_pi_marks_compactions_and_what_an_extension_says() -> None:
    records = [
        pi.HEAD,
        pi.user("go", id="a"),
        pi.reply(id="b", parentId="a"),
        {"type": "compaction", "id": "c", "parentId": "b", "summary": "Summary so far",
         "firstKeptEntryId": "b"},
        {"type": "custom_message", "id": "d", "parentId": "c", "content": "Note of an extension"},
        pi.user("typed", id="e", parentId="d"),
        pi.reply(id="f", parentId="e"),
    ]  # fmt: skip
    assert authors(records) == [("Summary", "summary"), ("Note", "program"), ("typed", "")]


def test_a_marked_message_equals_and_is_written_as_the_message() -> None:
    recording = read_one([
        claude.user("a", None, "Skill text", isMeta=True),
        claude.reply("b", "a", "m1", claude.text("so")),
    ])  # fmt: skip
    marked = recording.messages()[0]
    plain = {"role": "user", "content": "Skill text"}
    assert marked == plain
    assert json.dumps(marked) == json.dumps(plain)
    copies = (copy.copy(marked), copy.deepcopy(marked), pickle.loads(pickle.dumps(marked)))  # noqa: S301
    assert [author_of(one) for one in copies] == ["program"] * 3
