"""Texts that stand where nothing else would be left; providers refuse an empty one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from tests.conversations import (
    Message,
    calls,
    chat_calls,
    chat_result,
    picture,
    results,
    session_of,
    user,
)
from tests.policies import policy

DROPPING = """\
    items: {image: {offload: true}}
    store: {sync: never}
    steps: [{name: images, do: drop, select: {types: [image]}}]
    """
LEFT = "[Content removed]"
URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
FUNCTION_CALL = {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}


def function_result(content: Any) -> Message:
    return {"role": "function", "name": "look", "content": content}


def applied(messages: list[Message], root: Path, text: str = DROPPING) -> list[Message]:
    session = Session(policy(text), root=root, session_id="s")
    left = list(session.apply(messages).messages)
    restarted = Session(policy(text), root=root, session_id="s")
    assert restarted.apply(messages).messages == left
    assert restarted.apply(left).messages is left
    return left


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("error", [False, True])
def test_a_result_without_its_only_images_has_a_short_text(
    error: bool, count: int, tmp_path: Path
) -> None:
    images = [picture(f"AAA{i}") for i in range(count)]
    messages = [user(), calls(("a", "look")), results(("a", images), error=error), user()]
    [block] = applied(messages, tmp_path)[2]["content"]
    assert block["content"] == LEFT
    assert block.get("is_error", False) is error


@pytest.mark.parametrize("count", [1, 2])
def test_a_chat_result_without_its_only_images_has_a_short_text(count: int, tmp_path: Path) -> None:
    chat = [user(), chat_calls(("a", "look", "{}")), chat_result("a", [URL] * count), user()]
    assert applied(chat, tmp_path / "chat")[2]["content"] == LEFT
    legacy = [user(), FUNCTION_CALL, function_result([URL] * count), user()]
    assert applied(legacy, tmp_path / "legacy")[2]["content"] == LEFT


def test_the_remaining_blocks_of_a_result_are_unchanged(tmp_path: Path) -> None:
    text = {"type": "text", "text": "a picture"}
    left = applied(session_of([text, picture()]), tmp_path)
    assert left[2]["content"][0]["content"] == [text]


def test_explain_reports_that_a_result_was_emptied(tmp_path: Path) -> None:
    session = Session(policy(DROPPING), root=tmp_path, session_id="s")
    plan = session.apply(session_of([picture()])).plan
    result, image = plan.decision(2), plan.decision(3)
    assert (result.action, result.reason.code) == ("keep", "emptied")
    assert image.action == "drop"


@pytest.mark.parametrize("wording", ["{tool_name}", " "])
def test_an_empty_placeholder_is_replaced_by_a_short_text(wording: str, tmp_path: Path) -> None:
    text = f"""\
        items: {{user_message: {{offload: true}}}}
        store: {{sync: never}}
        steps:
          - name: words
            do: offload
            must_shrink: false
            placeholder: "{wording}"
            select: {{types: [user_message], keep_recent: 1}}
        """
    messages = [user("the task"), {"role": "assistant", "content": "done"}, user("more")]
    assert applied(messages, tmp_path, text)[0] == user(LEFT)
