"""Which message a list may begin with after a drop: the Responses API takes any item first."""

from __future__ import annotations

from pathlib import Path

from policyctx import Session
from policyctx.definitions.items import Message
from tests.conversations import user
from tests.policies import policy

DROP = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [tool_call]}}]
    """


def call(call_id: str) -> list[Message]:
    return [
        {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": "found"},
    ]


def test_a_drop_leaves_no_chat_reply_first_after_a_responses_item(tmp_path: Path) -> None:
    reply: Message = {"role": "assistant", "content": "ok"}
    messages = [*call("a"), reply, user("go on")]
    result = Session(policy(DROP), root=tmp_path, session_id="s").apply(messages)
    assert result.messages == messages
    reasons = [d.reason.sentence for d in result.plan.decisions if d.item.kind == "tool_call"]
    assert any("first" in reason for reason in reasons)


def test_a_drop_may_leave_a_responses_item_first(tmp_path: Path) -> None:
    reply: Message = {"type": "message", "role": "assistant", "content": "ok"}
    messages = [*call("a"), reply, user("go on")]
    result = Session(policy(DROP), root=tmp_path, session_id="s").apply(messages)
    assert list(result.messages) == messages[2:]
