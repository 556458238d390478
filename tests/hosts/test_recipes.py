"""The calls without a session read and edit the objects of a host by its shape."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import policyctx
from policyctx import MessagesError
from policyctx.recipes import (
    compact_messages,
    compact_messages_async,
    offload_tool_result,
    offload_tool_result_async,
    offload_tool_results,
    offload_tool_results_async,
)
from tests.conversations import results, session_of
from tests.hosts.test_boxed_messages import Box, BoxShape

PLAIN: list[Any] = [*session_of("x" * 9000, "y" * 9000)]
SHAPES = (BoxShape(),)


def boxed(messages: list[Any]) -> list[Any]:
    return [Box(message) for message in messages]


def inner(messages: Any) -> list[Any]:
    return [box.inner for box in messages]


@pytest.mark.parametrize("is_async", [False, True])
def test_long_results_of_a_host_are_offloaded(tmp_path: Path, is_async: bool) -> None:
    expected = offload_tool_results(PLAIN, output_dir=tmp_path)
    given: dict[str, Any] = {"output_dir": tmp_path, "shapes": iter(SHAPES)}
    found = (
        asyncio.run(offload_tool_results_async(boxed(PLAIN), **given))
        if is_async
        else offload_tool_results(boxed(PLAIN), **given)
    )
    assert inner(found.messages) == expected.messages
    assert found.offloaded_count == expected.offloaded_count > 0


@pytest.mark.parametrize("is_async", [False, True])
def test_the_one_result_of_a_message_of_a_host_is_offloaded(tmp_path: Path, is_async: bool) -> None:
    message = results(("a", "x" * 500))
    expected = offload_tool_result(message, session_id="s", output_dir=tmp_path)
    given: dict[str, Any] = {
        "session_id": "s",
        "output_dir": tmp_path,
        "shapes": iter(SHAPES),
    }
    found = (
        asyncio.run(offload_tool_result_async(Box(message), **given))
        if is_async
        else offload_tool_result(Box(message), **given)
    )
    assert found.message.inner == expected.message
    assert found.file == expected.file
    with pytest.raises(MessagesError):
        offload_tool_result(Box(message), session_id="s", output_dir=tmp_path)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_history_of_a_host_is_compacted(tmp_path: Path, is_async: bool) -> None:
    given: dict[str, Any] = {"threshold": 1000, "output_dir": tmp_path, "shapes": SHAPES}
    expected = compact_messages(PLAIN, threshold=1000, output_dir=tmp_path)
    found = (
        asyncio.run(compact_messages_async(boxed(PLAIN), **given))
        if is_async
        else compact_messages(boxed(PLAIN), **given)
    )
    assert found.compacted
    assert found.summary == expected.summary
    assert all(isinstance(message, Box) for message in found.messages)


def test_an_agents_session_has_the_shapes(tmp_path: Path) -> None:
    entry = "apiVersion: policyctx/v1\nagents: {coder: context-offload}\n"
    (tmp_path / "policyctx.yaml").write_text(entry, encoding="utf-8")
    session = policyctx.for_agent("coder", root=tmp_path, directory=tmp_path, shapes=SHAPES)
    assert session.apply(boxed(PLAIN)).offloaded_count > 0
