"""What tests of restarts share: rounds of each shape, sessions, results and steps."""

from __future__ import annotations

import json
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
from tests.conversations import call, calls, chat_calls, chat_result, results
from tests.fuzz.histories import left_by

Round = Callable[[int], list[Any]]


def plain(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def anthropic(i: int) -> list[Message]:
    """A question, an answer with a call, and the result of the call."""
    asked = call(f"c{i}", "Read", {"path": f"{i}.py"})
    asked["content"].insert(0, {"type": "text", "text": f"answer {i}"})
    return [plain("user", f"question {i}"), asked, results((f"c{i}", f"line {i} " * 40))]


def chat(i: int) -> list[Message]:
    asked = chat_calls((f"c{i}", "Read", f'{{"path": "{i}.py"}}'), content=f"answer {i}")
    return [plain("user", f"question {i}"), asked, chat_result(f"c{i}", f"line {i} " * 40)]


def responses(i: int) -> list[Message]:
    asked = {"type": "function_call", "call_id": f"c{i}", "name": "Read", "arguments": "{}"}
    found = {"type": "function_call_output", "call_id": f"c{i}", "output": f"line {i} " * 40}
    return [plain("user", f"question {i}"), plain("assistant", f"answer {i}"), asked, found]


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


def left_of(live: Session, messages: list[Any], shape: str = "anthropic") -> list[Any]:
    """Return what the session leaves of a list; a restarted one leaves the same, and decides
    nothing.
    """
    anew = opened(live.policy, Path(live.store.root), shape).apply(list(messages))
    left = live.apply(list(messages))
    assert list(anew.messages) == list(left.messages)
    assert anew.plan.new == left.plan.new == ()
    assert not anew.compacted
    return list(left.messages)


def picture(shape: str, data: str) -> Message:
    """A block with an image."""
    if shape == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"type": "image", "source": source}
    url = f"data:image/png;base64,{data}"
    if shape == "responses":
        return {"type": "input_image", "image_url": url}
    return {"type": "image_url", "image_url": {"url": url}}


def shown(shape: str, text: str, data: str) -> Message:
    """A message of the user with words and an image."""
    words = {"type": "input_text" if shape == "responses" else "text", "text": text}
    return {"role": "user", "content": [words, picture(shape, data)]}


IMAGE_SHAPES = ("anthropic", "chat", "responses")


def two_calls(shape: str) -> list[Any]:
    """A message with a call of Read and one of Bash, and their results."""
    tools = ("Read", "Bash")
    if shape == "anthropic":
        return [calls(*((tool, tool) for tool in tools)), results(*((tool, "x") for tool in tools))]
    if shape == "bedrock":
        uses = [{"toolUse": {"toolUseId": tool, "name": tool, "input": {}}} for tool in tools]
        found = [{"toolResult": {"toolUseId": tool, "content": [{"text": "x"}]}} for tool in tools]
        return [{"role": "assistant", "content": uses}, {"role": "user", "content": found}]
    parts = [types.Part(function_call=types.FunctionCall(id=t, name=t, args={})) for t in tools]
    answers = [
        types.Part(function_response=types.FunctionResponse(id=t, name=t, response={"result": "x"}))
        for t in tools
    ]
    made = [types.Content(role="model", parts=parts), types.Content(role="user", parts=answers)]
    if shape == "google":
        return made
    return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in made]


TRIM = """\
  - name: trim
    do: compact
    when: {since_last: {messages: {over: 2}}}
    compaction:
      keep_recent: {messages: 1}
      min_new: 0
      summary: {by: none}
      wording: {summary: "[trimmed]"}
"""


def late_result(shape: str, i: int) -> Any:
    """A second result of the call of a round, in words of its own."""
    found = ROUNDS[shape](i)[-1]
    if isinstance(found, types.Content):
        return types.Content.model_validate_json(found.model_dump_json().replace("line ", "late "))
    return json.loads(json.dumps(found).replace("line ", "late "))


def reply(shape: str, text: str) -> Any:
    """Words of the assistant alone."""
    said = ROUNDS[shape](0)[0]
    if isinstance(said, types.Content):
        return types.Content(role="model", parts=[types.Part(text=text)])
    role = "model" if shape == "gemini" else "assistant"
    return json.loads(json.dumps(said).replace("question 0", text)) | {"role": role}


def left_before_decisions(live: Session, messages: list[Any], shape: str) -> list[Any]:
    """Return what earlier decisions leave of a list; after a restart they leave the same."""
    anew = left_by(opened(live.policy, Path(live.store.root), shape), messages)
    left = left_by(live, messages)
    assert anew == left
    return left


DROPPING = {
    "results": "{name: old, do: drop, select: {types: [tool_result], keep_recent: 1}}",
    "calls": "{name: old, do: drop, select: {types: [tool_call], keep_recent: 1}}",
    "turns": "{name: old, do: drop, select: {types: [tool_result], unit: turn, keep_recent: 1}}",
    "on arrival": "{name: old, on: arrival, do: drop, select: {types: [tool_result]}}",
}


def both(one: Any, other: Any) -> Any:
    """A message with the results of two messages."""
    if isinstance(one, types.Content):
        return types.Content(role="user", parts=[*one.parts, *other.parts])
    key = "content" if "content" in one else "parts"
    return one | {key: [*one[key], *other[key]]}


DATA = "iVBORw0KGgo="


def late_picture(shape: str, i: int, *shown: str) -> Any:
    """A second result of the call of a round, with words and images."""
    found, data = late_result(shape, i), shown or (DATA,)
    words = f"late {i} " * 40
    inline = [{"inline_data": {"mime_type": "image/png", "data": one}} for one in data]
    if shape == "google":
        parts = [types.FunctionResponsePart.model_validate(one) for one in inline]
        found.parts[0].function_response.parts = parts
    elif shape == "gemini":
        found["parts"][0]["functionResponse"]["parts"] = [
            {"inlineData": {"mimeType": "image/png", "data": one}} for one in data
        ]
    elif shape == "bedrock":
        held = found["content"][0]["toolResult"]["content"]
        held += [{"image": {"format": "png", "source": {"bytes": one}}} for one in data]
    else:
        pictures = [picture(shape, one) for one in data]
        key = "output" if shape == "responses" else "content"
        kind = "input_text" if shape == "responses" else "text"
        held = found["content"][0] if shape == "anthropic" else found
        held[key] = [{"type": kind, "text": words}, *pictures]
    return found


def call_alone(shape: str, i: int) -> Any:
    """The call of a round without the words before it."""
    asked = ROUNDS[shape](i)[-2]
    if isinstance(asked, types.Content):
        return types.Content(role="model", parts=asked.parts[1:])
    if shape == "responses":
        return asked
    key = "parts" if "parts" in asked else "content"
    return asked | {key: None if shape == "chat" else asked[key][1:]}


def dropping(select: str) -> str:
    return f"  - {{name: old, do: drop, select: {{{select}}}}}\n"


def compacting(over: int, settings: str) -> str:
    when = f"{{messages: {{over: {over}}}}}"
    shrinks = "summary: {must_shrink_to: false}"
    return (
        f"  - {{name: compact, do: compact, when: {when}, compaction: {{{settings}, {shrinks}}}}}\n"
    )


EQUAL = (
    "  - {name: words, do: clear, placeholder: '[gone]', must_shrink: false,"
    " select: {types: [user_message], keep_recent: 0}}\n"
    "  - {name: second, do: drop, when: {messages: {over: OVER}},"
    " select: {types: [user_message], keep_first: {messages: 1}, keep_recent: 2}}\n"
)
