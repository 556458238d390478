from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.file_access import FileAccess, accesses
from policyctx.compaction.restoration import Restoration, WorkingFiles, restore, windows
from policyctx.errors import MessagesError
from policyctx.planning.superseded import ShownLines
from policyctx.policy.models.compaction import FileSource, Restore
from policyctx.tokens.counter import counter_for
from tests.conversations import Message, call, chat_calls, chat_result, results, user
from tests.policies import policy

COUNTER = counter_for("approximate")  # a token for four characters


TOOLS = policy("""\
    tools:
      read_file: {reads_file: path}
      Read: {reads_file: file_path, reads_lines: {first: offset, count: limit}}
      view: {reads_file: path, reads_lines: {first: start, last: end, range: view_range}}
      editor: {reads_file: path, edits_file: path, reads_lines: {range: view_range}}
      Edit: {edits_file: file_path}
      apply_patch: {edits_file: [path, patch]}
      Write: {writes_file: file_path}
    """)


def restored(message: Message) -> str | None:
    content = message["content"]
    mark = "[Restored] "
    return content.removeprefix(mark) if str(content).startswith(mark) else None


def read(path: Any, tool: str = "read_file", field: str = "path") -> Message:
    return call("c", tool, {field: path})


def paths_in(*messages: Message) -> list[str]:
    return [access.path for access in accesses(messages, TOOLS, restored)]


def restoration(
    tmp_path: Path, *paths: str, visible: tuple[str, ...] = (), **settings: Any
) -> Restoration:
    limits = Restore(work_dir=str(tmp_path), **settings)
    accessed = [FileAccess(path) for path in paths]
    return restore(accessed, limits, WorkingFiles(), COUNTER, frozenset(visible))


def written(tmp_path: Path, **tokens: int) -> list[str]:
    for name, count in tokens.items():
        (tmp_path / name).write_text("four" * count)
    return list(tokens)


def brought_back(found: Restoration) -> list[str]:
    return [file.path for file in found.files]


def test_the_newest_access_comes_first() -> None:
    assert paths_in(read("a"), results(("c", "x")), read("b")) == ["b", "a"]


def test_a_file_counts_by_its_last_access() -> None:
    assert paths_in(read("a"), read("b"), read("a")) == ["a", "b"]


def test_the_last_of_parallel_calls_is_the_newest() -> None:
    blocks = [*read("a")["content"], *read("b")["content"]]
    assert paths_in({"role": "assistant", "content": blocks}) == ["b", "a"]


def test_a_conversation_without_reading_has_no_access() -> None:
    assert paths_in(user(), call("c", "Bash", {"path": "a"}), results(("c", "x"))) == []


def test_a_tool_has_its_own_field() -> None:
    assert paths_in(read("a", "Read", "file_path"), read("b", "Read", "path")) == ["a"]


def test_the_input_may_be_an_object_or_its_json_text() -> None:
    text = chat_calls(("c0", "read_file", '{"path": "a"}'))
    as_object = chat_calls(("c1", "read_file", {"path": "b"}))  # type: ignore[arg-type]
    messages = (text, chat_result("c0", "x"), as_object, chat_result("c1", "x"))
    assert paths_in(*messages) == ["b", "a"]


@pytest.mark.parametrize("path", [None, 7, "", ["a"], {"a": "b"}])
def test_an_invalid_path_is_skipped(path: object) -> None:
    assert paths_in(read("a"), read(path)) == ["a"]


@pytest.mark.parametrize("arguments", ["", "{", "[]", "7", '"a"', "[" * 100_000])
def test_an_input_that_is_not_an_object_is_skipped(arguments: str) -> None:
    assert paths_in(read("a"), chat_calls(("c", "read_file", arguments))) == ["a"]


def test_a_file_restored_earlier_was_accessed_at_its_place() -> None:
    assert paths_in(user("[Restored] old"), user(), read("new")) == ["new", "old"]
    assert paths_in(read("old"), user("[Restored] new"), user()) == ["new", "old"]


def test_an_invalid_message_list_is_rejected() -> None:
    with pytest.raises(MessagesError):
        paths_in({"content": "no role"})


def test_files_are_restored_in_order_with_their_tokens(tmp_path: Path) -> None:
    written(tmp_path, a=3, b=2)
    found = restoration(tmp_path, "b", "a")
    assert [(file.path, file.content, file.tokens) for file in found.files] == [
        ("b", "four" * 2, 2),
        ("a", "four" * 3, 3),
    ]
    assert found.warnings == ()


def test_without_paths_nothing_is_restored(tmp_path: Path) -> None:
    assert restoration(tmp_path) == Restoration()


