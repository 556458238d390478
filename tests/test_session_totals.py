"""`Session.totals`, and the warning about gates that see no usage."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.planning.facts import Request
from policyctx.tokens.counter import counter_for
from policyctx.turns.memory import Memory, Totals
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
    observed = session.observe(USAGE)
    [left] = [d.placeholder for d in result.plan.decisions if d.placeholder is not None]
    spared = tokens(LONG) - tokens(left)
    assert session.totals().tokens_spared == observed == spared
    assert session.observe(USAGE) == 0, "the same call"
    session.apply([*messages, user("go on")])
    session.observe(USAGE)
    totals = session.totals()
    assert (totals.calls, totals.tokens_sent) == (2, 2_200)
    assert totals.tokens_spared == 2 * spared
    assert (totals.items, totals.files) == ({"offloaded": 1}, 1)


def test_a_call_without_usage_counts_with_its_estimated_tokens_once_its_reply_is_seen(
    tmp_path: Path,
) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    messages = session_of(LONG)
    result = session.apply(messages)
    assert session.totals().calls == 0  # nothing says yet that the model has answered
    session.apply(messages)  # the same request again, after an error of the provider
    assert session.totals().calls == 0
    messages.append({"role": "assistant", "content": "done"})
    totals = session.totals()
    assert (totals.calls, totals.estimated_calls, totals.files) == (1, 1, 1)
    assert totals.tokens_sent == result.plan.tokens_after
    [left] = [d.placeholder for d in result.plan.decisions if d.placeholder is not None]
    assert totals.tokens_spared == tokens(LONG) - tokens(left)
    session.apply([*messages, user("go on")])
    assert session.totals() == totals


def test_usage_after_an_estimate_replaces_it(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    messages = session_of(LONG)
    session.apply(messages)
    messages.append({"role": "assistant", "content": "done"})
    assert session.totals().estimated_calls == 1
    session.observe(USAGE)
    totals = session.totals()
    assert (totals.calls, totals.estimated_calls, totals.tokens_sent) == (1, 0, 1_100)


def test_dollars_are_those_of_the_called_model(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    request = Request(model="claude-sonnet-4-5")
    session.apply(session_of(LONG), request=request)
    session.observe({"input_tokens": 1_000_000, "output_tokens": 5})
    totals = session.totals()
    assert totals.dollars == pytest.approx(6.0)  # above 200,000 tokens
    assert (totals.dollars_without or 0) > 6


def test_without_a_known_price_there_are_no_dollars(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    session.apply(session_of(LONG))
    session.observe(USAGE)
    assert session.totals().dollars is session.totals().dollars_without is None


def test_the_price_of_the_policy_comes_first(tmp_path: Path) -> None:
    price = "model: {price: {input: 7, cache_write: 7, cache_read: 7, output: 7}}"
    text = OFFLOAD.replace("    items", f"    {price}\n    items", 1)
    session = Session(policy(text), root=tmp_path, session_id="s")
    session.apply(session_of(LONG), request=Request(model="claude-sonnet-4-5"))
    session.observe({"input_tokens": 1_000_000, "output_tokens": 5})
    assert session.totals().dollars == pytest.approx(7.0)


def test_totals_print_as_one_line(tmp_path: Path) -> None:
    assert str(Session(policy(OFFLOAD), root=tmp_path, session_id="s").totals()) == (
        "0 calls; nothing has left the context"
    )
    totals = Totals(
        calls=35,
        estimated_calls=2,
        tokens_sent=1_200_000,
        tokens_spared=400_000,
        items={"offloaded": 12, "dropped": 3},
        files=12,
        compactions=1,
        dollars=2.5,
        dollars_without=3.75,
        failed_writes=1,
        unrecorded=2,
    )
    assert str(totals) == (
        "35 calls (2 without usage, estimated), 1,200,000 tokens sent, 400,000 spared (−25 %);"
        " $2.50 in place of about $3.75 for prompts; 12 offloaded, 3 dropped, 1 compaction;"
        " 12 files; failed: 1 write, 2 recorded calls"
    )


@pytest.mark.parametrize(
    ("spared", "said"), [(0, ""), (300, ", 300 spared (−25 %)"), (-90, ", 90 added (+11 %)")]
)
def test_totals_name_what_was_spared_or_added_and_nothing_else(spared: int, said: str) -> None:
    line = str(Totals(calls=2, tokens_sent=900, tokens_spared=spared))
    assert line == f"2 calls, 900 tokens sent{said}; nothing has left the context"


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


@pytest.mark.parametrize("has_usage", [True, False])
def test_all_totals_go_on_after_a_restart(tmp_path: Path, *, has_usage: bool) -> None:
    def run(session: Session, messages: list[Message]) -> None:
        session.apply(messages, request=Request(model="claude-sonnet-4-5"))
        if has_usage:
            session.observe(USAGE)

    one = Session(policy(OFFLOAD), root=tmp_path / "one", session_id="s")
    first = session_of(LONG)
    second = [*first, user("go on")]
    third = [*second, *turn(7), user("on")]
    for messages in (first, second, third):
        run(one, messages)
        run(Session(policy(OFFLOAD), root=tmp_path / "two", session_id="s"), messages)
    restarted = Session(policy(OFFLOAD), root=tmp_path / "two", session_id="s").totals()
    if has_usage:
        went_on = one.totals()
        # What the cache held before is not known after a restart, which flatters the policy less.
        assert restarted == replace(went_on, dollars_without=restarted.dollars_without)
        assert restarted.dollars_without == pytest.approx(went_on.dollars_without, rel=0.05)
        assert restarted.calls == 3
    else:  # what a process sent last, and whether it was answered, ends with the process
        assert (restarted.calls, restarted.items) == (0, {"offloaded": 2})


def test_estimated_calls_go_on_after_a_restart(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    messages = session_of(LONG)
    for _ in range(3):
        session.apply(messages)
        messages = [*messages, user("go on")]
    session.apply(messages)
    before = session.totals()
    assert before.calls == before.estimated_calls == 3
    assert Session(policy(OFFLOAD), root=tmp_path, session_id="s").totals() == before


@pytest.mark.parametrize("totals", [["x"] * 9, [1], [-1] + [0] * 8, [float("inf")] * 9, "x"])
def test_a_record_of_totals_that_no_session_wrote_is_skipped(totals: object) -> None:
    written = Memory().usage_record()
    assert Memory.of([written]).unreadable == ()
    found = Memory.of([{**written, "totals": totals}])
    assert found.totals() == Totals()
    assert len(found.unreadable) == 1


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
    assert warnings == []  # what is logged is in no result, since integrations log these
    assert len(expected) == len(caplog.records)
    assert all(p in record.message for p, record in zip(expected, caplog.records, strict=True))
    assert all("include_usage" in record.message for record in caplog.records)


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
