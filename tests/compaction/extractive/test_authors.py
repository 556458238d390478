"""Whose words a text is: the user's, a program's, or those of another writer's summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policyctx import Session, compact_messages, written_by
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.policies import policy as compiled

if TYPE_CHECKING:
    from pathlib import Path

    from policyctx.definitions.items import Message
    from policyctx.planning.compiled import OffloadPolicy

SKILL = """Base directory for this skill: /skills/brewing

# Brewing

- Never start the boiler before the valve is closed.
- Always weigh the hops to 5 grams.
- [ ] Clean the kettle
- [ ] Write the label
"""
FOREIGN = """This session goes on from an earlier one.

Analysis:
The user wanted the tank rebuilt and said so at length.

Summary:
1. Primary Request:
   - Rebuild the fermentation log as a SQLite table
   - The table must be called `batches`

2. Problems:
   - The import failed because the CSV file uses semicolons; it is read with `delimiter=";"` now

3. All user messages:
   - "Rebuild the log, and never delete the old CSV files"
   - "use UTC everywhere"

4. Pending Tasks:
   - Add an index on `brewed_at`
     - it is a text column
   - Write the export to XLSX

Please go on without asking anything.
"""


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def asks(call_id: str, tool: str, given: dict[str, Any], result: str) -> list[Message]:
    call = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
    return [{"role": "assistant", "content": [call]}, user([answer])]


def group(summary: str, label: str) -> list[str]:
    """Return the lines of a group with their notes."""
    lines = summary.split("\n")
    if label not in lines:
        return []
    rest = lines[lines.index(label) + 1 :]
    end = next((i for i, line in enumerate(rest) if not line.startswith(("- ", "  "))), len(rest))
    return rest[:end]


def summary_of(*messages: Message, policy: OffloadPolicy | None = None) -> str:
    history = History(messages)
    if policy is not None:
        history = History(messages, author_of=policy.author_by_text)
    return extractive_summary(history, Summary())


TOLD = "User, in order:"


def test_the_text_of_a_skill_is_not_the_users_order() -> None:
    asked = user(
        "<command-name>/brew</command-name><command-args>40 litres of stout</command-args>"
    )
    summary = summary_of(asked, written_by("program", user(SKILL)), said("The kettle is heating."))
    assert group(summary, TOLD) == ["- /brew; 40 litres of stout"]
    assert group(summary, "Still open:") == []


def test_a_block_may_have_another_author_than_its_message() -> None:
    blocks = [
        written_by("program", {"type": "text", "text": "Never open the lid."}),
        {"type": "text", "text": "Always use the small pump."},
    ]
    assert group(summary_of(user(blocks)), TOLD) == ["- Always use the small pump."]


def test_a_policy_says_who_wrote_the_items_of_a_type() -> None:
    policy = compiled(
        """
        items:
          skill_prompt:
            match: {type: user_message, text: {startswith: "Base directory for this skill:"}}
            author: program
        """
    )
    messages = [user("Brew 40 litres of stout."), user(SKILL), said("The kettle is heating.")]
    summary = summary_of(*messages, policy=policy)
    assert group(summary, TOLD) == ["- Brew 40 litres of stout."]
    assert "- Always weigh the hops to 5 grams." in group(summary_of(*messages), TOLD)


def test_the_policy_counts_before_the_mark_of_a_message() -> None:
    policy = compiled("items: {user_message: {author: user}}")
    message = written_by("program", user("Never open the lid."))
    assert group(summary_of(message), TOLD) == []
    assert group(summary_of(message, policy=policy), TOLD) == ["- Never open the lid."]


def test_the_summary_of_another_writer_is_condensed() -> None:
    summary = summary_of(written_by("summary", user(FOREIGN)), said("I look at the table first."))
    carried = "\n".join(group(summary, "Earlier summary:"))
    assert "The table must be called `batches`" in carried
    assert 'it is read with `delimiter=";"` now' in carried
    assert "at length" not in summary
    assert group(summary, TOLD) == [
        "- Rebuild the log, and never delete the old CSV files",
        "- use UTC everywhere",
    ]
    assert group(summary, "Still open:") == [
        "- Add an index on `brewed_at`",
        "- Write the export to XLSX",
    ]


def test_a_task_of_another_writers_summary_is_closed_when_it_is_done() -> None:
    later = [said("The index on `brewed_at` is done."), user("Good. Which one is next?")]
    summary = summary_of(written_by("summary", user(FOREIGN)), *later)
    assert group(summary, "Still open:") == ["- Write the export to XLSX"]


def test_a_summary_of_this_library_is_read_back_from_another_session() -> None:
    first = summary_of(user("Never open the lid."), said("The lid stays closed."))
    again = summary_of(written_by("summary", user(first)), user("Go on with the label."))
    assert group(again, TOLD) == ["- Never open the lid.", "- Go on with the label."]


QUESTIONS = {
    "questions": [
        {
            "question": "Which port should the preview use?",
            "options": [
                {"label": "8080", "description": "The usual one, taken by the old preview"},
                {"label": "8081", "description": "Free on every host"},
            ],
        },
        {"question": "Keep the old preview?", "options": []},
    ]
}
ANSWERED = (
    'The user has answered: "Which port should the preview use?"="8081", '
    '"Keep the old preview?"="no, delete it after Friday". You may go on now.'
)
ASKING = compiled(
    """
    items:
      answer:
        match: {type: tool_result, tool: ask}
        author: user
    """
)


def test_the_answers_to_a_tool_that_asks_are_the_users_words() -> None:
    messages = [user("Set up the preview."), *asks("c1", "ask", QUESTIONS, ANSWERED)]
    summary = summary_of(*messages, said("The port is 8081."), policy=ASKING)
    assert group(summary, TOLD) == [
        "- Set up the preview.",
        "- 8081",
        "  answers: Which port should the preview use? 8081: Free on every host",
        "- no, delete it after Friday",
        "  answers: Keep the old preview?",
    ]


@pytest.mark.parametrize(
    "result",
    [
        '{"answers": {"Which port should the preview use?": "8081"}}',
        '[{"question": "Which port should the preview use?", "answer": ["8081"]}]',
        "Which port should the preview use?\n8081\n\nThank you.",
    ],
)
def test_answers_are_found_in_json_and_in_lines(result: str) -> None:
    summary = summary_of(*asks("c1", "ask", QUESTIONS, result), policy=ASKING)
    assert group(summary, TOLD)[0] == "- 8081"


def test_an_answer_without_its_question_answers_all_that_was_asked() -> None:
    plan = {"plan": "Move the tank to hall B, then calibrate the probe twice."}
    summary = summary_of(*asks("c1", "ask", plan, "Approved, but calibrate once."), policy=ASKING)
    assert group(summary, TOLD) == [
        "- Approved, but calibrate once.",
        f"  answers: {plan['plan']}",
    ]


def test_the_result_of_a_tool_without_such_a_rule_is_not_the_users() -> None:
    assert group(summary_of(user("Go."), *asks("c1", "ask", QUESTIONS, ANSWERED)), TOLD) == []


@pytest.mark.parametrize(("rule", "told"), [("offload: false", True), ("offload: true", False)])
def test_an_answer_that_was_offloaded_is_not_quoted_as_the_users(
    rule: str, told: bool, tmp_path: Path
) -> None:
    policy = compiled(
        f"""
        min_tokens: 1
        items:
          answer: {{match: {{type: tool_result, tool: ask}}, author: user, {rule}}}
        compaction: {{keep_recent: {{messages: 1}}}}
        steps:
          - {{name: old, do: offload, must_shrink: false, select: {{types: [answer]}}}}
          - {{name: end, do: compact, when: {{tokens: {{at_least: 1}}}}}}
        """
    ).policy
    messages = [*asks("c1", "ask", QUESTIONS, ANSWERED), said("Done."), user("Go on.")]
    result = Session(policy, root=tmp_path).apply(messages)
    assert result.compacted
    lines = group(str(result.messages[0]["content"]), TOLD)
    assert ("- 8081" in lines) is told
    assert not any("answer/" in line for line in lines)


def test_compact_messages_uses_the_marks_of_a_host() -> None:
    messages = [
        user("Use port 8081 for the preview, always."),
        written_by("program", user("Always open the lid. " + "Stir. " * 400)),
        said("The preview runs."),
        user("Go on."),
    ]
    result = compact_messages(messages, threshold="0%", context_window=2_000)
    assert result.compacted
    assert "Always open the lid." not in group(result.summary or "", TOLD)


def test_an_unknown_author_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of user, program, summary"):
        written_by("agent", user("x"))  # type: ignore[arg-type]
