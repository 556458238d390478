"""Whose words a text is: the user's, a program's, or those of another writer's summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Session, compact_messages, written_by
from policyctx.compaction.extractive import Group
from policyctx.definitions.items import Message
from policyctx.planning.compiled import OffloadPolicy
from tests.compaction.extractive.summaries import group, said, summary_of
from tests.policies import policy as compiled

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


def asks(call_id: str, tool: str, given: dict[str, Any], result: str) -> list[Message]:
    call = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
    return [{"role": "assistant", "content": [call]}, user([answer])]


def told(*messages: Message, policy: OffloadPolicy | None = None) -> list[str]:
    return group(summary_of(*messages, policy=policy), Group.USER)


def test_the_text_of_a_skill_is_left_out() -> None:
    asked = user(
        "<command-name>/brew</command-name><command-args>40 litres of stout</command-args>"
    )
    list_ = [asked, written_by("program", user(SKILL)), said("The kettle is heating.")]
    assert told(*list_) == ["- /brew 40 litres of stout"]


def test_a_block_may_have_another_author_than_its_message() -> None:
    blocks = [
        written_by("program", {"type": "text", "text": "Never open the lid."}),
        {"type": "text", "text": "Always use the small pump."},
    ]
    assert told(user(blocks)) == ["- Always use the small pump."]


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
    rule = "Always weigh the hops to 5 grams."
    assert rule not in "\n".join(told(*messages, policy=policy))
    assert f"  {rule}" in told(*messages)


def test_the_policy_counts_before_the_mark_of_a_message() -> None:
    policy = compiled("items: {user_message: {author: user}}")
    message = written_by("program", user("Never open the lid."))
    assert told(message) == []
    assert told(message, policy=policy) == ["- Never open the lid."]


def test_the_summary_of_another_writer_is_quoted_as_an_earlier_summary() -> None:
    summary = summary_of(written_by("summary", user(FOREIGN)), said("I look at the table first."))
    carried = "\n".join(group(summary, Group.EARLIER))
    assert "The table must be called `batches`" in carried
    assert "never delete the old CSV files" in carried
    assert "Add an index on `brewed_at`" not in carried
    assert group(summary, Group.USER) == []


def test_a_summary_of_this_library_is_read_back_from_another_session() -> None:
    first = summary_of(user("Never open the lid."), said("The lid stays closed."))
    messages = written_by("summary", user(first)), user("Go on with the label.")
    assert told(*messages) == ["- Never open the lid.", "- Go on with the label."]


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


def test_the_answers_to_a_tool_that_asks_are_quoted() -> None:
    messages = [user("Set up the preview."), *asks("c1", "ask", QUESTIONS, ANSWERED)]
    assert told(*messages, policy=ASKING) == ["- Set up the preview.", f"- {ANSWERED}"]


def test_an_answer_without_its_question_stands_with_the_questions_of_the_call() -> None:
    lines = told(*asks("c1", "ask", QUESTIONS, "8081, and no"), policy=ASKING)
    question = "Which port should the preview use? Keep the old preview?"
    assert lines == [f"- 8081, and no [answers: {question}]"]


def test_the_result_of_a_tool_without_such_a_rule_is_not_the_users() -> None:
    assert told(user("Go."), *asks("c1", "ask", QUESTIONS, ANSWERED)) == ["- Go."]


@pytest.mark.parametrize(("rule", "quoted"), [("offload: false", True), ("offload: true", False)])
def test_an_answer_that_was_offloaded_is_not_quoted_as_the_users(
    rule: str, quoted: bool, tmp_path: Path
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
    lines = group(str(result.messages[0]["content"]), Group.USER)
    assert any("8081" in line for line in lines) is quoted
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
    assert "Always open the lid." not in group(result.summary or "", Group.USER)


def test_an_unknown_author_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of user, program, summary"):
        written_by("agent", user("x"))  # type: ignore[arg-type]
