"""The tools that read offloaded content back, in the form of each API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from anthropic.types import ToolUseBlock
from openai.types.chat import ChatCompletionMessageToolCall
from openai.types.responses import ResponseFunctionToolCall

from policyctx import Session
from policyctx.integrations.tools import ReadBackTools
from tests.conversations import call, chat_calls, session_of
from tests.policies import policy

LARGE = "x" * 400
POLICY = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps:
      - {name: a, on: arrival, do: offload, select: {types: [tool_result], min_chars: 300}}
      - {name: b, do: offload, select: {types: [tool_result], min_chars: 300}}
    """


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(POLICY), root=tmp_path, session_id="s")


@pytest.fixture
def tools(session: Session) -> ReadBackTools:
    session.apply(session_of(LARGE))
    return ReadBackTools(session)


def forms(name: str, given: Any) -> list[Any]:
    """The same call as a dict and as an SDK's object, in the three shapes."""
    text = json.dumps(given)
    [chat] = chat_calls(("t", name, text))["tool_calls"]
    response = {"type": "function_call", "call_id": "t", "name": name, "arguments": text}
    return [
        call("t", name, given)["content"][0],
        ToolUseBlock(type="tool_use", id="t", name=name, input=given),
        chat,
        ChatCompletionMessageToolCall.model_validate(chat),
        response,
        ResponseFunctionToolCall.model_validate(response),
    ]


def answered(text: str) -> list[dict[str, Any]]:
    block = {"type": "tool_result", "tool_use_id": "t", "content": text}
    message = {"role": "tool", "tool_call_id": "t", "content": text}
    item = {"type": "function_call_output", "call_id": "t", "output": text}
    return [block, block, message, message, item, item]


def test_a_call_is_answered_in_its_own_shape(tools: ReadBackTools) -> None:
    reading = forms("read_offloaded", {"path": "c0", "offset": None, "limit": "7"})
    assert [tools.answer(one) for one in reading] == answered(LARGE)
    found = f"tool_result/Bash/c0.md:1: {'x' * 123}"
    answers = [tools.answer(one) for one in forms("search_offloaded", {"query": "XXX"})]
    texts = [(a or {}).get("content") or (a or {}).get("output") for a in answers]
    assert [str(text).split("\n")[0] for text in texts] == [found] * 6


def test_a_call_of_another_tool_is_not_answered(tools: ReadBackTools) -> None:
    for one in [*forms("Bash", {"path": "c0"}), {"type": "text", "text": "hi"}, None]:
        assert tools.answer(one) is None


def test_an_error_is_marked_as_one(tools: ReadBackTools) -> None:
    [block, *_] = [tools.answer(one) for one in forms("read_offloaded", {"path": "c9"})]
    assert block is not None
    assert block["is_error"]
    assert "no offloaded content 'c9'" in block["content"]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"path": ', "the input is not JSON"),
        ("[1]", "the input is not a JSON object"),
        ("", "path must be"),
        ("{}", "path must be"),
        ('{"path": "c0", "root": "/", "session": "x"}', "unknown input root, session"),
    ],
)
def test_wrong_input_is_answered(arguments: str, answer: str, tools: ReadBackTools) -> None:
    [one] = chat_calls(("t", "read_offloaded", arguments))["tool_calls"]
    assert answer in (tools.answer(one) or {})["content"]


def test_the_schemas_are_those_of_each_api(tools: ReadBackTools) -> None:
    of_chat = [tool["function"] for tool in tools.for_chat]
    for tool, other, flat in zip(tools.for_anthropic, of_chat, tools.for_responses, strict=True):
        jsonschema.Draft202012Validator.check_schema(tool["input_schema"])
        assert tool["input_schema"] == other["parameters"] == flat["parameters"]
        assert tool["name"] == other["name"] == flat["name"]
        assert not {"root", "session"} & tool["input_schema"]["properties"].keys()


def test_the_functions_make_tools_of_an_sdk(tools: ReadBackTools) -> None:
    from anthropic import beta_tool  # noqa: PLC0415 - imported where it is wrapped

    read, search = (beta_tool(function) for function in tools.functions)
    schema: Any = read.to_dict()["input_schema"]
    assert (read.name, search.name) == ("read_offloaded", "search_offloaded")
    assert schema["required"] == ["path"]
    assert "id of the item" in schema["properties"]["path"]["description"]
    assert read.call({"path": "c0"}) == LARGE


def test_what_was_read_back_is_not_taken_on_arrival(session: Session) -> None:
    tools = ReadBackTools(session)
    messages = session_of(LARGE)
    session.apply(messages)
    [block, *_] = forms("read_offloaded", {"path": "c0"})
    asked = {"role": "assistant", "content": [block]}
    answer = {"role": "user", "content": [tools.answer(block)]}
    arrived = session.on_tool_result(answer, call=asked)
    assert (arrived.offloaded_count, arrived.plan.new) == (0, ())
    assert session.apply([*messages, asked, answer]).plan.new == ()


def test_a_policy_without_state_does_not_take_it_on_arrival_either(tmp_path: Path) -> None:
    session = Session("tool-direct-offload", root=tmp_path, session_id="s")
    big = "y" * 2000
    taken = session.on_tool_result(session_of(big)[2], call=session_of(big)[1])
    [path] = taken.files
    [block, *_] = forms("read_offloaded", {"path": path})
    answer = ReadBackTools(session).answer(block)
    assert (answer or {})["content"] == big
    asked = {"role": "assistant", "content": [block]}
    again = session.on_tool_result({"role": "user", "content": [answer]}, call=asked)
    assert again.offloaded_count == 0
