"""A turn and a plan, against the least that either could be.

A turn in which nothing is new has to find that out, so it is held against comparing the list with
the one of the turn before (the same message objects) and copying it. A plan has to look at every
message, so it is held against one `json.dumps` of them, which a model call needs as well.
"""

from __future__ import annotations

import json
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.policy.loading import load_policy
from policyctx.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.messages.items import Message

MESSAGES = 1_000
# Characters of one tool result after another.
SIZES = (200, 900, 2_500, 6_000)
TOOLS = ("Read", "Bash", "Grep", "Edit")


def ratios() -> list[Ratio]:
    """The figures of this module; one call sees 1,000 messages, about a million characters."""
    messages = conversation()
    before = list(messages)
    settled = settled_session(messages)
    by_characters = Session("context-offload", session_id="benchmark")
    return [
        Ratio(
            "apply, nothing new / compare and copy the list",
            ours=lambda: settled.apply(messages),
            baseline=lambda: before == messages and list(messages),
        ),
        Ratio(
            "plan by characters / json.dumps",
            ours=lambda: by_characters.plan(messages),
            baseline=lambda: json.dumps(messages),
        ),
    ]


def settled_session(messages: Sequence[Message]) -> Session:
    """Return a session that has seen these messages: its next `apply` finds nothing to save."""
    policy = load_policy("coding-agent")
    store = policy.store.model_copy(update={"sync": "never"})
    with TemporaryDirectory() as root:
        session = Session(policy.model_copy(update={"store": store}), root=root)
        session.apply(messages)
    return session


def conversation() -> list[Message]:
    """Return 1,000 messages: a system prompt, then turns of ten, the last one still going on."""
    results = iter(tool_outputs(SIZES * (MESSAGES // len(SIZES)), seed=2))
    messages: list[Message] = [{"role": "system", "content": "You repair this project's code."}]
    while len(messages) < MESSAGES:
        messages += _turn(len(messages), results)
    return messages[:MESSAGES]


def _turn(start: int, results: Iterator[str]) -> Iterator[Message]:
    """Yield a question, a call of each tool with its result, and an answer."""
    yield {"role": "user", "content": f"Why does case {start} fail? Repair it."}
    for i, tool in enumerate(TOOLS):
        call_id = f"toolu_{start:05}{i}"
        arguments = {"path": f"src/case_{start}.py", "limit": 200}
        call = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
        words = {"type": "text", "text": f"I use {tool} next."}
        yield {"role": "assistant", "content": [words, call]}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": next(results)}
        yield {"role": "user", "content": [result]}
    yield {"role": "assistant", "content": f"Case {start} passes now."}
