"""`keep_recent: {replies: N}`: what belongs to the newest replies of the model stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.messages.reading import Reading
from tests.conversations import Message, calls, results, thinking, user
from tests.planning.plans import planner
from tests.policies import policy

THINKING = """
store: {{sync: never}}
steps: [{{name: old, do: drop, select: {{types: [thinking], keep_recent: {{replies: {kept}}}}}}}]
"""


def thought(number: int) -> list[Message]:
    """A reply that thinks and calls a tool, and the result."""
    asked = calls((f"c{number}", "Bash"))["content"]
    reply = {"role": "assistant", "content": [thinking(f"thought {number}"), *asked]}
    return [reply, results((f"c{number}", f"result {number}"))]


def task(*numbers: int) -> list[Message]:
    """A task in one turn of many replies, and a new turn, in which all thinking may leave."""
    replies = [message for number in numbers for message in thought(number)]
    done = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    return [user("the task"), *replies, done, user("and now?")]


def thoughts(messages: Any) -> list[int]:
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    return [int(b["thinking"].split()[1]) for b in blocks if b["type"] == "thinking"]


@pytest.mark.parametrize(
    ("kept", "left"), [(0, []), (1, []), (2, [4]), (3, [3, 4]), (9, [1, 2, 3, 4])]
)
def test_the_thinking_of_the_newest_replies_stays(
    kept: int, left: list[int], tmp_path: Path
) -> None:
    one = Session(policy(THINKING.format(kept=kept)), root=tmp_path, session_id="s")
    sent = one.apply(task(1, 2, 3, 4)).messages
    assert thoughts(sent) == left
    again = Session(policy(THINKING.format(kept=kept)), root=tmp_path, session_id="s")
    assert again.apply(sent).messages == sent


def test_the_reason_counts_replies() -> None:
    found = planner(THINKING.format(kept=2), task(1, 2))
    plan = found.plan(found.conversation.facts)
    assert [str(d.reason) for d in plan.new] == ["old: in the 3rd newest reply, 2 kept"]
    assert plan.verdicts(4)[0].reason.sentence == "in the 2nd newest reply, 2 kept"


def test_results_belong_to_the_reply_with_their_calls() -> None:
    text = """
    items: {tool_result: {offload: true}}
    steps: [{name: old, do: clear, must_shrink: false, select: {keep_recent: {replies: 2}}}]
    """
    found = planner(text, task(1, 2, 3))
    plan = found.plan(found.conversation.facts)
    assert [d.item.item_id for d in plan.new] == ["c1", "c2"]


def test_messages_of_one_reply_in_the_responses_api_are_one() -> None:
    reading = Reading()
    reading.extend(
        [
            user("the task"),
            {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "ok"},
        ]
    )
    reading.extend([{"type": "function_call", "call_id": "b", "name": "Bash", "arguments": "{}"}])
    assert reading.reply_starts == [1, 4]


def test_a_compaction_keeps_the_newest_replies(tmp_path: Path) -> None:
    text = """
    store: {sync: never}
    compaction:
      summary: {by: none, must_shrink_to: false}
      wording: {summary: "[Earlier messages: {archive_path}]"}
      keep_recent: {replies: 2}
      min_new: 0
    steps: [{name: c, do: compact, when: {messages: {over: 6}}}]
    """
    full = task(1, 2, 3)
    sent = Session(policy(text), root=tmp_path).apply(full).messages
    assert list(sent[-4:]) == full[-4:]
    assert thoughts(sent) == [3]
