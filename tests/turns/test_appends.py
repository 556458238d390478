"""How often a turn appends to the journal of its session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policyctx import ContextFileSystem, Session
from tests.conversations import session_of, user
from tests.policies import policy

TEXT = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps:
      - {name: idle, do: clear, when: {idle: {over: 5h}}, select: {types: [tool_result]}}
      - {name: s, do: offload, select: {types: [tool_result], keep_recent: {items: 1}}}
    """
RESULTS = [f"result {i}\n" * 60 for i in range(8)]


class WatchedStore(ContextFileSystem):
    """A folder that keeps the kinds of records of each append."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, sync="never", session="s")
        self.appended: list[list[str]] = []

    def remember(self, records: Sequence[Any], *, flush: bool = True) -> None:
        super().remember(records, flush=flush)
        self.appended.append([record["record"] for record in records])


@pytest.mark.parametrize(
    ("idle", "expected"),
    [(False, [["decision", "usage"]]), (True, [["decision", "usage"], ["call"]])],
)
def test_a_turn_with_a_decision_writes_its_records_together(
    idle: bool, expected: list[list[str]], tmp_path: Path
) -> None:
    text = TEXT if idle else TEXT.replace(TEXT.splitlines()[3] + "\n", "")
    store = WatchedStore(tmp_path)
    session = Session(policy(text), session_id="s", store=store)
    for count in range(1, len(RESULTS)):
        session.apply(session_of(*RESULTS[:count]))
        store.appended, last = [], store.appended
    assert last == expected
    restarted = Session(
        policy(text), session_id="s", store=ContextFileSystem(tmp_path, session="s")
    )
    messages = session_of(*RESULTS[:-1])
    assert restarted.apply(messages).messages == session.apply(messages).messages
    assert restarted.totals() == session.totals()


def test_a_turn_without_a_decision_appends_once(tmp_path: Path) -> None:
    store = WatchedStore(tmp_path)
    session = Session(policy(TEXT), session_id="s", store=store)
    session.apply(session_of(*RESULTS[:3], "short"))
    store.appended.clear()
    session.apply([*session_of(*RESULTS[:3], "short"), {"role": "user", "content": "Go on."}])
    assert store.appended == [["usage", "call"]]


def test_a_turn_that_drops_words_is_one_append_with_the_list_that_it_leaves(tmp_path: Path) -> None:
    store = WatchedStore(tmp_path)
    drop = "{name: s, do: drop, select: {types: [user_message], keep_recent: 1}}"
    session = Session(policy(f"store: {{sync: never}}\nsteps: [{drop}]"), store=store)
    own = []
    for i in range(3):
        own.append(user(f"question {i}"))
        session.apply(list(own))
    assert store.appended == [["list", "decision", "usage"]] * 2
