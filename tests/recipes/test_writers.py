"""Writers of the caller's, and calls that are awaited."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx import (
    OffloadResult,
    StoreError,
    offload_tool_result,
    offload_tool_result_async,
    offload_tool_results,
    offload_tool_results_async,
)
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.messages.shapes.shape import Shape
from policyctx.recipes import Paths
from tests.conversations import results, session_of
from tests.recipes.offloaded import (
    blocks,
    files_in,
    text,
    words,
)
from tests.writers import AwaitedMemory, Full, Memory


def test_a_writer_receives_the_files_that_the_folder_would_have(tmp_path: Path) -> None:
    messages = session_of("x" * 500, blocks(400))
    memory = Memory()
    folder = tmp_path / "out"
    through = offload_tool_results(messages, output_dir=folder, writer=memory)
    assert not folder.exists()
    assert through == offload_tool_results(messages, output_dir=folder)
    assert memory.files == {path: text(path) for path in through.files}


def test_a_writer_is_asked_only_for_names_of_the_call_itself(tmp_path: Path) -> None:
    (tmp_path / "tool-result-a.md").write_text("taken", encoding="utf-8")
    memory = Memory()
    messages = [results(("a", t * 300)) for t in "xx"]
    result = offload_tool_results(messages, output_dir=tmp_path, writer=memory)
    assert [Path(path).name for path in result.files] == ["tool-result-a.md", "tool-result-a-1.md"]
    assert files_in(tmp_path) == {"tool-result-a.md": "taken"}


def test_a_writer_writes_one_result_over_the_earlier(tmp_path: Path) -> None:
    memory = Memory()
    for sign in "xy":
        result = offload_tool_result(
            results(("a", sign * 9)), session_id="s", output_dir=tmp_path, writer=memory
        )
    assert memory.files == {result.file: "y" * 9}
    assert list(tmp_path.iterdir()) == []


def two_calls(folder: Path, writer: Memory | None, **options: Any) -> list[str]:
    """The files of two results of one id; the second call gets the edited list of the first."""
    first = offload_tool_results(
        [results(("b", "x" * 500))], output_dir=folder, writer=writer, **options
    )
    second = offload_tool_results(
        [*first.messages, results(("b", "y" * 500))], output_dir=folder, writer=writer, **options
    )
    assert second.messages[0] == first.messages[0]
    return [*first.files, *second.files]


@pytest.mark.parametrize("paths", ["output_dir", "cwd", "absolute"])
def test_a_writer_keeps_the_file_that_a_placeholder_of_the_list_names(
    tmp_path: Path, paths: Paths
) -> None:
    memory = Memory()
    files = two_calls(tmp_path, memory, paths=paths)
    assert memory.files == dict(zip(files, ["x" * 500, "y" * 500], strict=True))
    assert [Path(path).name for path in files] == ["tool-result-b.md", "tool-result-b-1.md"]
    assert files == two_calls(tmp_path, None, paths=paths)  # as in a folder


SHAPES: dict[str, tuple[tuple[Shape, ...], Callable[[str], Any]]] = {
    "anthropic": ((), lambda text: results(("b", [{"type": "text", "text": text}]))),
    "chat": ((), lambda text: {"role": "tool", "tool_call_id": "b", "content": text}),
    "responses": (
        (),
        lambda text: {"type": "function_call_output", "call_id": "b", "output": text},
    ),
    "bedrock": ((BedrockShape(),), lambda text: _of_bedrock([{"text": text}])),
    "google": ((GoogleShape(),), lambda text: _of_google({"output": text})),
}


def _of_bedrock(content: Any) -> Any:
    return {"role": "user", "content": [{"toolResult": {"toolUseId": "b", "content": content}}]}


def _of_google(response: Any) -> Any:
    found = types.FunctionResponse(id="b", name="f", response=response)
    return types.Content(role="user", parts=[types.Part(function_response=found)])


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_names_the_files_that_an_earlier_call_used(tmp_path: Path, shape: str) -> None:
    shapes, result = SHAPES[shape]
    memory, messages = Memory(), list[Any]()
    for sign in "xyz":
        given = [*messages, result(sign * 500)]
        asked = offload_tool_results_async(
            given, output_dir=tmp_path, writer=memory, shapes=shapes, paths="absolute"
        )
        messages = [*asyncio.run(asked).messages]
    names = ["tool-result-b.md", "tool-result-b-1.md", "tool-result-b-2.md"]
    assert [Path(path).name for path in memory.files] == names
    written = zip(memory.files.values(), "xyz", strict=True)
    assert all(sign * 500 in text for text, sign in written)


def test_a_writer_is_not_called_when_nothing_leaves(tmp_path: Path) -> None:
    messages = [words(500), results(("a", "x" * 99))]
    result = offload_tool_results(messages, output_dir=tmp_path, writer=Full())
    assert result.messages is messages


def test_a_writer_error_is_raised_with_its_message(tmp_path: Path) -> None:
    messages = session_of("x" * 500)
    before = copy.deepcopy(messages)
    with pytest.raises(StoreError, match="No space left on device") as raised:
        offload_tool_results(messages, output_dir=tmp_path, writer=Full())
    assert isinstance(raised.value.__cause__, OSError)
    with pytest.raises(StoreError, match="No space left on device"):
        offload_tool_result(messages[2], session_id="s", output_dir=tmp_path, writer=Full())
    assert messages == before


def test_awaited_calls_return_the_same(tmp_path: Path) -> None:
    messages = session_of("x" * 500)
    all_ = asyncio.run(offload_tool_results_async(messages, output_dir=tmp_path))
    assert all_ == offload_tool_results(messages, output_dir=tmp_path)
    one = asyncio.run(offload_tool_result_async(messages[2], session_id="s", output_dir=tmp_path))
    again = offload_tool_result_async(one.message, session_id="s", output_dir=tmp_path)
    assert asyncio.run(again) == OffloadResult(one.message, 0, one.file)
    assert one == offload_tool_result(messages[2], session_id="s", output_dir=tmp_path)


@pytest.mark.parametrize("kind", [Memory, AwaitedMemory])
def test_awaited_calls_take_both_kinds_of_writer(tmp_path: Path, kind: type[Memory]) -> None:
    messages, memory = session_of("x" * 500), kind()
    all_ = asyncio.run(offload_tool_results_async(messages, output_dir=tmp_path, writer=memory))
    one = asyncio.run(
        offload_tool_result_async(messages[2], session_id="s", output_dir=tmp_path, writer=memory)
    )
    assert memory.files == {all_.files[0]: "x" * 500, one.file: "x" * 500}


def test_awaited_calls_raise_writer_errors(tmp_path: Path) -> None:
    messages = session_of("x" * 500)
    with pytest.raises(StoreError, match="No space left on device"):
        asyncio.run(offload_tool_results_async(messages, output_dir=tmp_path, writer=Full()))
    one = offload_tool_result_async(messages[2], session_id="s", output_dir=tmp_path, writer=Full())
    with pytest.raises(StoreError, match="No space left on device"):
        asyncio.run(one)


def test_calls_that_are_awaited_together_are_independent(tmp_path: Path) -> None:
    memory = AwaitedMemory()

    async def together() -> list[OffloadResult]:
        messages = [results((f"c{i}", str(i) * 1000)) for i in range(9)]
        return await asyncio.gather(
            *(
                offload_tool_result_async(m, session_id="s", output_dir=tmp_path, writer=memory)
                for m in messages
            )
        )

    found = asyncio.run(together())
    assert [memory.files[result.file] for result in found] == [str(i) * 1000 for i in range(9)]
