"""A search whose best lines come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.errors import StoreError
from policyctx.store.content import Content
from policyctx.store.excerpts import ranked_lines, search_offloaded
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import session_of
from tests.policies import policy


def store_of(root: Path, *texts: str) -> ContextFileSystem:
    store = ContextFileSystem(root, sync="never")
    store.save([Content(f"c{i}.md", text) for i, text in enumerate(texts)])
    return store


def places(store: ContextFileSystem, query: str) -> list[str]:
    return [f"{one.entry.path}:{one.line}" for one in ranked_lines(store, query)]


def test_the_text_that_tells_most_comes_first(tmp_path: Path) -> None:
    filler = "another line about nothing\n" * 300
    long = filler + "a timeout here\n" + filler
    short = "the timeout of the pool\nis 30 s\nsee timeout in the manual\n"
    store = store_of(tmp_path, long, "no word of it\n", short)
    assert places(store, "Timeout") == ["c2.md:1", "c2.md:3", "c0.md:301"]


def test_without_a_line_that_contains_it_words_are_looked_for(tmp_path: Path) -> None:
    log = "request failed\nretry of the request\npool exhausted: no connection for request 7\n"
    store = store_of(tmp_path, "request " * 200, log, "nothing of it")
    found = ranked_lines(store, "connection pool exhausted by request")
    assert (found[0].entry.path, found[0].line) == ("c1.md", 1)
    assert [one.line for one in found if one.entry.path == "c1.md"] == [1, 2, 3]
    only = ranked_lines(
        store_of(tmp_path / "b", "".join(f"word {i}\n" for i in range(99))), "a word"
    )
    assert len(only) == 5


def test_a_rare_word_decides_which_lines_are_shown(tmp_path: Path) -> None:
    text = "".join(f"error in step {i}\n" for i in range(40)) + "error: checksum of part 7\n"
    found = places(store_of(tmp_path, text, "an error\n"), "which checksum error was it")
    assert "c0.md:41" in found
    assert len(found) == 6


def test_archives_are_searched_too_and_equal_texts_once(tmp_path: Path) -> None:
    text = """\
    items: {tool_result: {offload: true}}
    min_chars: 100
    steps:
      - {name: s, do: offload}
      - {name: c, do: compact, when: {messages: {at_least: 6}}}
    """
    session = Session(policy(text), root=tmp_path)
    messages = session_of("the marmot whistles\n" * 30, "short")
    session.apply([*messages, {"role": "user", "content": "remember the marmot"}])
    paths = [one.entry.path for one in session.search("MARMOT", ranked=True)]
    assert any("archive" in path or "compact" in path for path in paths)
    assert any(path.startswith("tool_result/") for path in paths)


def test_the_same_query_has_the_same_answer(tmp_path: Path) -> None:
    store = store_of(tmp_path, *(f"alpha {i}\nbeta {i % 3}\n" for i in range(20)))
    assert search_offloaded(store, "beta alpha") == search_offloaded(store, "beta alpha")
    assert places(store, "nowhere at all") == []
    with pytest.raises(StoreError):
        ranked_lines(store, "")
