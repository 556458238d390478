"""A summary that is larger than what it replaces is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Session, compact_messages
from policyctx.tokens.counter import counter_for
from tests.conversations import Message, call, results, user
from tests.policies import policy

LONG = "a word of the summary, " * 200


def session(root: Path, summarizer: Any, keys: str = "", gate: str = "") -> Session:
    compiled = policy(f"""\
        model: {{context_window: 4000}}
        store: {{sync: never}}
        compaction: {{summary: {{backoff: 0s, attempts: 2{keys}}}}}
        steps: [{{name: summarise, do: compact{gate}}}]
        """)
    return Session(compiled, root=root, summarizer=summarizer, expects_usage=False)


def short(count: int = 4) -> list[Message]:
    pairs = ((call(f"c{i}", "run", {"n": i}), results((f"c{i}", "ok " * 30))) for i in range(count))
    return [user("Rename the field."), *(message for pair in pairs for message in pair)]


def test_a_larger_summary_is_refused_and_the_list_stays(tmp_path: Path) -> None:
    messages = short()
    result = session(tmp_path, lambda _: LONG).apply(messages)
    assert not result.compacted
    assert result.messages is messages
    assert "are more than 100% of the" in result.warnings[0]


def test_the_next_attempt_may_be_small_enough(tmp_path: Path) -> None:
    answers = iter([LONG, "Rename the field."])
    assert session(tmp_path, lambda _: next(answers)).apply(short()).compacted


@pytest.mark.parametrize(
    "gate", [", when: {tokens: {at_least: 80%}}", ", when: {messages: {over: 3}}"]
)
def test_a_refused_summary_is_not_paid_for_with_every_message(tmp_path: Path, gate: str) -> None:
    asked: list[Any] = []

    def answer(request: Any) -> str:
        asked.append(request)
        return LONG

    used, messages = session(tmp_path, answer, gate=gate), short()
    warnings: list[str] = []
    for number in range(9):
        warnings += used.apply(messages, system="rule " * 3_300).warnings
        messages += [call(f"d{number}", "run", {}), results((f"d{number}", "ok"))]
    assert len(asked) == 2
    assert sum("makes no summary now" in warning for warning in warnings) == 1
    assert any("lower `max_words`" in warning for warning in warnings)
    messages += [call("e", "run", {}), results(("e", "a longer result " * 800))]
    used.apply(messages, system="rule " * 1_000)
    assert len(asked) > 2


def test_the_extractive_summary_is_never_larger_than_what_it_replaces(tmp_path: Path) -> None:
    counter = counter_for("o200k_base")
    for count in range(6):
        used = session(tmp_path / str(count), None, ", by: extractive")
        made = used.apply(short(count)).compaction
        assert made is not None
        replaced = sum(map(counter.count, (item.counted for item in used.plan(short(count)).items)))
        assert counter.count(made.summary) <= max(1, replaced)


def test_a_policy_may_accept_any_length(tmp_path: Path) -> None:
    assert session(tmp_path, lambda _: LONG, ", must_shrink_to: false").apply(short()).compacted


def test_compact_messages_accepts_any_length_as_its_document_says(tmp_path: Path) -> None:
    result = compact_messages(short(), threshold=1, output_dir=tmp_path, summarizer=lambda _: LONG)
    assert result.compacted