def test_an_empty_file_is_restored(tmp_path: Path) -> None:
    written(tmp_path, a=0)
    assert [file.tokens for file in restoration(tmp_path, "a").files] == [0]


def test_only_the_newest_files_are_restored(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=1, b=1, c=1), max_files=2)
    assert (brought_back(found), found.warnings) == (["a", "b"], ())


def test_a_maximum_of_zero_files_restores_none(tmp_path: Path) -> None:
    assert restoration(tmp_path, *written(tmp_path, a=1), max_files=0) == Restoration()


def test_a_skipped_file_is_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    written(tmp_path, b=1, c=1)
    found = restoration(tmp_path, "gone", "b", "c", max_files=2)
    assert brought_back(found) == ["b"]


def test_two_paths_to_one_file_are_one_by_the_newest(tmp_path: Path) -> None:
    written(tmp_path, a=1, b=1)
    (tmp_path / "link").symlink_to("a")
    found = restoration(tmp_path, "./a", "link", str(tmp_path / "a"), "b", max_files=2)
    assert brought_back(found) == ["./a", "b"]


def test_a_file_of_exactly_the_limit_is_restored(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=5), max_tokens_per_file=5)
    assert brought_back(found) == ["a"]


def test_a_larger_file_is_skipped_and_the_next_is_not(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=6, b=5), max_tokens_per_file=5)
    assert brought_back(found) == ["b"]
    assert found.warnings == ("'a' is not restored: its 6 tokens are more than 5",)


def test_a_far_larger_file_is_skipped_by_its_size_alone(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    found = restoration(tmp_path, "huge")
    assert found.warnings == (f"'huge' is not restored: it is too large, {1 << 40} bytes",)


def test_each_file_that_is_too_large_is_skipped_with_a_warning(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=6, b=7), max_tokens_per_file=5)
    assert (found.files, len(found.warnings)) == ((), 2)


def test_files_of_exactly_the_total_limit_are_restored(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=4, b=6), max_tokens_total=10)
    assert (brought_back(found), found.warnings) == (["a", "b"], ())


def test_restoration_stops_at_the_total_limit(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=4, b=7, c=1), max_tokens_total=10)
    assert brought_back(found) == ["a"]
    assert found.warnings == (
        "'b' is not restored: 11 tokens with the files before it are more than 10",
        "'c' is not restored: restoration stopped at 10 tokens",
    )


def test_a_file_over_its_own_limit_does_not_count_to_the_total(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"max_tokens_per_file": 5, "max_tokens_total": 6}
    found = restoration(tmp_path, *written(tmp_path, a=20, b=5), **limits)
    assert brought_back(found) == ["b"]


def test_each_unreadable_file_has_one_warning_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\0\1")
    found = restoration(tmp_path, "gone", "../out", "folder", "binary")
    assert found == Restoration(
        (),
        (
            "'gone' is not restored: there is no such file",
            f"'../out' is not restored: it is outside of {tmp_path}",
            "'folder' is not restored: it is a folder",
            "'binary' is not restored: it is not text: there is a NUL byte in it",
        ),
    )


def test_files_still_visible_in_the_list_are_not_restored(tmp_path: Path) -> None:
    written(tmp_path, a=1, b=1)
    found = restoration(tmp_path, "./a", "b", visible=(str(tmp_path / "a"),))
    assert (brought_back(found), found.warnings) == (["b"], ())


def test_files_still_visible_count_among_the_newest(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=1, b=1), visible=("a",), max_files=1)
    assert found == Restoration()


def accessed(*messages: Message, sources: Sequence[FileSource] = ("read",)) -> list[FileAccess]:
    return accesses(messages, TOOLS, restored, sources=sources)


def used(tool: str, **given: Any) -> Message:
    return call("c", tool, given)


def test_an_edited_and_a_written_file_count_only_where_the_sources_name_them() -> None:
    messages = (
        read("a"),
        used("Edit", file_path="b", new_string="x" * 9),
        used("Write", file_path="c"),
    )
    assert [one.path for one in accessed(*messages)] == ["a"]
    assert [one.path for one in accessed(*messages, sources=["edited", "written"])] == ["c", "b"]
    every: Sequence[FileSource] = ("read", "edited", "written")
    assert [one.path for one in accessed(*messages, sources=every)] == ["c", "b", "a"]


def test_a_patch_names_the_files_that_it_edits() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n"
    found = accessed(used("apply_patch", patch=patch), sources=["edited"])
    assert [one.path for one in found] == ["b.py", "src/a.py"]
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n"
    found = accessed(used("apply_patch", patch=diff), sources=["edited"])
    assert [one.path for one in found] == ["src/a.py"]


