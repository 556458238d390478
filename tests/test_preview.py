"""`Session.preview`: the list that `apply` would return, without a decision."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from policyctx import Session
from tests.conversations import calls, results, session_of, user
from tests.policies import policy

OLD = """\
    items: {tool_result: {offload: true, keep_recent: 1}}
    min_tokens: 100
    steps: [{name: retire, do: offload}]
    """
DROPPED = OLD.replace("do: offload", "do: drop")
COMPACTED = """\
    model: {context_window: 1000}
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: c, do: compact, when: {tokens: {at_least: 50%}}}]
    """
MESSAGES = session_of("alpha " * 400, "beta " * 400)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OLD), root=tmp_path, session_id="s")


@pytest.mark.parametrize("text", [OLD, DROPPED])
def test_it_is_the_list_of_the_next_turn(tmp_path: Path, text: str) -> None:
    session = Session(policy(text), root=tmp_path, session_id="s")
    previewed = session.preview(MESSAGES)
    assert (len(session.ledger), [*tmp_path.iterdir()]) == (0, [])
    assert asyncio.run(session.preview_async(MESSAGES)) == previewed
    assert session.apply(MESSAGES).messages == previewed != MESSAGES


def test_earlier_decisions_are_in_it_and_new_ones_stay_undecided(session: Session) -> None:
    sent = session.apply(MESSAGES).messages
    more = [*MESSAGES, calls(("c2", "Bash")), results(("c2", "gamma " * 400))]
    previewed = session.preview(more)
    assert previewed[:4] == sent[:4]
    assert previewed[4] != sent[4]
    assert len(session.ledger) == 1
    assert session.preview(MESSAGES) == sent
    assert session.apply(more).messages == previewed


def test_a_list_without_an_edit_is_the_same_object(session: Session) -> None:
    messages = [user()]
    assert session.preview(messages) is messages


def test_a_compaction_that_is_due_is_not_made_but_an_earlier_one_is_applied(
    tmp_path: Path,
) -> None:
    session = Session(policy(COMPACTED), root=tmp_path, session_id="s")
    assert session.preview(MESSAGES) == MESSAGES
    sent = session.apply(MESSAGES).messages
    assert session.preview(MESSAGES) == sent != MESSAGES


def test_a_usage_is_observed_by_a_coroutine(session: Session) -> None:
    gated = policy(OLD.replace("offload}", "offload, when: {tokens: {at_least: 20000}}}"))
    session = Session(gated, root=session.store.root, session_id="t")
    session.apply(MESSAGES)
    asyncio.run(session.observe_async({"input_tokens": 24_500, "output_tokens": 1}))
    assert session.plan(MESSAGES).gates[0].number == 24_500
