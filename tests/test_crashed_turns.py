"""Sessions that stopped in a turn that drops words, or that have no record of the list they saw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import StoreError
from policyctx.session import Session
from tests.fuzz.histories import left_by, without_fillers
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy
from tests.restarting import HOSTS, ROUNDS, in_all_shapes, late_picture, reply, two_calls

RULES = """\
    items: {{user_message: {{offload: true}}}}
    min_chars: 0
    store: {{sync: never, on_failure: {on_failure}}}
    steps: [{{name: questions, do: drop, select: {{types: [user_message], keep_recent: 2}}}}]
    """
FORGETFUL, RAISING = (policy(RULES.format(on_failure=one)) for one in ("keep", "raise"))


class Filling(MemoryStore):
    """A store that may have no room for more."""

    is_full = False

    def remember(self, records: Sequence[Mapping[str, Any]], *, flush: bool = True) -> None:
        """Keep records. Raises `StoreError` without room."""
        if self.is_full:
            raise StoreError("no space left on device", path="journal.jsonl")
        super().remember(records, flush=flush)


class Unplugged(MemoryStore):
    """A store on a machine that loses power, and with it what was not flushed."""

    def remember(self, records: Sequence[Mapping[str, Any]], *, flush: bool = True) -> None:
        """Keep records that are flushed."""
        if flush:
            super().remember(records)


def opened(store: MemoryStore | Path, shape: str) -> Session:
    """Return a session that knows what the store, or the one in this root, holds."""
    hosts = HOSTS.get(shape, ())
    if isinstance(store, Path):
        return Session(FORGETFUL, root=store, session_id="s", shapes=hosts)
    return Session(FORGETFUL, store=store, session_id="s", shapes=hosts)


def asked(shape: str, *questions: int) -> list[Any]:
    """Return a round for each of these numbers: its question, and an answer with a call."""
    return [one for i in questions for one in ROUNDS[shape](i)]


def said_again(shape: str, i: int, *, in_round: int) -> list[Any]:
    """Return a round that asks the question of another one."""
    return [ROUNDS[shape](i)[0], *ROUNDS[shape](in_round)[1:]]


@in_all_shapes
def test_the_list_that_a_turn_dropped_words_from_is_written_with_them(shape: str) -> None:
    """What a turn writes behind its decisions may be lost."""
    store = Unplugged()
    live = opened(store, shape)
    left = live.apply(asked(shape, 0, 1, 2, 3)).messages
    again = [*left, *said_again(shape, 1, in_round=4), *asked(shape, 5)]
    after = left_by(opened(store.copy(), shape), list(again))
    assert after == again == left_by(live, list(again))


@in_all_shapes
def test_a_journal_that_ends_anywhere_in_a_turn_loses_no_newest_words(
    shape: str, tmp_path: Path
) -> None:
    live = opened(tmp_path / "live", shape)
    back = list(live.apply(asked(shape, 0, 1, 2, 3)).messages)
    given = [*back, *said_again(shape, 1, in_round=4), *said_again(shape, 2, in_round=5)]
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    [journal] = (tmp_path / "killed").rglob("journal.jsonl")
    [whole] = (tmp_path / "live").rglob("journal.jsonl")
    start = journal.stat().st_size
    left = live.apply(list(given)).messages
    content = whole.read_bytes()
    kept = len(asked(shape, 4, 5))
    ends = {i for i in range(start, len(content)) if content[i - 1 : i] == b"\n" or i % 150 == 0}
    for end in sorted(ends):
        journal.write_bytes(content[:end])
        after = opened(tmp_path / "killed", shape).apply(list(given)).messages
        assert list(after[-kept:]) == given[-kept:]
    journal.write_bytes(content)
    assert left_by(opened(tmp_path / "killed", shape), list(given)) == list(left)


@in_all_shapes
def test_a_journal_that_ends_anywhere_in_an_arrival_loses_no_newest_words(
    shape: str, tmp_path: Path
) -> None:
    """A pair leaves, or the image of a result where a message has one result."""
    has_one = shape in {"chat", "responses"}
    taken = "types: [image]" if has_one else "types: [tool_result], tools: [Read]"
    arrival = f"{{name: seen, on: arrival, do: drop, select: {{{taken}}}}}, {{name: questions"
    compiled = policy(RULES.format(on_failure="keep").replace("{name: questions", arrival))
    asking, found = [ROUNDS[shape](4)[-2], late_picture(shape, 4)] if has_one else two_calls(shape)
    hosts = HOSTS.get(shape, ())
    live = Session(compiled, root=tmp_path / "live", session_id="s", shapes=hosts)
    back = list(live.apply(asked(shape, 0, 1, 2, 3)).messages)
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    [journal] = (tmp_path / "killed").rglob("journal.jsonl")
    [whole] = (tmp_path / "live").rglob("journal.jsonl")
    start = journal.stat().st_size
    assert live.on_tool_result(found, call=asking).plan.new
    given = [*back, ROUNDS[shape](1)[0], reply(shape, "so"), ROUNDS[shape](2)[0]]
    content = whole.read_bytes()
    for end in range(start, len(content) + 1):
        if content[end - 1 : end] == b"\n":
            journal.write_bytes(content[:end])
            anew = Session(compiled, root=tmp_path / "killed", session_id="s", shapes=hosts)
            kept = len(given) - len(back)
            assert list(anew.apply(list(given)).messages[-kept:]) == given[-kept:]


def as_of_before(store: MemoryStore) -> MemoryStore:
    """Return a store with what version 0.2 would have written: no record of a list."""
    other = store.copy()
    other.lines = [one for one in other.lines if json.loads(one)["record"] != "list"]
    return other


@in_all_shapes
def test_words_that_are_said_again_stay_without_a_record_of_the_list(shape: str) -> None:
    """The list lacks other words that were dropped, so it is the one that was returned."""
    store = MemoryStore()
    left = opened(store, shape).apply(asked(shape, 0, 1, 2, 3, 4)).messages
    anew = opened(as_of_before(store), shape)
    again = [*left, *said_again(shape, 1, in_round=5)]
    assert left_by(anew, list(again)) == again
    more = [*anew.apply(list(again)).messages, *said_again(shape, 2, in_round=6)]
    assert left_by(anew, list(more)) == more


@in_all_shapes
def test_the_own_list_lacks_what_was_dropped_without_a_record_of_the_list(shape: str) -> None:
    store, own = MemoryStore(), asked(shape, 0, 1, 2, 3, 4)
    live = opened(store, shape)
    left = live.apply(list(own)).messages
    more = asked(shape, 5)
    after = left_by(opened(as_of_before(store), shape), [*own, *more])
    assert after == [*left, *more] == left_by(live, [*own, *more])


@in_all_shapes
def test_words_that_are_said_again_stay_after_two_sessions_took_turns(shape: str) -> None:
    store = MemoryStore()
    one, other = opened(store, shape), opened(store, shape)
    begun = asked(shape, 0)
    one.apply(list(begun))
    other.apply(list(begun))
    back = one.apply([*begun, *asked(shape, 1, 2, 3, 4)]).messages
    back = other.apply([*back, *asked(shape, 5, 6)]).messages
    again = [*back, *said_again(shape, 1, in_round=7), *asked(shape, 8)]
    assert left_by(opened(store, shape), list(again)) == again


@in_all_shapes
def test_a_turn_whose_write_failed_has_seen_no_list(shape: str) -> None:
    """The caller may go on without what was said in it."""
    store = Filling()
    left = opened(store, shape).apply(asked(shape, 0, 1, 2, 3)).messages
    again = [*left, *said_again(shape, 1, in_round=4), *said_again(shape, 0, in_round=5)]
    after = left_by(opened(store.copy(), shape), list(again))
    anew = Session(RAISING, store=store, session_id="s", shapes=HOSTS.get(shape, ()))
    store.is_full = True
    with pytest.raises(StoreError):
        anew.apply([*again, *asked(shape, 6)])
    store.is_full = False
    assert left_by(anew, list(again)) == after


CALLS = policy(
    """\
    items: {tool_result: {offload: true}, tool_call: {offload: true}}
    min_chars: 0
    store: {sync: never}
    steps:
      - {name: calls, do: drop, select: {types: [tool_call, tool_result], unit: group,
         keep_recent: {items: 2, per: all}}}
    """
)


@in_all_shapes
def test_calls_that_a_cut_list_lacked_after_a_restart_stay_dropped_in_the_whole_one(
    shape: str,
) -> None:
    store, hosts = MemoryStore(), HOSTS.get(shape, ())
    own = asked(shape, 0, 1, 2, 3)
    live = Session(CALLS, store=store, session_id="s", shapes=hosts)
    left = live.apply(list(own)).messages
    assert len(left) < len(own)
    restarted = Session(CALLS, store=store, session_id="s", shapes=hosts)
    restarted.apply(own[:1])
    assert left_by(restarted, list(own)) == without_fillers(left)
