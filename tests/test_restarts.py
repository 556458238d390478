"""A session that knows only what the store holds continues as the live one, in all shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx import Shape
from policyctx.definitions.items import Message
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.planning.compiled import OffloadPolicy
from policyctx.session import Session
from tests.conversations import call, chat_calls, chat_result, results
from tests.policies import policy

Round = Callable[[int], list[Any]]


def _said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def anthropic(i: int) -> list[Message]:
    """A question, an answer with a call, and the result of the call."""
    asked = call(f"c{i}", "Read", {"path": f"{i}.py"})
    asked["content"].insert(0, {"type": "text", "text": f"answer {i}"})
    return [_said("user", f"question {i}"), asked, results((f"c{i}", f"line {i} " * 40))]


def chat(i: int) -> list[Message]:
    asked = chat_calls((f"c{i}", "Read", f'{{"path": "{i}.py"}}'), content=f"answer {i}")
    return [_said("user", f"question {i}"), asked, chat_result(f"c{i}", f"line {i} " * 40)]


def responses(i: int) -> list[Message]:
    asked = {"type": "function_call", "call_id": f"c{i}", "name": "Read", "arguments": "{}"}
    found = {"type": "function_call_output", "call_id": f"c{i}", "output": f"line {i} " * 40}
    return [_said("user", f"question {i}"), _said("assistant", f"answer {i}"), asked, found]


def bedrock(i: int) -> list[Message]:
    use = {"toolUse": {"toolUseId": f"c{i}", "name": "Read", "input": {}}}
    found = {"toolResult": {"toolUseId": f"c{i}", "content": [{"text": f"line {i} " * 40}]}}
    return [
        {"role": "user", "content": [{"text": f"question {i}"}]},
        {"role": "assistant", "content": [{"text": f"answer {i}"}, use]},
        {"role": "user", "content": [found]},
    ]


def google(i: int) -> list[types.Content]:
    asked = types.FunctionCall(id=f"c{i}", name="Read", args={})
    found = types.FunctionResponse(id=f"c{i}", name="Read", response={"result": f"line {i} " * 40})
    return [
        types.Content(role="user", parts=[types.Part(text=f"question {i}")]),
        types.Content(
            role="model",
            parts=[types.Part(text=f"answer {i}"), types.Part(function_call=asked)],
        ),
        types.Content(role="user", parts=[types.Part(function_response=found)]),
    ]


def gemini(i: int) -> list[Message]:
    """The same contents as the dicts that Gemini's API takes."""
    dumped = (one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in google(i))
    return list(dumped)


ROUNDS: dict[str, Round] = {
    one.__name__: one for one in (anthropic, chat, responses, bedrock, google, gemini)
}
HOSTS: dict[str, tuple[Shape, ...]] = {"bedrock": (BedrockShape(),), "google": (GoogleShape(),)}
in_all_shapes = pytest.mark.parametrize("shape", ROUNDS)


def opened(compiled: OffloadPolicy, root: Path, shape: str = "anthropic") -> Session:
    """Return a session that knows what the store holds."""
    return Session(compiled, root=root, session_id="s", shapes=HOSTS.get(shape, ()))


EDITS = {
    "offloaded results": "{name: edit, do: offload, select: {types: [tool_result]}}",
    "dropped questions": "{name: edit, do: drop, select: {types: [user_message]}}",
    "dropped results": "{name: edit, do: drop, select: {types: [tool_result], keep_recent: 1}}",
}


@in_all_shapes
@pytest.mark.parametrize("edit", EDITS)
def test_every_compaction_of_an_edited_list_applies_again_after_a_restart(
    edit: str, shape: str, tmp_path: Path
) -> None:
    """The caller sends its own list, or once more the list that it was handed the turn before."""
    compiled = policy(f"""\
        items:
          tool_result: {{offload: true}}
          user_message: {{offload: true, keep_recent: 1}}
        min_chars: 0
        store: {{sync: never}}
        steps:
          - {EDITS[edit]}
          - name: compact
            do: compact
            when: {{messages: {{over: 7}}}}
            compaction:
              keep_recent: {{messages: 4}}
              keep_first: 2
              summary: {{must_shrink_to: false}}
        """)
    live = opened(compiled, tmp_path, shape)
    full: list[Any] = []
    back: list[Any] = []
    compactions = 0
    for i in range(6):
        full += ROUNDS[shape](i)
        given = [*back, *ROUNDS[shape](i)]
        result = live.apply(list(full))
        compactions += result.compacted is True
        for again in (full, given):
            anew = opened(compiled, tmp_path, shape).apply(list(again))
            assert not anew.compacted
            assert list(anew.messages) == list(result.messages)
            assert anew.plan.new == ()
        back = list(result.messages)
    assert compactions > 1
