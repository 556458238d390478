"""The document "context offload", row by row."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path

import pytest

from policyctx import (
    OffloadResults,
    PolicyError,
    Session,
    StoreError,
    offload_tool_results,
    offload_tool_results_async,
)
from policyctx.recipes import Paths
from tests.conversations import Message, calls, results, session_of
from tests.recipes.offloaded import (
    TOOL_ID,
    blocks,
    child,
    content,
    files_in,
    text,
    words,
)
from tests.writers import Memory

# Context offload: which results leave.


def test_a_long_result_goes_to_a_file_and_its_path_takes_its_place(tmp_path: Path) -> None:
    result = offload_tool_results([results((TOOL_ID, "x" * 2500))], output_dir=tmp_path)
    assert content(result.messages[0]) == "[Content offloaded to: ./tool-result-toolu_01abc.md]"
    assert text(tmp_path / "tool-result-toolu_01abc.md") == "x" * 2500


@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 0), (99, 0), (100, 1), (101, 1)])
def test_from_100_characters_on_a_result_is_offloaded(
    tmp_path: Path, size: int, count: int
) -> None:
    messages = [results((TOOL_ID, "x" * size))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


@pytest.mark.parametrize(("size", "count"), [(99, 0), (100, 1)])
def test_blocks_are_measured_as_compact_json(tmp_path: Path, size: int, count: int) -> None:
    messages = [results((TOOL_ID, blocks(size)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


@pytest.mark.parametrize(("sign", "size", "count"), [("读", 99, 0), ("读", 100, 1), ("🙂", 99, 0)])
def test_a_character_is_a_code_point(tmp_path: Path, sign: str, size: int, count: int) -> None:
    messages = [results((TOOL_ID, sign * size))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


def test_only_long_results_are_offloaded(tmp_path: Path) -> None:
    messages = [results(("long", "x" * 300), ("short", "y" * 30), ("other", "z" * 400))]
    [message] = offload_tool_results(messages, output_dir=tmp_path).messages
    assert [content(message, i) for i in range(3)] == [
        "[Content offloaded to: ./tool-result-long.md]",
        "y" * 30,
        "[Content offloaded to: ./tool-result-other.md]",
    ]


def test_without_a_tool_result_the_same_list_comes_back(tmp_path: Path) -> None:
    messages = [words(5000), calls(("a", "Bash"))]
    result = offload_tool_results(messages, output_dir=tmp_path / "out")
    assert result.messages is messages
    assert not (tmp_path / "out").exists()


def test_only_tool_results_are_offloaded(tmp_path: Path) -> None:
    call = calls(("a", "Bash"))
    call["content"][0]["input"] = {"command": "c" * 500}
    messages = [words(500), call, results(("a", "x" * 500)), words(500)]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tool-result-a.md"]
    for i in (0, 1, 3):
        assert result.messages[i] is messages[i]


def test_a_result_without_a_call_in_the_list_is_offloaded(tmp_path: Path) -> None:
    messages = [results(("a", "x" * 500)), words(10)]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 1


def test_failed_results_are_offloaded_like_any_other(tmp_path: Path) -> None:
    messages = [results(("a", "x" * 500), error=True)]
    [message] = offload_tool_results(messages, output_dir=tmp_path).messages
    assert message["content"][0]["is_error"] is True
    assert content(message) == "[Content offloaded to: ./tool-result-a.md]"


def test_a_long_result_leaves_even_for_a_longer_placeholder(tmp_path: Path) -> None:
    messages = [results(("a" * 80, "x" * 100))]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert len(content(result.messages[0])) > 100
    assert result.freed_chars == 100


@pytest.mark.parametrize("role", ["tool", "function"])
def test_result_blocks_of_a_tool_message_leave_one_by_one(tmp_path: Path, role: str) -> None:
    given = {**results(("a", "x" * 300), ("b", "short"), ("c", blocks(300))), "role": role}
    result = offload_tool_results([calls(("a", "Bash")), given], output_dir=tmp_path)
    left = [
        ("a", "[Content offloaded to: ./tool-result-a.md]"),
        ("b", "short"),
        ("c", "[Content offloaded to: ./tool-result-c.md]"),
    ]
    assert result.messages[1] == {**results(*left), "role": role}
    assert [Path(path).name for path in result.files] == ["tool-result-a.md", "tool-result-c.md"]


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        ("output_dir", "./tool-result-a.md"),
        ("cwd", "out/tool-result-a.md"),
        ("absolute", "{cwd}/out/tool-result-a.md"),
    ],
)
def test_the_placeholder_shows_the_path_that_the_caller_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: Paths, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    messages = [results(("a", "x" * 300))]
    result = offload_tool_results(messages, output_dir="out", paths=paths)
    path = shown.format(cwd=tmp_path)
    assert content(result.messages[0]) == f"[Content offloaded to: {path}]"
    assert result.files == (str(tmp_path / "out/tool-result-a.md"),)
    start = tmp_path / "out" if paths == "output_dir" else tmp_path
    assert text(start / path) == "x" * 300
    twice = offload_tool_results(result.messages, output_dir="out", paths=paths)
    assert twice.messages is result.messages
    memory = Memory()
    coroutine = offload_tool_results_async(messages, output_dir="out", paths=paths, writer=memory)
    assert asyncio.run(coroutine).messages == result.messages


def test_a_folder_outside_the_working_directory_is_shown_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    messages = [results(("a", "x" * 300))]
    for folder in ("workshop", "out"):
        result = offload_tool_results(messages, output_dir=tmp_path / folder, paths="cwd")
        path = tmp_path / folder / "tool-result-a.md"
        assert content(result.messages[0]) == f"[Content offloaded to: {path}]"


def test_an_unknown_start_of_paths_is_an_error_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"'cdw' is none of output_dir, cwd, .*mean 'cwd'"):
        offload_tool_results([], output_dir=tmp_path, paths="cdw")  # type: ignore[arg-type]


# Context offload: what comes back.


def test_only_messages_that_change_are_copied(tmp_path: Path) -> None:
    messages = session_of("x" * 500, "small")
    result = offload_tool_results(messages, output_dir=tmp_path)
    changed = [i for i, message in enumerate(result.messages) if message is not messages[i]]
    assert changed == [2]
    assert result.messages[2]["content"][0] is not messages[2]["content"][0]


def test_the_messages_given_stay_as_they_were(tmp_path: Path) -> None:
    messages = session_of("x" * 500, blocks(500))
    before = copy.deepcopy(messages)
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert messages == before
    assert result.messages is not messages


def test_blocks_are_replaced_by_a_string_and_saved_as_json(tmp_path: Path) -> None:
    found = [{"type": "text", "text": "读" * 100}, {"type": "text", "text": '"'}]
    result = offload_tool_results([results((TOOL_ID, found))], output_dir=tmp_path)
    assert isinstance(content(result.messages[0]), str)
    assert text(result.files[0]) == json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def test_the_result_has_the_count_the_freed_size_and_the_files(tmp_path: Path) -> None:
    messages = session_of("x" * 300, "y" * 99, blocks(400))
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert (result.offloaded_count, result.freed_chars) == (2, 700)
    names = ("tool-result-c0.md", "tool-result-c2.md")
    assert result.files == tuple(str(tmp_path / name) for name in names)


def test_the_paths_are_absolute_where_the_folder_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = offload_tool_results([results(("a", "x" * 300))], output_dir="out")
    assert result.files == (str(tmp_path / "out" / "tool-result-a.md"),)


def test_the_oldest_result_is_offloaded_first(tmp_path: Path) -> None:
    messages = session_of(*("x" * 300 for _ in range(12)))
    files = offload_tool_results(messages, output_dir=tmp_path).files
    assert [Path(path).name for path in files] == [f"tool-result-c{i}.md" for i in range(12)]


def test_an_empty_list_has_an_empty_result(tmp_path: Path) -> None:
    messages: list[Message] = []
    result = offload_tool_results(messages, output_dir=tmp_path / "out")
    assert result == OffloadResults([], 0, 0, ())
    assert result.messages is messages
    assert not (tmp_path / "out").exists()


# Context offload: files.


def test_the_folder_is_made_with_all_above_it(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    result = offload_tool_results([results(("a", "x" * 300))], output_dir=folder)
    assert text(folder / "tool-result-a.md") == "x" * 300
    assert result.files == (str(folder / "tool-result-a.md"),)


def test_only_the_contents_are_written(tmp_path: Path) -> None:
    offload_tool_results(session_of("x" * 300, "y" * 400), output_dir=tmp_path / "out")
    assert files_in(tmp_path) == {
        "out/tool-result-c0.md": "x" * 300,
        "out/tool-result-c1.md": "y" * 400,
    }


def test_results_of_one_id_are_numbered_even_when_they_are_equal(tmp_path: Path) -> None:
    messages = [results(("a", t * 300)) for t in "xyx"]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert [content(message) for message in result.messages] == [
        "[Content offloaded to: ./tool-result-a.md]",
        "[Content offloaded to: ./tool-result-a-1.md]",
        "[Content offloaded to: ./tool-result-a-2.md]",
    ]
    assert [text(path) for path in result.files] == ["x" * 300, "y" * 300, "x" * 300]


def test_a_later_call_overwrites_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    [first] = offload_tool_results([results(("a", "x" * 300))], output_dir=tmp_path).files
    [second] = offload_tool_results([results(("a", "y" * 300))], output_dir=tmp_path).files
    assert (text(first), text(second)) == ("x" * 300, "y" * 300)


@pytest.mark.parametrize("id_", ["../../a", "a/b", "..", "a\0b", "", "读", "i" * 4096, "C:\\x"])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, id_: str) -> None:
    result = offload_tool_results([results((id_, "x" * 300))], output_dir=tmp_path / "out")
    [path] = map(Path, result.files)
    assert path.parent == tmp_path / "out"
    assert content(result.messages[0]) == f"[Content offloaded to: ./{path.name}]"
    assert text(path) == "x" * 300


# Context offload: a disk that fails.


def test_a_write_that_fails_is_raised_and_the_messages_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    messages = session_of("x" * 500)
    before = copy.deepcopy(messages)
    with pytest.raises(StoreError, match="cannot be written: Not a directory") as raised:
        offload_tool_results(messages, output_dir=tmp_path / "file" / "out")
    assert isinstance(raised.value.__cause__, NotADirectoryError)
    assert messages == before


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_is_an_error_with_the_systems_words(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o500)
    told = child(f"""
