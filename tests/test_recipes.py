"""The documents "context offload", "ratio gate" and "tool direct offload", row by row."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import (
    MessagesError,
    OffloadResult,
    OffloadResults,
    PolicyError,
    Session,
    StoreError,
    offload_tool_result,
    offload_tool_result_async,
    offload_tool_results,
    offload_tool_results_async,
)
from tests.conversations import Message, calls, results, session_of, user
from tests.writers import AwaitedMemory, Full, Memory

if TYPE_CHECKING:
    from typing import Any

TOOL_ID = "toolu_01abc"


@pytest.fixture(autouse=True)
def _default_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFLOAD_RATIO_THRESHOLD", raising=False)


def content(message: Message, block: int = 0) -> Any:
    return message["content"][block]["content"]


def text(path: str | Path) -> str:
    return Path(path).read_text(encoding="utf-8")


def words(size: int) -> Message:
    """A user message of one text block of this many characters."""
    return {"role": "user", "content": [{"type": "text", "text": "w" * size}]}


def blocks(size: int) -> list[Message]:
    """A content of one text block whose JSON has this many characters."""
    frame = len(json.dumps([{"type": "text", "text": ""}], separators=(",", ":")))
    return [{"type": "text", "text": "b" * (size - frame)}]


def files_in(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): text(path) for path in paths}


def child(script: str) -> str:
    """What a script prints that runs by itself, under the permissions that bind everyone."""
    start = """
