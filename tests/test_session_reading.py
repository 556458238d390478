"""`Session.read` and `Session.search`: exact texts, without bounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyctx import Session, StoreError, compact_messages, offload_tool_result
from policyctx.turns.effects import SessionStore
from tests.conversations import session_of
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

TEXT = "".join(f"line {i}\n" for i in range(1, 5001)) + "end"
POLICY = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps: [{name: a, do: offload, select: {types: [tool_result]}}]
    """


def reading(root: Path, store: SessionStore | None = None) -> tuple[Session, str]:
    session = Session(policy(POLICY), root=root, session_id="s", store=store)
    [path] = session.apply(session_of(TEXT)).files
    return session, path


def test_a_text_is_read_whole_or_by_lines(tmp_path: Path) -> None:
    session, path = reading(tmp_path)
    assert session.read(path) == session.read("c0") == TEXT
    assert session.read(path, limit=2) == "line 1\nline 2\n"
    assert session.read(path, offset=5000) == "line 5000\nend"
    assert session.read(path, offset=4999, limit=2) == "line 4999\nline 5000\n"
    assert session.read(path, offset=9999) == session.read(path, limit=0) == ""


def test_a_search_yields_every_match(tmp_path: Path) -> None:
    session, _ = reading(tmp_path)
    found = list(session.search("LINE 49", ignore_case=True))
    assert (len(found), found[0].line, found[0].char) == (111, 49, 1)
    assert list(session.search("LINE")) == []
    with pytest.raises(StoreError):
        list(session.search(""))


def test_a_store_of_the_caller_may_be_unable_to_search(tmp_path: Path) -> None:
    session, path = reading(tmp_path, MemoryStore())
    assert session.read(path, offset=5001) == "end"
    with pytest.raises(StoreError, match="this store cannot search"):
        session.search("line")


COMPACTS = """\
    min_chars: 0
    items: {tool_result: {offload: true}}
    store: {sync: never, format: FORMAT, compress: COMPRESS}
    steps:
      - {name: a, do: offload, select: {types: [tool_result]}}
      - name: c
        do: compact
        when: {messages: {over: 1}}
        compaction:
          summary: {by: none, must_shrink_to: false}
          wording: {summary: "{archive_path}"}
    """


@pytest.mark.parametrize("read_as", ["text", "envelope"])
@pytest.mark.parametrize("compress", ["zstd", "none"])
@pytest.mark.parametrize("written_as", ["text", "envelope"])
@pytest.mark.parametrize("state", ["kept", "none"])
def test_another_session_of_the_root_reads_each_path_that_was_returned(
    written_as: str, compress: str, read_as: str, state: str, tmp_path: Path
) -> None:
    text = COMPACTS.replace("COMPRESS", compress)
    rules = policy(text.replace("FORMAT", written_as))
    first = Session(rules, root=tmp_path, session_id="one")
    result = first.apply(session_of(TEXT, "more"))
    assert result.compaction is not None
    assert result.compaction.archive_path is not None
    reading_rules = policy(
        text.replace("FORMAT", read_as).replace("sync: never", f"sync: never, state: {state}")
    )
    other = Session(reading_rules, root=tmp_path, session_id="two")
    paths = [*result.files, result.compaction.archive_path]
    texts = [first.read(path) for path in paths]
    assert [other.read(path) for path in paths] == texts
    below = [str(Path(path).relative_to(tmp_path)) for path in paths]
    assert [other.read(path) for path in below] == texts
    assert TEXT in texts


def test_another_session_reads_the_paths_that_the_functions_return(tmp_path: Path) -> None:
    messages = session_of(TEXT, "more")
    compacted = compact_messages(messages, threshold=1, output_dir=tmp_path)
    single = offload_tool_result(messages[2], session_id="t", output_dir=tmp_path)
    other = Session(policy(POLICY), root=tmp_path, session_id="two")
    assert "line 4999" in str(json.loads(other.read(compacted.archive or "")))
    assert other.read(single.file or "") == TEXT


@pytest.mark.parametrize("name", ["..", ".policyctx/index.json", "../outside.zst"])
def test_another_session_reads_no_path_outside_the_contents(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside.zst").write_text("secret", encoding="utf-8")
    reading(tmp_path / "root")
    other = Session(policy(POLICY), root=tmp_path / "root", session_id="two")
    for path in (name, tmp_path / "root" / name):
        with pytest.raises(StoreError):
            other.read(path)
