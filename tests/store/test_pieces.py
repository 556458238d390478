"""A text that comes to the store in pieces is saved as the whole text would be."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from policyctx.store.content import Content
from policyctx.store.files import Format, packed_pieces, unpacking
from policyctx.store.filesystem import ContextFileSystem

# Halves of a character that come apart, pieces of nothing, and lines over several of them.
PIECES = ("", "一二\n", "", "three", " \ud83d", "\ude00\n", "four", "")
TEXT = "".join(PIECES)

Compress = Literal["none", "zstd"]


@pytest.fixture(params=["none", "zstd"])
def compress(request: pytest.FixtureRequest) -> Compress:
    found: Compress = request.param
    return found


@pytest.fixture
def store(tmp_path: Path, form: Format, compress: Compress) -> ContextFileSystem:
    return ContextFileSystem(tmp_path, sync="never", format=form, compress=compress)


def content(source: str | tuple[str, ...]) -> Content:
    return Content("a.json", source, packed=True)


def test_it_reads_back_whole(store: ContextFileSystem) -> None:
    [file] = store.save([content(PIECES)])
    assert store.read(file.path) == TEXT
    assert store.verify().is_clean


def test_a_text_in_pieces_has_the_same_index_entry_as_the_whole(
    tmp_path: Path, form: Format, compress: Compress
) -> None:
    [whole], [pieces] = (
        ContextFileSystem(tmp_path / name, format=form, compress=compress).saved([content(source)])
        for name, source in (("whole", TEXT), ("pieces", PIECES))
    )
    assert (pieces.sha256, pieces.size) == (whole.sha256, whole.size)
    assert (pieces.chars, pieces.lines) == (whole.chars, whole.lines) == (len(TEXT), 3)


def test_the_same_text_is_the_same_file(store: ContextFileSystem) -> None:
    store.save([content(TEXT)])
    [again] = store.saved([content(PIECES)])
    assert again.reused
    assert len(store.list()) == 1


def test_another_text_gets_another_name(store: ContextFileSystem) -> None:
    [first] = store.save([content(TEXT)])
    [second] = store.save([content((*PIECES, "more"))])
    assert (store.read(first.path), store.read(second.path)) == (TEXT, f"{TEXT}more")


def test_no_pieces_are_an_empty_text(store: ContextFileSystem) -> None:
    [saved] = store.saved([content(())])
    assert (saved.size, saved.chars, saved.lines) == (0, 0, 0)
    assert store.read(saved.file.path) == ""


class Failing:
    """Pieces that break off."""

    def __iter__(self) -> Iterator[str]:
        yield "half"
        raise ValueError("no more")


def test_pieces_that_break_off_leave_nothing(store: ContextFileSystem) -> None:
    with pytest.raises(ValueError, match="no more"):
        store.save([Content("a.json", Failing(), packed=True)])
    assert not any(Path(store.root).iterdir())


def test_a_repetitive_text_is_unpacked_in_small_pieces() -> None:
    packed = packed_pieces([b"the same line\n" * 1_000] * 2_000)
    tracemalloc.start()
    try:
        read = sum(map(len, iter(partial(unpacking(io.BytesIO(packed)).read, 1 << 16), b"")))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == 28_000_000
    assert peak < 6_000_000