import ctypes, os, sys
for capability in (1, 2):  # root may write and read what is forbidden to it: not here
    ctypes.CDLL(None).prctl(24, capability)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
    command = [sys.executable, "-c", start, script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


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


def test_of_long_and_short_results_only_the_long_ones_leave(tmp_path: Path) -> None:
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


def test_only_tool_results_leave(tmp_path: Path) -> None:
    call = calls(("a", "Bash"))
    call["content"][0]["input"] = {"command": "c" * 500}
    messages = [words(500), call, results(("a", "x" * 500)), words(500)]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tool-result-a.md"]
    for i in (0, 1, 3):
        assert result.messages[i] is messages[i]


def test_a_result_whose_call_is_not_in_the_list_leaves_as_well(tmp_path: Path) -> None:
    messages = [results(("a", "x" * 500)), words(10)]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 1


def test_failed_results_leave_like_any_other(tmp_path: Path) -> None:
    messages = [results(("a", "x" * 500), error=True)]
    [message] = offload_tool_results(messages, output_dir=tmp_path).messages
    assert message["content"][0]["is_error"] is True
    assert content(message) == "[Content offloaded to: ./tool-result-a.md]"


def test_a_long_result_leaves_even_for_a_longer_placeholder(tmp_path: Path) -> None:
    messages = [results(("a" * 80, "x" * 100))]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert len(content(result.messages[0])) > 100
    assert result.freed_chars == 100


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


def test_blocks_give_way_to_a_string_and_their_json_is_the_file(tmp_path: Path) -> None:
    found = [{"type": "text", "text": "读" * 100}, {"type": "text", "text": '"'}]
    result = offload_tool_results([results((TOOL_ID, found))], output_dir=tmp_path)
    assert isinstance(content(result.messages[0]), str)
    assert text(result.files[0]) == json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def test_it_says_how_many_left_how_much_and_to_where(tmp_path: Path) -> None:
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


def test_the_oldest_goes_first(tmp_path: Path) -> None:
    messages = session_of(*("x" * 300 for _ in range(12)))
    files = offload_tool_results(messages, output_dir=tmp_path).files
    assert [Path(path).name for path in files] == [f"tool-result-c{i}.md" for i in range(12)]


def test_an_empty_list_comes_to_nothing(tmp_path: Path) -> None:
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


def test_nothing_but_the_contents_is_written(tmp_path: Path) -> None:
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


def test_a_call_does_the_same_whatever_was_called_before(tmp_path: Path) -> None:
    messages = session_of("x" * 500, "y" * 500)
    first = offload_tool_results(messages, output_dir=tmp_path)
    offload_tool_results(session_of("z" * 500)[1:], output_dir=tmp_path)
    assert offload_tool_results(messages, output_dir=tmp_path) == first


@pytest.mark.parametrize("id_", ["a", "call_1|fc_" + "f" * 100])
def test_what_a_call_returned_comes_back_as_it_is(tmp_path: Path, id_: str) -> None:
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


# Ratio gate.


@pytest.mark.parametrize(("others", "count"), [(400, 1), (399, 1), (401, 0), (0, 1), (100_000, 0)])
def test_from_a_fifth_of_all_characters_on_results_are_offloaded(
    tmp_path: Path, others: int, count: int
) -> None:
    messages = [words(others), results(("a", "x" * 100))]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert result.offloaded_count == count


def test_a_ratio_just_below_the_threshold_is_below_it(tmp_path: Path) -> None:
    messages = [words(4_000_001), results(("a", "x" * 1_000_000))]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert result.messages is messages


def test_below_the_ratio_nothing_is_touched(tmp_path: Path) -> None:
    messages = [words(401), results(("a", "x" * 100))]
    result = offload_tool_results(messages, output_dir=tmp_path / "out")
    assert result == OffloadResults(messages, 0, 0, ())
    assert result.messages is messages
    assert not (tmp_path / "out").exists()


def test_short_results_count_among_all_but_not_among_what_can_leave(tmp_path: Path) -> None:
    messages = [results(("a", "x" * 100), ("b", "y" * 99), ("c", "z" * 99), ("d", "z" * 99))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 1
    messages = [results(("a", "x" * 100), *((str(i), "y" * 99) for i in range(5)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 0


def test_every_block_counts_by_its_content(tmp_path: Path) -> None:
    call = calls(("a", "Bash"))
    call["content"][0]["input"] = {"command": "c" * 186}  # 200 characters of JSON
    messages = [words(100), call, results(("a", blocks(100)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 1
    messages = [words(201), call, results(("a", blocks(100)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 0


@pytest.mark.parametrize(
    ("threshold", "others", "count"),
    [
        ("0", 1_000_000, 1),
        ("0.5", 100, 1),
        ("0.5", 101, 0),
        ("50%", 100, 1),
        ("1", 0, 1),
        ("1", 1, 0),
        ("", 400, 1),
        ("", 401, 0),
    ],
)
def test_the_environment_sets_the_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str, others: int, count: int
) -> None:
    monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
    messages = [words(others), results(("a", "x" * 100))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


def test_the_environment_is_read_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [words(100), results(("a", "x" * 100))]
    for threshold, count in (("0.6", 0), ("0.5", 1), ("0.6", 0)):
        monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
        assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


@pytest.mark.parametrize("threshold", ["0", "0.2"])
@pytest.mark.parametrize(
    "messages", [[], [words(0)], [words(500)], [results(("a", "x" * 99), ("b", "y" * 99))]]
)
def test_with_nothing_to_offload_the_same_list_comes_back_at_any_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str, messages: list[Message]
) -> None:
    monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
    result = offload_tool_results(messages, output_dir=tmp_path / "out")
    assert result.messages is messages
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("messages", "note"),
    [
        ([], "nothing_measured"),
        ([words(500)], "nothing_selected"),
        ([words(0)], "nothing_measured"),
    ],
)
def test_an_empty_list_is_told_apart_from_one_without_long_results(
    tmp_path: Path, messages: list[Message], note: str
) -> None:
    [verdict] = Session("context-offload", root=tmp_path).plan(messages).gates
    assert (verdict.opens, verdict.note) == (False, note)


@pytest.mark.parametrize("threshold", ["abc", "1.5", "-0.1", "0.5x"])
def test_a_threshold_that_is_no_ratio_is_an_error_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str
) -> None:
    monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
    with pytest.raises(PolicyError, match=f"from 0 to 1 .* got '{threshold}'") as raised:
        offload_tool_results([], output_dir=tmp_path)
    [diagnostic] = raised.value.diagnostics
    assert diagnostic.place.file == "context-offload.yaml"
    assert "OFFLOAD_RATIO_THRESHOLD" in diagnostic.place.source_line


# Context offload and ratio gate, as a whole.

SIZES = st.sampled_from((0, 1, 20, 99, 100, 101, 300))
BLOCKS = st.one_of(
    SIZES.map(lambda size: {"type": "text", "text": "w" * size}),
    st.builds(
        lambda id_, size: results((id_, "x" * size))["content"][0], st.sampled_from("abc"), SIZES
    ),
    st.builds(
        lambda id_, size: results((id_, blocks(size)))["content"][0],
        st.sampled_from("abc"),
        st.sampled_from((50, 99, 100, 200)),
    ),
)
LISTS = st.lists(
    st.lists(BLOCKS, max_size=4).map(lambda found: {"role": "user", "content": found}), max_size=6
)


def shown(block: Message) -> str:
    found = block["text"] if block["type"] == "text" else block["content"]
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))


def as_the_documents_say(messages: list[Message], threshold: float) -> dict[str, str]:
    """The names and contents of the files that there should be."""
    found = [block for message in messages for block in message["content"]]
    leaving = [b for b in found if b["type"] == "tool_result" and len(shown(b)) >= 100]
    total = sum(len(shown(block)) for block in found)
    freed = sum(len(shown(block)) for block in leaving)
    files: dict[str, str] = {}
    if total == 0 or freed == 0 or freed / total < threshold:
        return files
    for block in leaving:
        names = itertools.chain([""], (f"-{n}" for n in itertools.count(1)))
        wanted = (f"tool-result-{block['tool_use_id']}{name}.md" for name in names)
        files[next(name for name in wanted if name not in files)] = shown(block)
    return files


@given(messages=LISTS, threshold=st.sampled_from(("0", "0.2", "0.5", "1")))
def test_any_list_comes_to_what_the_documents_say(messages: list[Message], threshold: str) -> None:
    memory = Memory()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
        result = offload_tool_results(messages, output_dir="/out", writer=memory)
    expected = as_the_documents_say(messages, float(threshold))
    assert {path.removeprefix("/out/"): t for path, t in memory.files.items()} == expected
    assert result.offloaded_count == len(expected)
    assert result.freed_chars == sum(map(len, expected.values()))
    assert (result.messages is messages) == (not expected)
    before = (b for message in messages for b in message["content"])
    after = (b for message in result.messages for b in message["content"])
    names = iter(expected)
    for old, new in zip(before, after, strict=True):
        if new != old:
            placeholder = f"[Content offloaded to: ./{next(names)}]"
            assert new == {**old, "content": placeholder}
    assert list(names) == []


# Tool direct offload.


def single(message: Message, folder: Path, session_id: str = "session-abc123") -> OffloadResult:
    return offload_tool_result(message, session_id=session_id, output_dir=folder)


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
def test_what_one_result_frees_is_net_of_the_placeholder(tmp_path: Path, size: int) -> None:
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


def test_a_failed_result_leaves_like_any_other(tmp_path: Path) -> None:
    result = single(results(("a", "x" * 1000), error=True), tmp_path)
    assert result.message["content"][0]["is_error"] is True
    assert text(result.file) == "x" * 1000


def test_a_second_result_of_one_id_overwrites_the_first(tmp_path: Path) -> None:
    first = single(results(("a", "x" * 1000)), tmp_path)
    second = single(results(("a", "y" * 1200)), tmp_path)
    assert first.file == second.file
    assert files_in(tmp_path) == {"session-abc123/a.md": "y" * 1200}


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
    ],
)
def test_a_message_without_exactly_one_result_is_refused(
    tmp_path: Path, message: Message, count: str
) -> None:
    with pytest.raises(MessagesError, match=f"a message with one tool result, got {count}"):
        single(message, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_message_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MessagesError, match='expected an object with "role"'):
        single([results(("a", "x"))], tmp_path)  # type: ignore[arg-type]
    with pytest.raises(MessagesError, match="expected a list of messages"):
        offload_tool_results(results(("a", "x")), output_dir=tmp_path)  # type: ignore[arg-type]


# Writers of the caller's, and calls that are awaited.


def test_a_writer_writes_what_the_folder_would_hold(tmp_path: Path) -> None:
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


def test_a_writer_is_not_called_when_nothing_leaves(tmp_path: Path) -> None:
    messages = [words(500), results(("a", "x" * 99))]
    result = offload_tool_results(messages, output_dir=tmp_path, writer=Full())
    assert result.messages is messages


def test_what_a_writer_raises_is_raised_with_its_words(tmp_path: Path) -> None:
    messages = session_of("x" * 500)
    before = copy.deepcopy(messages)
    with pytest.raises(StoreError, match="No space left on device") as raised:
        offload_tool_results(messages, output_dir=tmp_path, writer=Full())
    assert isinstance(raised.value.__cause__, OSError)
    with pytest.raises(StoreError, match="No space left on device"):
        offload_tool_result(messages[2], session_id="s", output_dir=tmp_path, writer=Full())
    assert messages == before


def test_awaited_calls_come_to_the_same(tmp_path: Path) -> None:
    messages = session_of("x" * 500)
    all_ = asyncio.run(offload_tool_results_async(messages, output_dir=tmp_path))
    assert all_ == offload_tool_results(messages, output_dir=tmp_path)
    one = asyncio.run(offload_tool_result_async(messages[2], session_id="s", output_dir=tmp_path))
    assert one == offload_tool_result(messages[2], session_id="s", output_dir=tmp_path)


@pytest.mark.parametrize("kind", [Memory, AwaitedMemory])
def test_awaited_calls_take_both_kinds_of_writer(tmp_path: Path, kind: type[Memory]) -> None:
    messages, memory = session_of("x" * 500), kind()
    all_ = asyncio.run(offload_tool_results_async(messages, output_dir=tmp_path, writer=memory))
    one = asyncio.run(
        offload_tool_result_async(messages[2], session_id="s", output_dir=tmp_path, writer=memory)
    )
    assert memory.files == {all_.files[0]: "x" * 500, one.file: "x" * 500}


def test_awaited_calls_raise_what_a_writer_raises(tmp_path: Path) -> None:
    messages = session_of("x" * 500)
    with pytest.raises(StoreError, match="No space left on device"):
        asyncio.run(offload_tool_results_async(messages, output_dir=tmp_path, writer=Full()))
    one = offload_tool_result_async(messages[2], session_id="s", output_dir=tmp_path, writer=Full())
    with pytest.raises(StoreError, match="No space left on device"):
        asyncio.run(one)


def test_calls_that_are_awaited_together_do_not_meet(tmp_path: Path) -> None:
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
