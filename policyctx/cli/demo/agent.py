"""The demo's agent loop: what any loop around a model does, with a script in the model's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.cli.demo.script import FAULT, FAULTY_FILE, SCRIPT, SOUND, TASK_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.cli.demo.script import Reply
    from policyctx.cli.demo.tools import Workspace
    from policyctx.messages.items import Message
    from policyctx.session import Session
    from policyctx.turns.result import Result


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One call of the loop: what the policy made of the context before it."""

    number: int
    result: Result
    reply: Reply


def model_calls(
    session: Session, workspace: Workspace, history: list[Message]
) -> Iterator[DemoCall]:
    """Run the agent until it has no more to say; `history` grows to the whole, unedited session."""
    workspace.edit_file(FAULTY_FILE, SOUND, FAULT)
    history.append(TASK_MESSAGE)
    for number, said in enumerate(SCRIPT, 1):
        result = session.apply(history)
        reply = said(result) if callable(said) else said
        history.append(_assistant_message(number, reply))
        if reply.calls:
            history.append(_results(number, reply, workspace))
        yield DemoCall(number, result, reply)


def _assistant_message(number: int, reply: Reply) -> Message:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}]
    for i, (tool, arguments) in enumerate(reply.calls):
        block = {"type": "tool_use", "id": call_id(number, i), "name": tool, "input": arguments}
        content.append(block)
    return {"role": "assistant", "content": content}


def _results(number: int, reply: Reply, workspace: Workspace) -> Message:
    content = [
        {
            "type": "tool_result",
            "tool_use_id": call_id(number, i),
            "content": workspace.call(tool, arguments),
        }
        for i, (tool, arguments) in enumerate(reply.calls)
    ]
    return {"role": "user", "content": content}


def call_id(number: int, call: int) -> str:
    """Return the id of the n-th tool call (from 0) of a model call (from 1)."""
    return f"call_{number:02}_{call + 1}"
