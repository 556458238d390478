"""Turns under a store that fails: which failures are reported, and which records may get lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policyctx import ContextFileSystem, Session, StoreError
from policyctx.paths import File
from policyctx.store.content import Content
from policyctx.turns.result import Result
from tests.conversations import session_of, user
from tests.policies import policy

TEXT = """\
    items: {tool_result: {offload: true}}
    placeholder: "[{item_id}]"
    store: {sync: never, on_failure: ON_FAILURE}
    steps:
      - {name: idle, do: offload, when: {idle: {over: 5h}}, select: {types: [tool_result]}}
      - {name: s, do: offload, select: {types: [tool_result]}}
    """
LARGE = "x" * 400
FULL = session_of(LARGE, LARGE)
BILLED = {"prompt_tokens": 20_000, "completion_tokens": 7}


class FailingStore(ContextFileSystem):
    """A folder for which the named operations fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, sync="never", session="s")
        self.failing: set[str] = set()

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        self._fail_at("save")
        return super().save(contents, recorded=recorded)

    def remember(self, records: Sequence[Any], *, flush: bool = True) -> None:
        self._fail_at("remember" if flush else "note")
        super().remember(records, flush=flush)

    def records(self) -> list[dict[str, Any]]:
        self._fail_at("records")
        return super().records()

    def _fail_at(self, operation: str) -> None:
        if operation in self.failing:
            raise StoreError(f"{operation} failed", path=str(self.root))


@pytest.fixture
def store(tmp_path: Path) -> FailingStore:
    return FailingStore(tmp_path / "root")


def opened(store: FailingStore, on_failure: str = "keep") -> Session:
    text = TEXT.replace("ON_FAILURE", on_failure)
    return Session(policy(text), session_id="s", store=store)


def applied(session: Session, *, asynchronous: bool) -> Result:
    return asyncio.run(session.apply_async(FULL)) if asynchronous else session.apply(FULL)


BOTH = pytest.mark.parametrize("asynchronous", [False, True])


@BOTH
@pytest.mark.parametrize("operation", ["save", "remember"])
def test_a_failure_keeps_the_items_and_is_a_warning(
    operation: str, asynchronous: bool, store: FailingStore
) -> None:
    session = opened(store)
    store.failing = {operation}
    result = applied(session, asynchronous=asynchronous)
    assert result.messages is FULL
    [warning] = result.warnings
    assert warning.startswith(f"offloading has stopped: {operation} failed;")
    store.failing = set()
    assert session.apply(FULL).messages[2]["content"][0]["content"] == "[c0]"


@BOTH
@pytest.mark.parametrize("operation", ["save", "remember"])
def test_a_failure_is_raised_under_on_failure_raise(
    operation: str, asynchronous: bool, store: FailingStore
) -> None:
    session = opened(store, "raise")
    store.failing = {operation}
    with pytest.raises(StoreError, match=f"{operation} failed"):
        applied(session, asynchronous=asynchronous)
    store.failing = set()
    assert session.apply(FULL).messages[2]["content"][0]["content"] == "[c0]"


@pytest.mark.parametrize("on_failure", ["keep", "raise"])
def test_a_session_that_cannot_read_its_records_raises(
    on_failure: str, store: FailingStore
) -> None:
    session = opened(store, on_failure)
    store.failing = {"records"}
    with pytest.raises(StoreError, match="records failed"):
        session.apply(FULL)


@pytest.mark.parametrize("on_failure", ["keep", "raise"])
def test_a_failure_to_note_the_time_of_a_call_is_not_reported(
    on_failure: str, store: FailingStore
) -> None:
    session = opened(store, on_failure)
    store.failing = {"note"}
    result = session.apply(FULL)
    assert result.messages[2]["content"][0]["content"] == "[c0]"
    assert result.warnings == ()


def test_a_failure_to_note_usage_is_not_reported(store: FailingStore) -> None:
    session = opened(store, "raise")
    session.apply(FULL)
    counted = session.apply(FULL).plan.conversation.tally("tokens").total
    store.failing = {"note"}
    session.observe(BILLED)
    corrected = session.plan(FULL).facts.correction
    assert corrected.last is not None
    assert corrected.last.billed == BILLED["prompt_tokens"] > counted


def test_unreadable_records_are_reported_if_that_cannot_be_noted(store: FailingStore) -> None:
    store.remember([{"record": "call", "at": "noon"}])
    session = opened(store, "raise")
    store.failing = {"note"}
    [warning] = session.apply(FULL).warnings
    assert warning.startswith("1 record of the session could not be read")
    assert session.apply(FULL).warnings == ()


def test_a_removed_folder_is_reported_if_its_records_cannot_be_read(store: FailingStore) -> None:
    session = opened(store, "raise")
    session.apply(FULL)
    shutil.rmtree(store.root)
    store.failing = {"records"}
    warnings = session.apply([*FULL, user("more")]).warnings
    assert any("2 placeholders name files in it" in warning for warning in warnings)


def test_a_request_larger_than_the_window_is_not_blamed_on_the_policy_while_the_store_fails(
    store: FailingStore,
) -> None:
    small = policy("extends: coding-agent\nmodel: {context_window: 1000}\n")
    store.failing.add("save")
    result = Session(small, store=store, session_id="s").apply(session_of(*["word " * 900] * 8))
    size, stopped = result.warnings
    assert size.endswith("; nothing is offloaded while the store fails")
    assert stopped.startswith("offloading has stopped: ")


def test_a_request_larger_than_the_window_is_said_once_while_the_store_fails(
    store: FailingStore,
) -> None:
    small = policy("extends: coding-agent\nmodel: {context_window: 1000}\n")
    store.failing.add("save")
    session = Session(small, store=store, session_id="s")
    messages = session_of(*["word " * 900] * 8)
    said = list(session.apply(messages).warnings)
    for number in range(3):
        messages = [*messages, user(f"more {number}")]
        said += session.apply(messages).warnings
    assert [one for one in said if one.endswith("while the store fails")] == said[:1]


def test_what_helps_against_a_large_request_is_said_once_the_store_works(
    store: FailingStore,
) -> None:
    small = policy(
        TEXT.replace("ON_FAILURE", "keep").replace(
            "store:", "model: {context_window: 1000}\n    store:"
        )
    )
    session = Session(small, store=store, session_id="s")
    messages = [user("word " * 9000), *session_of("word " * 900)]
    store.failing.add("save")
    assert "nothing is offloaded while the store fails" in session.apply(messages).warnings[0]
    store.failing.clear()
    said = (
        session.apply([*messages, user("more")]).warnings
        + session.apply([*messages, user("more"), user("more")]).warnings
    )
    assert any("the largest item that stays is user_message" in one for one in said)
    assert "while the store fails" not in said[-1]
