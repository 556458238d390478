"""The scripted server refuses what the APIs refuse."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tests.conversations import chat_calls, chat_result, user
from tests.integrations.openai_api import openai_api
from tests.integrations.openai_rules import Body, chat_refusal, responses_refusal, sealed

SEARCH = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "x"}}
CALL = {"type": "function_call", "id": "fc", "call_id": "a", "name": "Read", "arguments": "{}"}
MADE: dict[str, Body] = {"ws": SEARCH, "fc": {**CALL, "_reasoning": "rs"}}


def valid_chat() -> Body:
    """A request with a system message, parallel calls and parts."""
    parts = [{"type": "text", "text": "And?"}, {"type": "image_url", "image_url": {"url": "u"}}]
    return {
        "model": "gpt-some",
        "messages": [
            {"role": "system", "content": "Be brief."},
            user("Read both."),
            chat_calls(("a", "Read", "{}"), ("b", "Read", "{}")),
            chat_result("b", ""),
            chat_result("a", "text"),
            {"role": "user", "content": parts},
            {"role": "assistant", "content": "So.", "refusal": None, "annotations": []},
            user("Go on."),
        ],
    }


def valid_responses() -> Body:
    """A request with reasoning, calls, a hosted search and parts."""
    parts = [{"type": "input_text", "text": "And?"}]
    said = {"type": "output_text", "text": "So.", "annotations": []}
    return {
        "model": "gpt-some",
        "instructions": "Be brief.",
        "input": [
            user("Read it."),
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": sealed("rs")},
            {**CALL},
            {"type": "function_call_output", "call_id": "a", "output": "text"},
            {"type": "message", "role": "user", "content": parts},
            {**SEARCH},
            {"type": "message", "role": "assistant", "id": "m", "content": [said]},
            user("Go on."),
        ],
    }


def item(body: Body, number: int) -> Any:
    return body["messages" if "messages" in body else "input"][number]


WRONG_CHATS: dict[str, tuple[Callable[[Body], object], str]] = {
    "an unknown field": (lambda b: b.update(x=1), "Unrecognized request argument"),
    "no message": (lambda b: b.update(messages=[]), "empty array"),
    "stream options": (lambda b: b.update(stream_options={}), "only allowed when 'stream'"),
    "a role": (lambda b: item(b, 1).update(role="function_call_output"), "Invalid value"),
    "a field of a message": (lambda b: item(b, 1).update(id=1), "Unknown parameter"),
    "no content": (lambda b: item(b, 1).update(content=None), "got null"),
    "empty content": (lambda b: item(b, 5).update(content=[]), "empty array"),
    "a part": (lambda b: item(b, 5)["content"][0].update(type="tool_result"), "Invalid value"),
    "a field of a part": (lambda b: item(b, 5)["content"][0].update(x=1), "Unknown parameter"),
    "no calls": (lambda b: item(b, 6).update(tool_calls=[]), "empty array"),
    "arguments": (lambda b: item(b, 2)["tool_calls"][0]["function"].update(arguments={}), "type"),
    "an unanswered call": (lambda b: b["messages"].pop(3), "did not have response messages"),
    "a result without a call": (lambda b: b["messages"].pop(2), "must be a response"),
    "a message between": (lambda b: b["messages"].insert(3, user()), "must be followed by"),
    "an unanswered last call": (lambda b: b["messages"].append(chat_calls(("z", "R", "{}"))), "z"),
}
WRONG_RESPONSES: dict[str, tuple[Callable[[Body], object], str]] = {
    "an unknown field": (lambda b: b.update(x=1), "Unknown parameter: 'x'"),
    "no item": (lambda b: b.update(input=[]), "empty array"),
    "a type": (lambda b: item(b, 0).update(type="text"), "Invalid value: 'text'"),
    "a role": (lambda b: item(b, 0).update(role="tool"), "Invalid value: 'tool'"),
    "a field of an item": (lambda b: item(b, 3).update(x=1), "Unknown parameter"),
    "a missing field": (lambda b: item(b, 3).pop("output"), "Missing required parameter"),
    "empty content": (lambda b: item(b, 4).update(content=[]), "empty array"),
    "a part": (lambda b: item(b, 4)["content"][0].update(type="output_text"), "Invalid value"),
    "a part of a reply": (lambda b: item(b, 6)["content"][0].update(type="input_text"), "Invalid"),
    "arguments": (lambda b: item(b, 2).update(arguments={}), "Invalid type"),
    "an unanswered call": (lambda b: b["input"].pop(3), "No tool output found"),
    "a result without a call": (lambda b: b["input"].pop(2), "No tool call found"),
    "a second result": (lambda b: b["input"].insert(3, item(b, 3)), "No tool call found"),
    "reasoning alone": (lambda b: b["input"].insert(2, user()), "required following item"),
    "no reasoning": (lambda b: b["input"].pop(1), "without its required 'reasoning' item"),
    "changed reasoning": (lambda b: item(b, 1).update(encrypted_content="x"), "not be verified"),
    "a changed search": (lambda b: item(b, 5).update(action={}), "was changed"),
}


def test_valid_requests_are_accepted() -> None:
    assert chat_refusal(valid_chat()) is None
    assert responses_refusal(valid_responses(), MADE) is None
    assert responses_refusal({"model": "gpt-some", "input": "Go."}) is None


@pytest.mark.parametrize("case", WRONG_CHATS)
def test_an_invalid_chat_is_refused(case: str) -> None:
    body = copy.deepcopy(valid_chat())
    change, reason = WRONG_CHATS[case]
    change(body)
    assert reason in str(chat_refusal(body))


@pytest.mark.parametrize("case", WRONG_RESPONSES)
def test_an_invalid_response_request_is_refused(case: str) -> None:
    body = copy.deepcopy(valid_responses())
    change, reason = WRONG_RESPONSES[case]
    change(body)
    assert reason in str(responses_refusal(body, MADE))


def test_the_sdk_raises_for_a_refused_request_and_for_one_over_the_window() -> None:
    with (
        openai_api(window=1000) as api,
        openai.OpenAI(base_url=api.url, api_key="k", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="m", input=[])
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x" * 9000}]
            )
        assert ["empty" in api.refused[0], "maximum context" in api.refused[1]] == [True, True]
