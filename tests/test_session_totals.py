"""`Session.totals`, and the warning about gates that see no usage."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.tokens.counter import counter_for
from tests.conversations import calls, results, session_of, user
from tests.policies import policy

OFFLOAD = """\
    items: {tool_result: {offload: true, min_chars: 100, keep_recent: 0}}
    placeholder: "see {relative_path}"
    store: {sync: never}
    steps: [{name: s, do: offload, select: {types: [tool_result]}}]
    """
DROP = OFFLOAD.replace("do: offload", "do: drop").replace("offload: true, ", "")
COMPACT = """\
    model: {context_window: 1000}
    store: {sync: never}
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: c, do: compact, when: {messages: {at_least: 4}}}]
    """
TOKENS = """\
    model: {context_window: 10000}
    store: {sync: never}
    steps: [{name: s, do: offload, select: {types: [tool_result]}, when: {tokens: {over: 900}}}]
    """
USAGE = {"input_tokens": 100, "cache_read_input_tokens": 1_000, "output_tokens": 5}
LONG = "word " * 200


def tokens(text: str) -> int:
    return counter_for("o200k_base").count(text)


def turn(number: int, text: str = LONG) -> list[Message]:
    return [calls((f"c{number}", "Bash")), results((f"c{number}", text))]


def test_a_new_session_has_done_nothing(tmp_path: Path) -> None:
    totals = Session(policy(OFFLOAD), root=tmp_path, session_id="s").totals()
    assert (totals.calls, totals.tokens_sent, totals.tokens_spared) == (0, 0, 0)
    assert (totals.items, totals.files, totals.compactions) == ({}, 0, 0)


def test_each_observed_call_adds_its_prompt_and_what_was_not_in_it(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    messages = session_of(LONG)
    result = session.apply(messages)
    session.observe(USAGE)
    [left] = [d.placeholder for d in result.plan.decisions if d.placeholder is not None]
    spared = tokens(LONG) - tokens(left)
    assert session.totals().tokens_spared == spared
    session.apply([*messages, user("go on")])
    session.observe(USAGE)
    totals = session.totals()
    assert (totals.calls, totals.tokens_sent) == (2, 2_200)
    assert totals.tokens_spared == 2 * spared
    assert (totals.items, totals.files) == ({"offloaded": 1}, 1)


def test_a_call_without_usage_is_not_in_the_sums(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    session.apply(session_of(LONG))
    totals = session.totals()
    assert (totals.calls, totals.tokens_spared, totals.files) == (0, 0, 1)


def test_a_dropped_item_spares_all_its_tokens(tmp_path: Path) -> None:
    session = Session(policy(DROP), root=tmp_path, session_id="s")
    messages = [user("go"), *turn(1), *turn(2, "short"), user("on")]
    result = session.apply(messages)
    session.observe(USAGE)
    dropped = [d.item for d in result.plan.decisions if d.action.leaves_nothing]
    totals = session.totals()
    assert totals.tokens_spared == sum(tokens(item.text) for item in dropped) >= tokens(LONG)
    assert totals.items == {"dropped": len(dropped)}


def test_what_a_compaction_replaced_is_spared_in_each_later_call(tmp_path: Path) -> None:
    session = Session(
        policy(COMPACT), root=tmp_path, session_id="s", summarizer=lambda _: "Nothing is done yet."
    )
    messages = [user("go"), *turn(1), user("on")]
    result = session.apply(messages)
    assert result.compaction is not None
    stats = result.compaction.stats
    saved = stats.original_token_count - stats.compacted_token_count
    session.observe(USAGE)
    session.apply([*messages, user("further")])
    session.observe(USAGE)
    totals = session.totals()
    assert totals.compactions == 1
    assert totals.tokens_spared == 2 * saved > 0


def test_items_and_files_are_known_after_a_restart(tmp_path: Path) -> None:
    Session(policy(OFFLOAD), root=tmp_path, session_id="s").apply(session_of(LONG))
    totals = Session(policy(OFFLOAD), root=tmp_path, session_id="s").totals()
    assert (totals.calls, totals.items, totals.files) == (0, {"offloaded": 1}, 1)


@pytest.mark.parametrize("text", [TOKENS, TOKENS.replace("tokens: {over: 900}", "ratio: 1%")])
def test_gates_without_usage_are_reported_once_if_they_compare_tokens(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = text.replace("ratio: 1%", "messages: {over: 900}")
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages, warnings = [user("go")], list[str]()
    with caplog.at_level(logging.WARNING, logger="policyctx"):
        for number in range(12):
            messages += turn(number, "short")
            warnings += session.apply(messages).warnings
    expected = ["observe(response.usage)"] if "tokens:" in text.split("when")[1] else []
    assert len(warnings) == len(expected) == len(caplog.records)
    assert all(part in warning for part, warning in zip(expected, warnings, strict=True))


def test_an_observed_usage_keeps_the_gates_silent(tmp_path: Path) -> None:
    session = Session(policy(TOKENS), root=tmp_path, session_id="s")
    messages = [user("go")]
    for number in range(12):
        messages += turn(number, "short")
        assert session.apply(messages).warnings == ()
        session.observe(USAGE)


def test_gates_without_usage_are_not_reported_if_none_is_expected(tmp_path: Path) -> None:
    session = Session(policy(TOKENS), root=tmp_path, session_id="s", expects_usage=False)
    messages = [user("go")]
    for number in range(12):
        messages += turn(number, "short")
        assert session.apply(messages).warnings == ()
