"""`Session.read` and `Session.search`: exact texts, without bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session, StoreError
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
