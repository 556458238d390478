"""The document "tool direct offload", row by row."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path

import pytest

from policyctx import (
    MessagesError,
    OffloadResult,
    StoreError,
    offload_tool_result_async,
    offload_tool_results,
)
from tests.conversations import Message, calls, results, user
from tests.recipes.offloaded import (
    TOOL_ID,
    blocks,
    content,
    files_in,
    single,
    text,
    words,
)


def test_one_result_goes_to_the_folder_of_its_session(tmp_path: Path) -> None:
    result = single(results(("toolu_xyz", "x" * 1000)), tmp_path / "out" / "deep")
    path = tmp_path / "out" / "deep" / "session-abc123" / "toolu_xyz.md"
    assert result.file == str(path)
    assert text(path) == "x" * 1000
    assert content(result.message) == f"[Tool result offloaded to file: {path}]"


def test_the_path_is_absolute_where_the_folder_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = single(results(("toolu_xyz", "x" * 1000)), Path(".offload"))
    assert result.file == str(tmp_path / ".offload" / "session-abc123" / "toolu_xyz.md")
    assert content(result.message) == f"[Tool result offloaded to file: {result.file}]"


def test_the_json_of_one_result_of_blocks_is_the_file(tmp_path: Path) -> None:
    found = [*blocks(600), {"type": "text", "text": "读\n"}, *blocks(600)]
    result = single(results(("a", found)), tmp_path)
    assert text(result.file) == json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    assert isinstance(content(result.message), str)


@pytest.mark.parametrize("found", ["x" * 1000, "x" * 999, "x", "", [], blocks(50), None])
def test_one_result_leaves_at_any_length(tmp_path: Path, found: object) -> None:
    result = single(results(("a", found)), tmp_path)
    assert content(result.message) == f"[Tool result offloaded to file: {result.file}]"
    assert Path(result.file).is_file()


@pytest.mark.parametrize("size", [5000, 3])
def test_freed_characters_are_net_of_the_placeholder(tmp_path: Path, size: int) -> None:
    result = single(results(("a", "x" * size)), tmp_path)
    assert result.freed_chars == size - len(content(result.message))


def test_the_message_comes_back_as_a_deep_copy(tmp_path: Path) -> None:
    message = results(("a", "x" * 1000))
    message["content"].insert(0, {"type": "text", "text": "see", "meta": {"seen": []}})
    before = copy.deepcopy(message)
    result = single(message, tmp_path)
    result.message["content"][0]["meta"]["seen"].append("changed")
    result.message["content"][1]["more"] = True
    assert message == before


def test_a_tool_message_of_the_chat_api_is_one_result(tmp_path: Path) -> None:
    message = {"role": "tool", "tool_call_id": "call_1", "content": "x" * 1000}
    result = single(message, tmp_path)
    assert result.message == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": f"[Tool result offloaded to file: {tmp_path}/session-abc123/call_1.md]",
    }


@pytest.mark.parametrize("role", ["tool", "function"])
def test_a_tool_message_with_a_result_block_is_one_result(tmp_path: Path, role: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "toolu_xyz", "content": "x" * 1000}
    message: Message = {
        "role": role,
        "content": [{**block, "cache_control": {"type": "ephemeral"}}],
    }
    before = copy.deepcopy(message)
    result = single(message, tmp_path)
    path = tmp_path / "session-abc123" / "toolu_xyz.md"
    assert (result.file, text(path)) == (str(path), "x" * 1000)
    new = {**before["content"][0], "content": f"[Tool result offloaded to file: {path}]"}
    assert result.message == {"role": role, "content": [new]}
    assert message == before


def test_the_result_of_a_legacy_function_is_named_by_the_function(tmp_path: Path) -> None:
    first, second = (
        single({"role": "function", "name": "get_weather", "content": sign * 1000}, tmp_path)
        for sign in "xy"
    )
    assert Path(first.file).name.startswith("get_weather-sha256-")
    assert (text(first.file), text(second.file)) == ("x" * 1000, "y" * 1000)
    placeholder = f"[Tool result offloaded to file: {first.file}]"
    assert first.message == {"role": "function", "name": "get_weather", "content": placeholder}


def test_a_failed_result_leaves_like_any_other(tmp_path: Path) -> None:
    result = single(results(("a", "x" * 1000), error=True), tmp_path)
    assert result.message["content"][0]["is_error"] is True
    assert text(result.file) == "x" * 1000


def test_a_second_result_of_one_id_overwrites_the_first(tmp_path: Path) -> None:
    first = single(results(("a", "x" * 1000)), tmp_path)
    second = single(results(("a", "y" * 1200)), tmp_path)
    assert first.file == second.file
    assert files_in(tmp_path) == {"session-abc123/a.md": "y" * 1200}


@pytest.mark.parametrize(
    "message",
    [
        results(("a", "x" * 1000)),
        results(("call_1|fc_" + "f" * 100, "x" * 1000)),
        results(("", "x" * 1000)),
        {"role": "tool", "tool_call_id": "call_1", "content": "x" * 1000},
        {"role": "tool", "content": "x" * 1000},
        {"role": "function", "name": "get_weather", "content": "x" * 1000},
        {**results(("a", "x" * 1000)), "role": "tool"},
    ],
)
def test_an_offloaded_message_is_not_offloaded_again(tmp_path: Path, message: Message) -> None:
    first = single(message, tmp_path)
    second = single(first.message, tmp_path)
    assert second == OffloadResult(first.message, 0, first.file)
    assert second.message is not first.message
    assert list(files_in(tmp_path).values()) == ["x" * 1000]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_that_reads_like_a_placeholder_of_no_file_is_written(
    tmp_path: Path, *, is_async: bool
) -> None:
    path = tmp_path / "session-abc123/a.md"
    forged = f"[Tool result offloaded to file: {path}]"
    message = results(("a", forged))
    if is_async:
        made = offload_tool_result_async(message, session_id="session-abc123", output_dir=tmp_path)
        result = asyncio.run(made)
    else:
        result = single(message, tmp_path)
    assert (result.file, text(path)) == (str(path), forged)
    assert result.message == message


@pytest.mark.parametrize("way", ["out/other/..", "other/../out", "out/s/../other/.."])
def test_the_folders_that_a_forged_placeholder_names_are_not_made(tmp_path: Path, way: str) -> None:
    forged = f"[Tool result offloaded to file: {tmp_path}/{way}/session-abc123/a.md]"
    result = single(results(("a", forged)), tmp_path / "out")
    assert text(result.file) == forged
    assert content(result.message) == f"[Tool result offloaded to file: {result.file}]"
    folders = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_dir()}
    assert folders == {"out", "out/session-abc123"}


def test_a_file_that_cannot_be_read_is_not_overwritten_by_its_placeholder(tmp_path: Path) -> None:
    first = single(results(("a", "x" * 1000)), tmp_path)
    path = Path(first.file)
    path.write_bytes(b"\xff" + b"x" * 1000)
    again = single(first.message, tmp_path)
    assert (again.file, again.freed_chars) == (str(path), 0)
    assert path.read_bytes() == b"\xff" + b"x" * 1000


def test_a_placeholder_of_another_folder_is_a_result_like_any_other(tmp_path: Path) -> None:
    first = single(results(("a", "x" * 1000)), tmp_path / "one")
    second = single(first.message, tmp_path / "two")
    assert text(second.file) == content(first.message)
    assert text(first.file) == "x" * 1000


@pytest.mark.parametrize(
    ("first", "second"),
    [("real", "link"), ("link", "real"), ("real/../real", "real"), ("real", "link/../real")],
)
def test_a_folder_that_is_spelled_in_another_way_keeps_the_only_copy(
    tmp_path: Path, first: str, second: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    once = single(results((TOOL_ID, "the only copy")), tmp_path / first)
    again = single(once.message, tmp_path / second)
    assert text(once.file) == "the only copy"
    assert again == OffloadResult(once.message, 0, once.file)


def test_sessions_do_not_share_files(tmp_path: Path) -> None:
    for session_id in ("one", "two"):
        single(results(("a", session_id * 500)), tmp_path, session_id)
    assert set(files_in(tmp_path)) == {"one/a.md", "two/a.md"}


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "", "读", "i" * 4096])
def test_neither_id_nor_session_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    path = Path(single(results((name, "x" * 1000)), tmp_path / "out", name).file)
    assert path.parent.parent == tmp_path / "out"
    assert text(path) == "x" * 1000


def test_one_result_that_cannot_be_written_is_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    message = results(("a", "x" * 1000))
    before = copy.deepcopy(message)
    with pytest.raises(StoreError, match="Not a directory"):
        single(message, tmp_path / "file")
    assert message == before


@pytest.mark.parametrize(
    ("message", "count"),
    [
        (user("no result"), "none"),
        (words(2000), "none"),
        (calls(("a", "Bash")), "none"),
        ({"role": "user", "content": []}, "none"),
        (results(("a", "x" * 1000), ("b", "y" * 1000)), "2"),
        ({**results(("a", "x" * 1000), ("b", "y" * 1000)), "role": "tool"}, "2"),
        ({**results(("a", "x" * 1000), ("b", "y" * 1000)), "role": "function"}, "2"),
    ],
)
def test_a_message_without_exactly_one_result_is_refused(
    tmp_path: Path, message: Message, count: str
) -> None:
    with pytest.raises(MessagesError, match=f"a message with one tool result, got {count}"):
        single(message, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_value_that_is_not_a_message_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(MessagesError, match='expected an object with "role"'):
        single([results(("a", "x"))], tmp_path)  # type: ignore[arg-type]
    with pytest.raises(MessagesError, match="expected a list of messages"):
        offload_tool_results(results(("a", "x")), output_dir=tmp_path)  # type: ignore[arg-type]