@pytest.mark.parametrize(
    ("tool", "given", "lines"),
    [
        ("read_file", {}, ShownLines(1)),
        ("Read", {"offset": 10, "limit": 5}, ShownLines(10, 14)),
        ("Read", {"limit": 5}, ShownLines(1, 5)),
        ("Read", {"offset": 0}, ShownLines(1)),
        ("view", {"start": 3, "end": 9}, ShownLines(3, 9)),
        ("view", {"view_range": [4, -1]}, ShownLines(4)),
        ("view", {"view_range": "all", "start": "x"}, ShownLines(1)),
    ],
)
def test_the_lines_that_were_read_are_known(
    tool: str, given: dict[str, Any], lines: ShownLines
) -> None:
    path = {"Read": "file_path"}.get(tool, "path")
    assert accessed(used(tool, **{path: "a"}, **given)) == [FileAccess("a", (lines,))]


def test_an_editor_that_edits_has_read_no_lines() -> None:
    replaced = used("editor", command="str_replace", path="a", new_str="a new line")
    viewed = used("editor", command="view", path="a", view_range=[1, 2])
    assert accessed(viewed, replaced) == [
        FileAccess("a", ("str_replace", "a new line", ShownLines(1, 2)))
    ]


def test_the_lines_that_a_compaction_restored_earlier_count_again() -> None:
    assert accessed(user("[Restored] a\n[lines 3-4 of 9]\nx\ny")) == [
        FileAccess("a\n[lines 3-4 of 9]\nx\ny", (ShownLines(3, 4),))
    ]


def numbered(tmp_path: Path, count: int) -> list[str]:
    lines = [f"line {i:04}: {'text ' * 5}" for i in range(1, count + 1)]
    (tmp_path / "large").write_text("\n".join(lines) + "\n")
    return lines


def windowed(tmp_path: Path, *seen: ShownLines | str, **settings: Any) -> Restoration:
    limits = Restore(work_dir=str(tmp_path), large_files="windows", **settings)
    return restore([FileAccess("large", seen)], limits, WorkingFiles(), COUNTER)


def test_a_large_file_is_restored_by_the_lines_that_were_read(tmp_path: Path) -> None:
    lines = numbered(tmp_path, 1000)
    found = windowed(tmp_path, ShownLines(500, 502), ShownLines(10, 11), max_tokens_per_file=100)
    (file,) = found.files
    assert file.content == "\n".join(
        ["[lines 10-11 of 1000]", *lines[9:11], "[lines 500-502 of 1000]", *lines[499:502]]
    )
    assert (file.lines, found.warnings) == (((10, 11), (500, 502)), ())
    assert file.tokens == COUNTER.count(file.content) <= 100


def test_the_lines_read_last_have_the_room_and_the_range_over_the_limit_is_cut(
    tmp_path: Path,
) -> None:
    numbered(tmp_path, 1000)
    found = windowed(tmp_path, ShownLines(900, 901), ShownLines(1), max_tokens_per_file=120)
    (file,) = found.files
    assert file.lines[-1] == (900, 901)
    assert file.lines[0][0] == 1
    assert 2 < file.lines[0][1] < 20
    assert file.tokens <= 120


def test_a_large_file_is_restored_around_its_last_edit(tmp_path: Path) -> None:
    lines = numbered(tmp_path, 1000)
    found = windowed(tmp_path, lines[299], "no such text", max_tokens_per_file=200)
    assert [file.lines for file in found.files] == [((295, 305),)]


def test_a_large_file_of_which_no_lines_are_known_is_skipped_with_a_warning(
    tmp_path: Path,
) -> None:
    numbered(tmp_path, 1000)
    assert windowed(tmp_path, "gone from it", max_tokens_per_file=50).warnings == (
        "'large' is not restored: it has more than 50 tokens, and no lines of it that were read"
        " are known",
    )


def test_a_small_file_is_restored_whole_under_windows_too(tmp_path: Path) -> None:
    lines = numbered(tmp_path, 3)
    found = windowed(tmp_path, ShownLines(2, 2))
    assert [(file.content, file.lines) for file in found.files] == [("\n".join(lines) + "\n", ())]


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), max_size=5),
    st.integers(1, 400),
)
def test_the_lines_of_a_large_file_never_exceed_the_limit(
    ranges: list[tuple[int, int]], limit: int
) -> None:
    content = "".join(f"{i}: {'x' * (i % 90)}\n" for i in range(1, 251))
    seen = [ShownLines(first, first + more) for first, more in ranges]
    found = windows(content, seen, limit, COUNTER)
    assert COUNTER.count(found.text) <= limit
    shown = {at for first, last in found.ranges for at in range(first, last + 1)}
    assert shown <= {at for one in seen for at in range(one.first, (one.last or 0) + 1)}
