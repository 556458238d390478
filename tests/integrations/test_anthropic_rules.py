"""The scripted server refuses what the API refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from tests.integrations.anthropic_api import anthropic_api
from tests.integrations.anthropic_rules import Body, refusal, signed

MARKER = {"type": "ephemeral"}


def valid() -> Body:
    """A request with thinking, parallel calls, a server tool, an image and four markers."""
    hour = {"type": "ephemeral", "ttl": "1h"}
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A"}}
    return {
        "model": "claude-some",
        "max_tokens": 100,
        "thinking": {"type": "enabled", "budget_tokens": 50},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": hour}],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}, "cache_control": hour}],
        "messages": [
            {"role": "user", "content": "Read both."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": signed("hm")},
                    {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "Read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "text"},
                    {"type": "tool_result", "tool_use_id": "b", "content": [image]},
                    {"type": "text", "text": "And?", "cache_control": MARKER},
                ],
            },
            {"role": "assistant", "content": [search, found, {"type": "text", "text": "So."}]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Go on.", "cache_control": MARKER}],
            },
        ],
    }


def content(body: Body, message: int) -> list[Any]:
    found: list[Any] = body["messages"][message]["content"]
    return found


def without_thinking(body: Body) -> None:
    del content(body, 1)[0], body["messages"][3:]


WRONG: dict[str, tuple[Callable[[Body], object], str]] = {
    "an unknown field": (lambda b: b.update(x=1), "x: Extra inputs are not permitted"),
    "no max_tokens": (lambda b: b.pop("max_tokens"), "max_tokens: Field required"),
    "no message": (lambda b: b.update(messages=[]), "at least one message"),
    "a field of a message": (lambda b: b["messages"][0].update(id=1), "Extra inputs"),
    "a role": (lambda b: b["messages"][0].update(role="system"), "role"),
    "an empty text": (lambda b: b["messages"][0].update(content=""), "non-empty content"),
    "an empty list": (lambda b: b["messages"][0].update(content=[]), "non-empty content"),
    "a blank text": (lambda b: content(b, 4)[0].update(text=" "), "non-whitespace"),
    "the first message": (lambda b: b["messages"].pop(0), "first message must use the `user` role"),
    "a prefill": (lambda b: b["messages"].pop(), "prefill"),
    "an unknown block": (lambda b: content(b, 4)[0].update(type="note"), "does not match"),
    "a field of a block": (lambda b: content(b, 2)[0].update(x=1), "Extra inputs"),
    "a missing field": (lambda b: content(b, 1)[1].pop("input"), "Field required"),
    "a result of an assistant": (lambda b: content(b, 3).append(content(b, 2)[0]), "tag"),
    "an unanswered call": (lambda b: content(b, 2).pop(0), "without `tool_result` blocks"),
    "a result without a call": (lambda b: content(b, 1).pop(1), "unexpected `tool_use_id`"),
    "a text before results": (lambda b: content(b, 2).reverse(), "must come first"),
    "two results of a call": (lambda b: content(b, 2).insert(0, content(b, 2)[0]), "single result"),
    "thinking that changed": (lambda b: content(b, 1)[0].update(thinking="h"), "signature"),
    "thinking that is gone": (without_thinking, "must start with thinking"),
    "a server tool's result": (lambda b: content(b, 3).pop(1), "`server_tool_use`"),
    "a fifth marker": (lambda b: content(b, 2)[0].update(cache_control=MARKER), "maximum of 4"),
    "an hour after minutes": (lambda b: b["tools"][0].update(cache_control=MARKER), "ttl='1h'"),
    "a time to live": (lambda b: b["tools"][0]["cache_control"].update(ttl="2h"), "ttl"),
    "two tools of a name": (lambda b: b["tools"].append(b["tools"][0]), "unique"),
}


def test_a_valid_request_is_accepted() -> None:
    assert refusal(valid()) is None


@pytest.mark.parametrize("case", WRONG)
def test_an_invalid_request_is_refused(case: str) -> None:
    body = copy.deepcopy(valid())
    change, reason = WRONG[case]
    change(body)
    assert reason in str(refusal(body))


def test_the_sdk_raises_for_a_refused_request_and_for_one_over_the_window() -> None:
    with (
        anthropic_api(window=1000) as api,
        anthropic.Anthropic(base_url=api.url, api_key="k", max_retries=0) as client,
    ):
        for text in ("", "x" * 9000):
            with pytest.raises(anthropic.BadRequestError):
                client.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": text}]
                )
        assert [reason.split(":")[0] for reason in api.refused] == [
            "messages.0",
            "prompt is too long",
        ]
