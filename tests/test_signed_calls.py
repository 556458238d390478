"""Parallel calls of which Gemini signs only the first: it stays while a later one stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from google.genai import types

from policyctx import Session
from policyctx.integrations.google_contents import GoogleShape
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

Turn = Callable[[int], list[Any]]
LINES = "a line of what was found\n" * 30
OF_ONE_TOOL = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [tool_call], tools: [TOOL], keep_recent: 1}}]
    """
OF_ALL = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [tool_call], keep_recent: 1}}]
    """


def chat(signature: dict[str, Any]) -> Turn:
    def turn(i: int) -> list[Any]:
        names = {f"a{i}": "search", f"b{i}": "read"}
        made: list[dict[str, Any]] = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for key, name in names.items()
        ]
        made[0] |= signature
        results = [{"role": "tool", "tool_call_id": key, "content": LINES} for key in names]
        return [{"role": "assistant", "content": None, "tool_calls": made}, *results]

    return turn


def content(i: int) -> list[Any]:
    names = {f"a{i}": "search", f"b{i}": "read"}
    made: list[dict[str, Any]] = [
        {"functionCall": {"id": key, "name": name, "args": {}}} for key, name in names.items()
    ]
    made[0]["thoughtSignature"] = "c2ln"
    found = [
        {"functionResponse": {"id": key, "name": name, "response": {"output": LINES}}}
        for key, name in names.items()
    ]
    return [{"role": "model", "parts": made}, {"role": "user", "parts": found}]


def of_sdk(i: int) -> list[Any]:
    return [types.Content.model_validate(message) for message in content(i)]


TURNS = {
    "contents": content,
    "sdk": of_sdk,
    "google": chat({"extra_content": {"google": {"thought_signature": "c2ln"}}}),
    "litellm": chat({"provider_specific_fields": {"thought_signature": "c2ln"}}),
}
USER = {"role": "user", "content": "Find it."}
PROMPTS = {
    "contents": {"role": "user", "parts": [{"text": "Find it."}]},
    "sdk": types.Content(role="user", parts=[types.Part(text="Find it.")]),
}
SHAPES = pytest.mark.parametrize("of", TURNS)


def steps_of(messages: Sequence[Any]) -> list[list[str]]:
    """Return the tools that are called, by message; a signed call has a star."""
    made = [_calls(m if isinstance(m, dict) else m.model_dump(exclude_none=True)) for m in messages]
    return [calls for calls in made if calls]


def _calls(message: dict[str, Any]) -> list[str]:
    calls = [*(message.get("tool_calls") or ()), *message.get("parts", ())]
    named = ((call, _name(call)) for call in calls)
    return [name + "*" * ("ignature" in str(call)) for call, name in named if name]


def _name(call: dict[str, Any]) -> str:
    fields = ("function", "functionCall", "function_call")
    return next((str(call[field]["name"]) for field in fields if field in call), "")


def after_turns(text: str, of: str) -> list[list[str]]:
    shapes, prompt = (GoogleShape(),) if of == "sdk" else (), PROMPTS.get(of, USER)
    session = Session(policy(text), session_id="s", store=MemoryStore(), shapes=shapes)
    messages = [prompt]
    for i in range(4):
        messages += [*TURNS[of](i), prompt]
        sent = session.apply(messages).messages
        restarted = Session(session.policy, session_id="s", store=session.store, shapes=shapes)
        assert restarted.apply(messages).messages == sent
    return steps_of(sent)


@SHAPES
def test_a_signed_call_stays_with_the_later_calls_of_its_message(of: str) -> None:
    found = after_turns(OF_ONE_TOOL.replace("TOOL", "search"), of)
    assert found == [["search*", "read"]] * 4


@SHAPES
def test_a_later_call_leaves_without_the_signed_one(of: str) -> None:
    found = after_turns(OF_ONE_TOOL.replace("TOOL", "read"), of)
    assert found == [["search*"]] * 3 + [["search*", "read"]]


@SHAPES
def test_all_calls_of_a_message_leave_in_one_turn(of: str) -> None:
    assert after_turns(OF_ALL, of) == [["search*", "read"]]