from policyctx import StoreError, offload_tool_result, offload_tool_results
message = {results(("a", "x" * 500))!r}
for write in (
    lambda: offload_tool_results([message], output_dir={str(tmp_path)!r}),
    lambda: offload_tool_result(message, session_id="s", output_dir={str(tmp_path)!r}),
):
    try:
        write()
    except StoreError as error:
        print(error)
""")
    tmp_path.chmod(0o700)
    assert [line.rpartition(": ")[2] for line in told.splitlines()] == ["Permission denied"] * 2
    assert files_in(tmp_path) == {}


@pytest.mark.slow
def test_a_disk_that_fills_up_leaves_no_half_written_file(tmp_path: Path) -> None:
    told = child(f"""
import resource, signal
from policyctx import StoreError, offload_tool_results
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
messages = {[results(("a", "x" * 500)), results(("b", "y" * 5000))]!r}
try:
    offload_tool_results(messages, output_dir={str(tmp_path / "out")!r})
except StoreError as error:
    print(error)
""")
    assert "File too large" in told
    left = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert left.items() <= {"tool-result-a.md": "x" * 500}.items()


# Context offload: every call stands alone.


def test_a_call_does_not_depend_on_earlier_calls(tmp_path: Path) -> None:
    messages = session_of("x" * 500, "y" * 500)
    first = offload_tool_results(messages, output_dir=tmp_path)
    offload_tool_results(session_of("z" * 500)[1:], output_dir=tmp_path)
    assert offload_tool_results(messages, output_dir=tmp_path) == first


@pytest.mark.parametrize("id_", ["a", "call_1|fc_" + "f" * 100])
def test_a_returned_list_is_returned_unchanged(tmp_path: Path, id_: str) -> None:
    messages = [results((id_, sign * 500)) for sign in "xyx"]
    first = offload_tool_results(messages, output_dir=tmp_path)
    assert first.offloaded_count == 3
    second = offload_tool_results(first.messages, output_dir=tmp_path)
    assert second.messages is first.messages


@pytest.mark.parametrize("preset", ["context-offload", "tool-direct-offload"])
def test_the_presets_keep_no_state_in_a_session_either(tmp_path: Path, preset: str) -> None:
    session = Session(preset, root=tmp_path, session_id="s")
    messages = session_of("x" * 1000)
    assert [session.apply(messages).offloaded_count for _ in range(2)] == [1, 1]
