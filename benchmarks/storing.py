"""Saving contents, against the bare calls that keep a name from standing for half a content.

Without flushing, that is one temporary file and one rename each. With flushing, careless code
waits for the disk twice for every file: for the file and for its folder. The files of one plan
are saved together, so they should wait less.
"""

from __future__ import annotations

import os
import shutil
import weakref
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.store.filesystem import Content, ContextFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILES = 200
FILES_OF_A_PLAN = 50
BYTES = 10 * 1024


def ratios() -> list[Ratio]:
    """The figures of this module; a call of the first saves 2 MB, of the second 0.5 MB."""
    contents = _contents()
    of_a_plan = contents[:FILES_OF_A_PLAN]
    scratch = Scratch()
    return [
        Ratio(
            "save 200 files, not flushed / write and rename each",
            ours=lambda: ContextFileSystem(scratch.root, sync="never").save(contents),
            baseline=lambda: write_each(contents, scratch.root, flush=False),
            setup=scratch.renewed,
        ),
        Ratio(
            "save 50 files, flushed / flush each file and its folder",
            ours=lambda: ContextFileSystem(scratch.root, sync="always").save(of_a_plan),
            baseline=lambda: write_each(of_a_plan, scratch.root, flush=True),
            setup=scratch.renewed,
        ),
    ]


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


def write_each(contents: Sequence[Content], root: Path, *, flush: bool) -> None:
    """Write each content to a temporary file, flushed if asked, and give it its name."""
    for content in contents:
        target = root / content.relative_path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(content.text.encode())
            if flush:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
        if flush:
            _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there, nor does our side flush it
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _contents() -> list[Content]:
    """Return contents of 10 KB each, the last character left out where it would not fit whole."""
    return [
        Content(f"tool_result/Bash/toolu_{i:04}.md", text.encode()[:BYTES].decode(errors="ignore"))
        for i, text in enumerate(tool_outputs([BYTES] * FILES, seed=3))
    ]
