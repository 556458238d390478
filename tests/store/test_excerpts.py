"""What a model is shown when it reads offloaded content back: bounded, and always an answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import ContextFileSystem, WriterStore
from policyctx.store.content import Content, Origin
from policyctx.store.excerpts import (
    MOST_CHARS,
    MOST_LINES,
    MOST_MATCHES,
    _page,
    read_offloaded,
    search_offloaded,
)


def store_of(root: Path, *texts: str, **options: object) -> ContextFileSystem:
    """A store with a result for each text: `tool_result/Bash/c0.md`, …"""
    store = ContextFileSystem(root, sync="never", **options)  # type: ignore[arg-type]
    store.save([content(i, text) for i, text in enumerate(texts)])
    return store


def content(number: int, text: str) -> Content:
    origin = Origin(f"c{number}", "tool_result", f"c{number}", "Bash", "user")
    return Content(f"tool_result/Bash/c{number}.md", text, origin=origin)


def lines(count: int) -> str:
    return "".join(f"line {i}\n" for i in range(1, count + 1))


@pytest.mark.parametrize("key", ["tool_result/Bash/c0.md", "c0", "./tool_result/Bash/c0.md"])
def test_a_short_text_is_returned_as_it_is(key: str, tmp_path: Path) -> None:
    store = store_of(tmp_path, "a\r\nb 读\n")
    assert read_offloaded(store, key) == ("a\r\nb 读\n", False)
    assert read_offloaded(store, f"{tmp_path}/tool_result/Bash/c0.md").text == "a\r\nb 读\n"


def test_a_long_text_comes_in_pages_of_lines(tmp_path: Path) -> None:
    store = store_of(tmp_path, lines(2500))
    shown = read_offloaded(store, "c0").text
    assert shown.startswith("line 1\n")
    assert shown.endswith(
        f"line {MOST_LINES}\n[lines 1 to 1,000 of tool_result/Bash/c0.md; 15,000 characters follow:"
        " read_offloaded(path='tool_result/Bash/c0.md', offset=1001)]"
    )
    last = read_offloaded(store, "c0", 2499).text
    assert last == "line 2499\nline 2500\n[end of tool_result/Bash/c0.md]"


def test_a_range_is_returned_with_a_note(tmp_path: Path) -> None:
    shown = read_offloaded(store_of(tmp_path, lines(9)), "c0", "3", 2.0).text
    assert shown.startswith("line 3\nline 4\n[lines 3 to 4 of")
    assert "offset=5)" in shown


@pytest.mark.parametrize("letter", ["x", "读", "\N{GRINNING FACE}"])
def test_a_long_line_comes_in_pages_of_characters(letter: str, tmp_path: Path) -> None:
    text = letter * (2 * MOST_CHARS + 5)
    store = store_of(tmp_path, f"short\n{text}\nend")
    assert "offset=2)" in read_offloaded(store, "c0").text
    first = read_offloaded(store, "c0", 2).text
    assert first.startswith(letter * MOST_CHARS + "\n[line 2 of")
    assert f"offset=2, char={MOST_CHARS + 1})" in first
    assert f"char={2 * MOST_CHARS + 1})" in read_offloaded(store, "c0", 2, char=MOST_CHARS + 1).text
    rest = read_offloaded(store, "c0", 2, char=2 * MOST_CHARS + 1).text
    assert rest == f"{letter * 5}\nend\n[end of tool_result/Bash/c0.md]"


@given(text=st.text(alphabet="ab\n读", max_size=80), most=st.integers(1, 9), rows=st.integers(1, 9))
def test_the_pages_make_up_the_text(text: str, most: int, rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policyctx.store.excerpts.MOST_CHARS", most)
        begin, offset, char = 0, 1, 1
        while text:
            page = _page("name", text, offset, rows, char)
            assert not page.is_error
            if "(path=" not in page.text:
                assert page.text.startswith(text[begin:])
                return
            offset, char = map(int, next_of(page.text))
            end = sum(map(len, text.splitlines(keepends=True)[: offset - 1])) + char - 1
            assert page.text.startswith(text[begin:end])
            assert 0 < end - begin <= most
            begin = end


def next_of(note: str) -> tuple[str, str]:
    asked = note.rpartition("offset=")[2].rstrip(")]")
    offset, _, char = asked.partition(", char=")
    return offset, char or "1"


def test_compressed_and_enveloped_contents_are_read(tmp_path: Path) -> None:
    store = store_of(tmp_path / "packed", "needle " + "x" * 5000)
    store.collect(ended=True)
    assert (tmp_path / "packed/tool_result/Bash/c0.md.zst").is_file()
    assert read_offloaded(store, "c0").text.startswith("needle")
    assert search_offloaded(store, "NEEDLE").text.startswith("tool_result/Bash/c0.md:1: needle")
    enveloped = store_of(tmp_path / "enveloped", '{"a": "b"}\n', format="envelope")
    assert read_offloaded(enveloped, "c0").text == '{"a": "b"}\n'


def test_the_answer_can_be_sent_whatever_the_text_holds(tmp_path: Path) -> None:
    store = store_of(tmp_path, 'binary \x00\x1b\x7f \ud800 "\\u0000"')
    for answer in (read_offloaded(store, "c0"), search_offloaded(store, "binary")):
        assert "\N{REPLACEMENT CHARACTER}" in answer.text
        json.dumps(answer.text, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../etc/passwd",
        "tool_result/../../x",
        ".policyctx/journal.jsonl",
        "a\x00b",
        "\ud800",
        "x" * 4000,
        "~/.ssh/id_rsa",
        "tool_result",
        "link.md",
    ],
)
def test_nothing_but_the_contents_can_be_read(path: str, tmp_path: Path) -> None:
    store = store_of(tmp_path, "text")
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    (tmp_path / "foreign.md").write_text("root:secret", encoding="utf-8")
    for given_path in (path, f"{tmp_path}/{path}", "foreign.md"):
        text, is_error = read_offloaded(store, given_path)
        assert is_error
        assert "root:" not in text
        text.encode()


def test_another_session_in_the_folder_cannot_be_read(tmp_path: Path) -> None:
    store_of(tmp_path, "the secret", session="other")
    own = ContextFileSystem(tmp_path, session="own")
    own.save([Content("own.md", "mine")])
    for key in ("tool_result/Bash/c0.md", f"{tmp_path}/tool_result/Bash/c0.md", "c0"):
        assert read_offloaded(own, key).is_error
    assert search_offloaded(own, "secret").text == "[nothing offloaded contains 'secret']"


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("tool_result/bash/c1.md", "tool_result/Bash/c1.md"),
        ("/elsewhere/tool_result/Bash/c1.md", "tool_result/Bash/c1.md"),
        ("c1.txt", "tool_result/Bash/c1.md"),
        ("tool_result/Bash/c01.md", "tool_result/Bash/c1.md"),
    ],
)
def test_an_unknown_path_is_answered_with_the_nearest(path: str, near: str, tmp_path: Path) -> None:
    text, is_error = read_offloaded(store_of(tmp_path, "zero", "one"), path)
    assert (f"did you mean {near!r}?" in text, is_error) == (True, True)


def test_before_anything_is_offloaded_the_answer_says_so(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "none")
    assert "nothing is offloaded yet" in read_offloaded(store, "a.md").text
    assert search_offloaded(store, "a").text == "[nothing offloaded contains 'a']"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "values",
    [
        {"path": ""},
        {"path": None},
        {"path": ["c0"]},
        {"path": " " * 1_000_000},
        {"path": "c0", "offset": 0},
        {"path": "c0", "offset": -3},
        {"path": "c0", "offset": "many"},
        {"path": "c0", "offset": True},
        {"path": "c0", "limit": 0},
        {"path": "c0", "limit": 1.5},
        {"path": "c0", "limit": float("inf")},
        {"path": "c0", "limit": float("nan")},
        {"path": "c0", "char": 0},
        {"path": "c0", "char": 99},
        {"path": "c0", "offset": 10**30},
    ],
)
def test_wrong_input_is_answered_with_an_error(values: dict[str, Any], tmp_path: Path) -> None:
    text, is_error = read_offloaded(store_of(tmp_path, "a\nb\n"), **values)
    assert is_error
    assert len(text) < 500


def test_a_text_behind_its_end_and_an_empty_text_are_answered(tmp_path: Path) -> None:
    store = store_of(tmp_path, "a\nb\n", "")
    text = "tool_result/Bash/c0.md has 2 lines; offset 3 is after the last"
    assert read_offloaded(store, "c0", 3) == (text, True)
    assert read_offloaded(store, "c1") == ("[tool_result/Bash/c1.md is empty]", False)


def test_an_altered_file_is_not_shown(tmp_path: Path) -> None:
    store = store_of(tmp_path, "as it was")
    (tmp_path / "tool_result/Bash/c0.md").write_text("altered", encoding="utf-8")
    text, is_error = read_offloaded(store, "c0")
    assert is_error
    assert "no longer holds what was saved" in text


def test_a_search_names_path_and_line(tmp_path: Path) -> None:
    store = store_of(tmp_path, "one\nThe Needle here\n", "nothing", "needle")
    assert search_offloaded(store, "needle") == (
        "tool_result/Bash/c2.md:1: needle\ntool_result/Bash/c0.md:2: The Needle here",
        False,
    )


def test_equal_contents_are_found_once(tmp_path: Path) -> None:
    store = store_of(tmp_path, "the needle", "the needle")
    assert search_offloaded(store, "needle").text == "tool_result/Bash/c0.md:1: the needle"


def test_a_match_in_a_long_line_says_where_to_read(tmp_path: Path) -> None:
    text = "x" * 2_000_000 + "needle" + "y" * 50_000 + "needle"
    store = store_of(tmp_path, f"first\n{text}")
    first, second = search_offloaded(store, "needle").text.split("\n")
    assert first.startswith("tool_result/Bash/c0.md:2:2000001: xxx")
    assert second.startswith("tool_result/Bash/c0.md:2:2050007: yyy")
    assert len(first) < 400
    assert read_offloaded(store, "c0", 2, char=2050007).text.startswith("needle\n[end of")


def test_a_search_is_bounded(tmp_path: Path) -> None:
    store = store_of(tmp_path, "".join(f"needle {i}\n" for i in range(MOST_MATCHES + 1)))
    *found, note = search_offloaded(store, "needle").text.split("\n")
    assert len(found) == MOST_MATCHES
    assert note == "[there are more than 50 matches; look for a longer text]"
    wide = store_of(tmp_path / "wide", f"needle{'x' * 500}\n" * 200)
    query = f"needle{'x' * 500}"
    assert len(search_offloaded(wide, query).text) <= MOST_CHARS + 100
    exactly = store_of(tmp_path / "exactly", "needle\n" * MOST_MATCHES)
    assert "more" not in search_offloaded(exactly, "needle").text


@pytest.mark.parametrize("query", ["", " ", " " * 1_000_000, "x" * 1001, None, 7, ["a"]])
def test_a_query_that_cannot_be_searched_is_an_error(query: object, tmp_path: Path) -> None:
    assert search_offloaded(store_of(tmp_path, "text"), query).is_error


def test_a_store_without_an_index_reads_by_path_alone(tmp_path: Path) -> None:
    store = store_of(tmp_path, "text", state="none")
    assert read_offloaded(store, "tool_result/Bash/c0.md").text == "text"
    assert read_offloaded(store, "/etc/passwd").is_error
    found = search_offloaded(store, "text")
    assert found.is_error
    assert "with `state: none` no list of the texts is kept" in found.text


def test_a_store_that_only_writes_answers_with_its_error(tmp_path: Path) -> None:
    class Writer:
        def write(self, path: str, text: str) -> None:
            """Write nothing."""

    store = WriterStore(tmp_path, Writer())
    assert "only writes" in read_offloaded(store, "a.md").text
    assert search_offloaded(store, "a") == ("this store cannot search", True)


@pytest.mark.slow
def test_many_contents_are_read_and_searched(tmp_path: Path) -> None:
    number = int(os.environ.get("POLICYCTX_CONTENTS", "2000"))
    store = ContextFileSystem(tmp_path, sync="never")
    texts = (f"text number {i} {'needle' * (i == number - 1)}" for i in range(number))
    store.save([content(i, text) for i, text in enumerate(texts)])
    assert read_offloaded(store, f"c{number // 2}").text == f"text number {number // 2} "
    assert search_offloaded(store, "needle").text.startswith(f"tool_result/Bash/c{number - 1}.md:1")
    assert "did you mean" in read_offloaded(store, f"tool_result/Bash/d{number - 1}.md").text


def test_the_nearest_path_is_not_named_if_its_file_is_gone(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    [file] = store.save([Content("tool_result/Bash/call_1.md", "text")])
    assert "did you mean" in read_offloaded(store, "tool_result/Bash/call_2.md").text
    Path(file.path).unlink()
    for path in ("tool_result/Bash/call_2.md", f"{tmp_path}/tool_result/Bash/call_1.txt"):
        answer = read_offloaded(store, path)
        assert answer.is_error
        assert "did you mean" not in answer.text
