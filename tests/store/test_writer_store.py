from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from pathlib import Path
from typing import Literal

import pytest

from policyctx import Session, StoreError, WriterStore, offload_tool_results
from policyctx.store.filesystem import Content
from tests.conversations import Message, call, results, session_of, user
from tests.policies import policy
from tests.writers import AwaitedMemory, Full, Memory, Silent


def test_a_writer_gets_the_absolute_path_and_the_whole_text(tmp_path: Path) -> None:
    memory = Memory()
    [file] = WriterStore(tmp_path, memory).save([Content("a/b.md", "读\r\n\ud800")])
    assert memory.files == {str(tmp_path / "a/b.md"): "读\r\n\ud800"}
    assert (file.relative_path, file.path) == ("a/b.md", str(tmp_path / "a/b.md"))


def test_a_relative_root_is_below_the_working_directory() -> None:
    assert WriterStore("out", Memory()).root == Path.cwd() / "out"


def test_nothing_is_looked_up_or_made_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("another", encoding="utf-8")
    [file] = WriterStore(tmp_path, Memory()).save([Content("a.md", "x")])
    WriterStore(tmp_path / "new", Memory()).save([Content("b/c.md", "x")])
    assert file.relative_path == "a.md"
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize(
    ("on_conflict", "names"), [("suffix", ["a.md", "a-1.md"]), ("overwrite", ["a.md", "a.md"])]
)
def test_names_are_unique_among_contents_saved_together(
    tmp_path: Path, on_conflict: Literal["suffix", "overwrite"], names: list[str]
) -> None:
    store = WriterStore(tmp_path, Memory(), on_conflict=on_conflict)
    for _ in range(2):
        files = store.save([Content("a.md", "x"), Content("a.md", "x")])
        assert [file.relative_path for file in files] == names


def test_a_later_text_gets_a_name_of_its_own(tmp_path: Path) -> None:
    memory = Memory()
    store = WriterStore(tmp_path, memory)
    files = [file for text in "xyx" for file in store.save([Content("a.md", text)])]
    assert [file.relative_path for file in files] == ["a.md", "a-1.md", "a.md"]
    assert memory.files == {files[0].path: "x", files[1].path: "y"}


def test_a_name_of_another_text_is_an_error_in_a_later_save(tmp_path: Path) -> None:
    memory = Memory()
    store = WriterStore(tmp_path, memory, on_conflict="error")
    [file] = store.save([Content("a.md", "x")])
    with pytest.raises(StoreError, match=r"a\.md holds another item"):
        store.save([Content("a.md", "y")])
    assert memory.files == {file.path: "x"}


def test_a_name_is_free_while_its_text_was_not_written(tmp_path: Path) -> None:
    class Sealed(Memory):
        def write(self, path: str, text: str) -> None:
            if text == "x":
                raise PermissionError(path)
            super().write(path, text)

    store = WriterStore(tmp_path, Sealed())
    with pytest.raises(StoreError):
        store.save([Content("a.md", "x")])
    assert store.save([Content("a.md", "y")])[0].relative_path == "a.md"


TAKES = """
    model: {tokenizer: approximate}
    min_chars: 40
    items: {tool_result: {offload: true}, tool_call: {offload: true}}
    store: {path: PATH, state: none}
    steps:
      - {name: first, do: offload, select: {types: TYPES}}
"""


@pytest.mark.parametrize("types", ["[tool_result]", "[tool_call]", "[tool_call, tool_result]"])
@pytest.mark.parametrize("path", ["'{tool_use_id}.md'", "'{item_type}/{tool_name}.md'", "all.md"])
def test_no_session_writes_over_a_file_that_a_placeholder_of_its_list_names(
    tmp_path: Path, types: str, path: str
) -> None:
    memory, rules = Memory(), policy(TAKES.replace("PATH", path).replace("TYPES", types))
    messages: list[Message] = [user("the task")]
    for sign in "xyz":
        new = [call("b", "Write", {"text": sign * 900}), results(("b", sign * 900))]
        session = Session(rules, store=WriterStore(tmp_path, memory), session_id="s")
        messages = [*session.apply([*messages, *new]).messages]
    assert len(memory.files) == 3 * len(types.split(","))
    shown = json.dumps(messages)
    assert all(f"{file}" in shown for file in memory.files)


def test_a_name_given_twice_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    memory = Memory()
    store = WriterStore(tmp_path, memory, on_conflict="error")
    with pytest.raises(StoreError, match=r"a\.md holds another item"):
        store.save([Content("a.md", "x"), Content("a.md", "y")])
    assert memory.files == {}


def test_a_writer_error_becomes_a_store_error_with_its_message(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No space left on device") as raised:
        WriterStore(tmp_path, Full()).save([Content("a.md", "x")])
    assert raised.value.path == str(tmp_path / "a.md")
    assert str(raised.value).startswith(f"{tmp_path / 'a.md'} cannot be written: ")
    assert isinstance(raised.value.__cause__, OSError)


def test_an_error_without_a_message_is_named_by_its_class(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: TimeoutError"):
        WriterStore(tmp_path, Silent()).save([Content("a.md", "x")])


def test_nothing_is_read_back_through_a_writer(tmp_path: Path) -> None:
    store = WriterStore(tmp_path, Memory())
    [file] = store.save([Content("a.md", "x")])
    with pytest.raises(StoreError, match="a writer only writes"):
        store.read(file.path)


def test_an_asynchronous_writer_is_awaited_in_its_own_loop(tmp_path: Path) -> None:
    memory = AwaitedMemory()

    async def save() -> None:
        store = WriterStore(tmp_path, memory, loop=asyncio.get_running_loop())
        await asyncio.to_thread(store.save, [Content("a.md", "x")])

    asyncio.run(save())
    assert memory.files == {str(tmp_path / "a.md"): "x"}
    assert memory.thread == threading.get_ident()


def test_an_asynchronous_writer_is_rejected_in_synchronous_calls(tmp_path: Path) -> None:
    memory = AwaitedMemory()
    with pytest.raises(StoreError, match="the writer is asynchronous, so the call has to be"):
        WriterStore(tmp_path, memory).save([Content("a.md", "x")])
    assert memory.files == {}


@pytest.mark.parametrize("by_writer", [False, True])
def test_files_left_after_an_error_match_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_writer: bool
) -> None:
    messages = session_of("first " * 9_000, "second " * 9_000)
    write = os.write

    def refused(descriptor: int, content: bytes) -> int:
        if bytes(content).startswith(b"second"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, content)

    class Plain:
        def write(self, path: str, text: str) -> None:
            if text.startswith("second"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            tmp_path.mkdir(exist_ok=True)
            Path(path).write_text(text, encoding="utf-8")

    monkeypatch.setattr(os, "write", refused)
    with pytest.raises(StoreError, match="No space left"):
        offload_tool_results(messages, output_dir=tmp_path, writer=Plain() if by_writer else None)
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == ({"tool-result-c0.md"} if by_writer else set())
