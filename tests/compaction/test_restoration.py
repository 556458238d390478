from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policyctx.compaction.restoration import Restoration, WorkingFiles, accesses, restore
from policyctx.errors import MessagesError
from policyctx.policy.models.compaction import Restore
from policyctx.tokens.counter import counter_for
from tests.conversations import Message, call, chat_calls, chat_result, results, user

if TYPE_CHECKING:
    from pathlib import Path

COUNTER = counter_for("approximate")  # a token for four characters


def reads_file(tool: str) -> str | None:
    return {"read_file": "path", "Read": "file_path"}.get(tool)


def restored(message: Message) -> str | None:
    content = message["content"]
    mark = "[Restored] "
    return content.removeprefix(mark) if str(content).startswith(mark) else None


def read(path: Any, tool: str = "read_file", field: str = "path") -> Message:
    return call("c", tool, {field: path})


def paths_in(*messages: Message) -> list[str]:
    return accesses(messages, reads_file, restored)


def restoration(
    tmp_path: Path, *paths: str, visible: tuple[str, ...] = (), **settings: Any
) -> Restoration:
    limits = Restore(work_dir=str(tmp_path), **settings)
    return restore(paths, limits, WorkingFiles(), COUNTER, frozenset(visible))


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
            "'binary' is not restored: it is no text: there is a NUL byte in it",
        ),
    )


def test_files_still_visible_in_the_list_are_not_restored(tmp_path: Path) -> None:
    written(tmp_path, a=1, b=1)
    found = restoration(tmp_path, "./a", "b", visible=(str(tmp_path / "a"),))
    assert (brought_back(found), found.warnings) == (["b"], ())


def test_files_still_visible_count_among_the_newest(tmp_path: Path) -> None:
    found = restoration(tmp_path, *written(tmp_path, a=1, b=1), visible=("a",), max_files=1)
    assert found == Restoration()
