"""What a session learns from the usage of responses."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session, UsageError
from tests.conversations import Message, session_of, user
from tests.policies import policy

GATED = """\
    model: {tokenizer: approximate}
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload, when: {tokens: {at_least: 20000}}}]
    """
# Two results of 1,000 counted tokens; the request's system prompt and tools are not shown.
MESSAGES: list[Message] = [*session_of("x" * 4000, "y" * 4000), user()]
BILLED = {"input_tokens": 500, "cache_read_input_tokens": 24_000, "output_tokens": 7}


def opened(session: Session) -> bool:
    [verdict] = session.plan(MESSAGES).gates
    return verdict.opens


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(GATED), root=tmp_path, session_id="s")


def test_a_gate_compares_the_corrected_token_count(session: Session) -> None:
    session.apply(MESSAGES)
    assert not opened(session)
    session.observe(BILLED)
    [verdict] = session.plan(MESSAGES).gates
    assert (verdict.opens, verdict.number) == (True, 24_500)


def test_the_shape_of_the_chat_api_is_read_as_well(session: Session) -> None:
    session.apply(MESSAGES)
    session.observe({"prompt_tokens": 24_500, "completion_tokens": 7})
    assert opened(session)


def test_the_shape_of_the_responses_api_is_read_as_well(session: Session) -> None:
    session.apply(MESSAGES)
    details = {"cached_tokens": 24_000, "cache_write_tokens": 300}
    usage = {"input_tokens": 24_500, "input_tokens_details": details, "output_tokens": 7}
    session.observe(usage)
    [verdict] = session.plan(MESSAGES).gates
    assert (verdict.opens, verdict.number) == (True, 24_500)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": 0, "completion_tokens": 5, "total_tokens": 5},
        {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 5},
        {"inputTokens": 0, "outputTokens": 0},
        {"promptTokenCount": None},
    ],
)
def test_a_usage_without_a_prompt_leaves_the_call_estimated(
    usage: dict[str, int | None], session: Session
) -> None:
    """Some gateways send zeros; before, such a call counted as 0 tokens, all others as spared."""
    for _ in range(2):
        session.apply(MESSAGES)
        session.observe(usage)
    session.apply([*MESSAGES, {"role": "assistant", "content": "so"}, user()])
    totals = session.totals()
    assert totals.tokens_sent > 2_000
    assert totals.calls == totals.estimated_calls == 1


def test_usage_without_a_returned_list_is_ignored(session: Session) -> None:
    session.observe(BILLED)
    assert not opened(session)
    session.apply(MESSAGES)
    session.observe({"prompt_tokens": 2_010, "completion_tokens": 7})
    session.observe(BILLED)
    assert not opened(session)


def test_an_items_size_never_changes(session: Session) -> None:
    session.apply(MESSAGES)
    before = [session.plan(MESSAGES).facts.tokens(item) for item in session.plan(MESSAGES).items]
    session.observe(BILLED)
    planned = session.plan(MESSAGES)
    assert [planned.facts.tokens(item) for item in planned.items] == before


def test_the_usage_correction_survives_a_restart(session: Session, tmp_path: Path) -> None:
    session.apply(MESSAGES)
    session.observe(BILLED)
    session.apply(MESSAGES)  # the gate is open: from now on there is something to keep
    session.observe({"prompt_tokens": 23_000, "completion_tokens": 7})
    again = Session(policy(GATED), root=tmp_path, session_id="s")
    [verdict] = session.plan(MESSAGES).gates
    assert verdict.number == 23_000
    assert again.plan(MESSAGES).gates[0].number == verdict.number


def test_an_invalid_usage_is_rejected(session: Session) -> None:
    with pytest.raises(UsageError, match="expected a response's `usage`"):
        session.observe({"tokens": 3})


def test_stats_count_the_counted_texts(session: Session) -> None:
    before = session.stats.misses
    session.apply([user("never counted before, in any other test of this file")])
    assert session.stats.misses > before
