"""Saving contents and finding them again, against the bare calls that nobody could do without.

Without flushing, that is one temporary file and one rename for each content and for the list of all
so far, which is fresh after each; the store also hashes and journals. With flushing, careless code
waits for the disk twice for every file: for the file and for its folder. The files of one plan are
saved together, so they should wait less. What the 10,000th costs is held against what the first
cost.
"""

from __future__ import annotations

import json
import os
import shutil
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.messages.json_text import JSON
from policyctx.store.content import Origin
from policyctx.store.filesystem import Content, ContextFileSystem

FILES = 500
FILES_OF_A_PLAN = 100
BYTES = 10 * 1024
MANY = 10_000
FEW = 100
SEARCHED_BYTES = 16 << 20


def ratios() -> list[Ratio]:
    """The figures of this module; a call saves at most 5 MB."""
    contents = _contents()
    of_a_plan = contents[:FILES_OF_A_PLAN]
    scratch = Scratch()
    few, many = Filled(FEW), Filled(MANY)
    haystack = Haystack()
    return [
        Ratio(
            f"offload {FILES} files one by one, not flushed / write and rename each, and an index",
            ours=lambda: save_each(ContextFileSystem(scratch.root, sync="never"), contents),
            baseline=lambda: write_with_index(contents, scratch.root),
            setup=scratch.renewed,
            bound=3.0,
        ),
        Ratio(
            f"save a plan of {FILES_OF_A_PLAN} files, flushed / flush each file and its folder",
            ours=lambda: ContextFileSystem(scratch.root, sync="always").save(of_a_plan),
            baseline=lambda: write_each(of_a_plan, scratch.root, flush=True),
            setup=scratch.renewed,
            bound=0.5,
        ),
        Ratio(
            f"offload {FEW} more to {MANY:,} / to {FEW}",
            ours=lambda: save_each(many.store, many.more(FEW)),
            baseline=lambda: save_each(few.store, few.more(FEW)),
            bound=1.2,
        ),
        Ratio(
            f"read {FEW} by id among {MANY:,} / among {FEW}",
            ours=many.read_some,
            baseline=few.read_some,
            bound=1.2,
        ),
        Ratio(
            f"search {SEARCHED_BYTES >> 20} MB / read it and look for the text",
            ours=haystack.searched,
            baseline=haystack.read_and_found,
        ),
    ]


def save_each(store: ContextFileSystem, contents: Sequence[Content]) -> None:
    """Save each content by itself, as it arrives."""
    for content in contents:
        store.save([content])


class Scratch:
    """Folders on the temporary disk, a new and empty one for each timing.

    They are removed together, when nothing refers to this any more: some file systems are slow to
    make files where others were just removed, which would fall on the next timing.
    """

    def __init__(self) -> None:
        self.root = self._all = Path(mkdtemp(prefix="policyctx-bench-"))
        weakref.finalize(self, shutil.rmtree, self._all, ignore_errors=True)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Make the next folder the `root`."""
        self.root = Path(mkdtemp(dir=self._all))
        yield


class Filled:
    """A store that holds so many short contents, in a temporary folder of its own."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._ids = count()
        folder = Path(mkdtemp(prefix="policyctx-bench-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.store = ContextFileSystem(folder, sync="never")
        self.store.save(self.more(number))

    def more(self, number: int) -> list[Content]:
        """Contents that the store has not got yet."""
        ids = (f"toolu_{next(self._ids):06}" for _ in range(number))
        return [_result(item_id, f"the text of {item_id}\n") for item_id in ids]

    def read_some(self) -> None:
        """Read contents from all over the store."""
        for i in range(0, self._number, self._number // FEW):
            self.store.read(f"toolu_{i:06}")


class Haystack:
    """A store with one long text, and the line that is looked for at its end."""

    def __init__(self) -> None:
        folder = Path(mkdtemp(prefix="policyctx-bench-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._store = ContextFileSystem(folder, sync="never")
        [text] = tool_outputs([SEARCHED_BYTES], seed=4)
        [self._file] = self._store.save([_result("toolu_1", f"{text}\nthe needle\n")])

    def searched(self) -> None:
        """Find the line by `search`."""
        assert len(list(self._store.search("the needle"))) == 1  # noqa: S101

    def read_and_found(self) -> None:
        """Find it in a text that is read whole."""
        assert "the needle" in Path(self._file.path).read_text(encoding="utf-8")  # noqa: S101


def write_each(contents: Sequence[Content], root: Path, *, flush: bool) -> None:
    """Write each content to a temporary file, flushed if asked, and give it its name."""
    for content in contents:
        _write(root / content.relative_path, content.text.encode(), flush=flush)


def write_with_index(contents: Sequence[Content], root: Path) -> None:
    """Write each content as `write_each` does, and then the index of all so far as a JSON list."""
    entries = b""
    for content in contents:
        write_each([content], root, flush=False)
        about = {"path": content.relative_path, "chars": len(content.text), "tool": "Bash"}
        entry = json.dumps({**about, "type": "tool_result", "sha256": "0" * 64})
        entries += b",\n" * bool(entries) + entry.encode()
        _write(root / "index.json", b"[" + entries + b"]", flush=False)


def _write(target: Path, data: bytes, *, flush: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        if flush:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(target)
    if flush:
        _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _contents() -> list[Content]:
    """Return contents of 10 KB each, the last character left out where it would not fit whole."""
    return [
        _result(f"toolu_{i:04}", text.encode()[:BYTES].decode(errors="ignore"))
        for i, text in enumerate(tool_outputs([BYTES] * FILES, seed=3))
    ]


def _result(item_id: str, text: str) -> Content:
    block: JSON = {"type": "tool_result", "tool_use_id": item_id, "content": text}
    origin = Origin(item_id, "tool_result", item_id, "Bash", "user", 1, 1, 100, block)
    return Content(f"tool_result/Bash/{item_id}.md", text, origin=origin)
