from __future__ import annotations

import itertools
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.errors import StoreError
from policyctx.store.content import Content
from policyctx.store.files import PIECE_BYTES, Format
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.read import Finder
from tests.store.contents import result

# `POLICYCTX_SEARCHED_MB=1008` searches a gigabyte.
SEARCHED_MB = int(os.environ.get("POLICYCTX_SEARCHED_MB", "48"))


@pytest.fixture(params=["text", "envelope"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ContextFileSystem:
    form: Format = request.param
    return ContextFileSystem(tmp_path, sync="never", format=form)


def found(store: ContextFileSystem, text: str) -> list[tuple[str | None, int, str]]:
    return [(match.entry.item_id, match.line, match.text) for match in store.search(text)]


def lines(store: ContextFileSystem, text: str, *, ignore_case: bool = False) -> list[int]:
    return [match.line for match in store.search(text, ignore_case=ignore_case)]


def test_each_line_with_the_text_is_found_once(store: ContextFileSystem) -> None:
    store.save([result("call_1", "a needle\nhay\nneedle, needle\n"), result("call_2", "hay")])
    assert found(store, "needle") == [("call_1", 1, "a needle"), ("call_1", 3, "needle, needle")]


def test_search_is_case_sensitive_by_default(store: ContextFileSystem) -> None:
    store.save([result("call_1", "Straße\nSTRASSE\nstraße")])
    assert found(store, "straße") == [("call_1", 3, "straße")]
    assert lines(store, "STRAßE", ignore_case=True) == [1, 3]


@pytest.mark.parametrize("text", ["读", "🙂", "\ud800", '"', "\\", "\r\n", "\0", "a\nb"])
def test_any_text_is_found(store: ContextFileSystem, text: str) -> None:
    store.save([result("call_1", f"x\n{text}\ny")])
    assert lines(store, text) == [2]


def test_a_match_across_two_pieces_is_found(store: ContextFileSystem) -> None:
    for i, before in enumerate(range(PIECE_BYTES - 12, PIECE_BYTES + 2)):
        store.save(
            [result(f"call_{i}", "é" * 5 + "x" * (before - 10) + "\n读needle🙂\n" + "y" * 99)]
        )
    assert lines(store, "读needle🙂") == [2] * 14


def test_a_long_line_is_shown_in_part(store: ContextFileSystem) -> None:
    store.save([result("call_1", "x" * 5_000 + "needle" + "y" * 5_000)])
    assert found(store, "needle") == [("call_1", 1, "x" * 120 + "needle" + "y" * 120)]


def test_a_search_may_be_for_one_tool_or_type(store: ContextFileSystem) -> None:
    store.save([result("call_1", "needle"), result("call_2", "needle", tool="Read")])
    assert [m.entry.item_id for m in store.search("needle", tool="Read")] == ["call_2"]
    assert list(store.search("needle", item_type="user_message")) == []


def test_an_empty_text_is_an_error(store: ContextFileSystem) -> None:
    with pytest.raises(StoreError, match="empty"):
        list(store.search(""))


@pytest.mark.slow
def test_memory_use_does_not_depend_on_the_searched_size(tmp_path: Path, form: Format) -> None:
    store = ContextFileSystem(tmp_path, sync="never", format=form)
    store.save([Content("lines", "a needle in the hay\n" + "hay\n" * (6 << 20))])
    for i in range(SEARCHED_MB // 24 - 1):
        store.save([Content(f"one-line-{i}", f"{i}" + "x" * (24 << 20))])
    tracemalloc.start()
    try:
        number = sum(1 for _ in store.search("needle"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert number == 1
    assert peak < 12 << 20


@given(
    text=st.text(alphabet="ab\n", max_size=600),
    wanted=st.text(alphabet="ab\n", min_size=1, max_size=3),
    cuts=st.lists(st.integers(0, 600), max_size=5),
)
def test_pieces_make_no_difference(text: str, wanted: str, cuts: list[int]) -> None:
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    finder = Finder(wanted, ignore_case=False)
    told = [line for a, b in itertools.pairwise(ends) for line, _ in finder.found(text[a:b])]
    told += [line for line, _ in finder.found(None)]
    starts = [i for i in range(len(text)) if text.startswith(wanted, i)]
    expected = sorted({text.count("\n", 0, start) + 1 for start in starts})
    # What overlaps the occurrence before it is not told of again.
    assert set(told) <= set(expected)
    assert told == sorted(set(told))
    assert told[:1] == expected[:1]
