"""A compaction that does not help is not repeated until something has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Request, Session
from policyctx.turns.result import Result
from tests.conversations import Message, user
from tests.policies import policy

WINDOW = 8_000


def step(gate: str, more: str = "{}") -> str:
    return f"""\
        model: {{context_window: {WINDOW}}}
        store: {{sync: never}}
        compaction: {more}
        steps: [{{name: summarise, do: compact, when: {gate}}}]
        """


def session(root: Path, text: str, **more: Any) -> Session:
    return Session(
        policy(text),
        root=root,
        session_id="s",
        expects_usage=False,
        summarizer=lambda _: "the summary",
        counter=lambda text: len(text.split()),
        **more,
    )


def exchange(number: int) -> list[Message]:
    call = {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {"number": number}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "x = y; " * 12}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def chat(number: int) -> list[Message]:
    said = f"The next part, number {number}, of a long conversation about the modules."
    return [{"role": "assistant", "content": said}, user(f"{said} Go on.")]


def calls(
    used: Session, count: int, *, system: object = None, more: Any = exchange
) -> list[Result]:
    messages, results = [user("Rename the field in all modules of the package.")], []
    for number in range(count):
        results.append(used.apply(messages, system=system))
        messages += more(number)
    return results


def words(count: int) -> str:
    return "rule " * count


def made(results: list[Result]) -> list[int]:
    return [number for number, result in enumerate(results) if result.compacted]


@pytest.mark.parametrize(
    ("gate", "keep", "overhead"),
    [
        ("{tokens: {at_least: 80%}}", "{}", 6_600),
        ("{tokens: {over: 80%}}", "{}", 6_300),
        ("[{messages: {over: 500}}, {tokens: {at_least: 5000}}]", "{}", 5_200),
        ("{messages: {over: 6}}", "{keep_recent: {messages: 14}}", 10),
        ("{turns: {over: 3}}", "{keep_recent: {turns: 7}}", 10),
        ("{items: {types: [tool_result], over: 3}}", "{keep_recent: {messages: 14}}", 10),
    ],
)
def test_summary_that_leaves_its_gate_open_is_not_repeated(
    tmp_path: Path, gate: str, keep: str, overhead: int
) -> None:
    used = session(tmp_path, step(gate, keep))
    results = calls(used, 18, system=words(overhead), more=chat if "turns" in gate else exchange)
    assert 1 <= len(made(results)) <= 5
    warning, *_ = [warning for result in results for warning in result.warnings]
    assert "the step summarise makes no summary now" in warning
    assert "raise the gate" in warning


def test_warning_names_what_is_too_large(tmp_path: Path) -> None:
    used = session(tmp_path, step("{tokens: {at_least: 80%}}"))
    [warning] = [w for result in calls(used, 9, system=words(6_600)) for w in result.warnings]
    assert "the system prompt and the tool schemas have" in warning
    kept = session(
        tmp_path / "b", step("{tokens: {at_least: 5%}}", "{keep_recent: {messages: 24}}")
    )
    warning, *_ = [w for result in calls(kept, 20) for w in result.warnings]
    assert "`keep_recent`" in warning


def test_overhead_that_is_only_billed_counts(tmp_path: Path) -> None:
    used = session(tmp_path, step("{tokens: {at_least: 80%}}"))
    messages, found = [user("Rename the field in all modules.")], []
    for number in range(16):
        result = used.apply(messages)
        found.append(result)
        size = sum(len(str(message)) for message in result.messages) // 4
        used.observe({"input_tokens": 6_600 + size, "output_tokens": 20})
        messages += exchange(number)
    assert len(made(found)) <= 2


def test_guard_survives_a_restart(tmp_path: Path) -> None:
    text, system = step("{tokens: {at_least: 80%}}"), words(6_600)
    messages: list[Message] = [user("Rename the field in all modules."), *exchange(0), *exchange(1)]
    assert session(tmp_path, text).apply(messages, system=system).compacted
    messages += exchange(2)
    again = session(tmp_path, text)
    [outcome] = again.plan(messages, system=system).outcomes
    assert outcome.stopped is not None
    assert outcome.stopped.code == "over_gate"
    result = again.apply(messages, system=system)
    assert not result.compacted
    assert any("makes no summary now" in warning for warning in result.warnings)


def test_a_damaged_record_is_reported_and_a_compaction_is_tried_again(tmp_path: Path) -> None:
    text, system = step("{tokens: {at_least: 80%}}"), words(6_600)
    messages: list[Message] = [user("Rename the field in all modules."), *exchange(0), *exchange(1)]
    used = session(tmp_path, text)
    used.apply(messages, system=system)
    used.store.remember([{"record": "over_gate", "step": "summarise", "added": [1, -2, "x"]}])
    result = session(tmp_path, text).apply([*messages, *exchange(2)], system=system)
    assert any("could not be read" in warning for warning in result.warnings)


@pytest.mark.parametrize("change", ["system", "policy", "window"])
def test_compaction_is_made_again_once_something_has_changed(tmp_path: Path, change: str) -> None:
    text, system = step("{tokens: {at_least: 80%}}"), words(6_600)
    used = session(tmp_path, text)
    messages: list[Message] = [user("Rename the field in all modules."), *exchange(0), *exchange(1)]
    assert used.apply(messages, system=system).compacted
    for number in range(2, 14):
        messages += exchange(number)
        if number < 13:
            assert not used.apply(messages, system=system).compacted
    window = 8_750 if change == "window" else None
    if change == "system":
        system = words(6_000)
    elif change == "policy":
        used = session(tmp_path, text.replace("compaction: {}", "compaction: {keep_first: 1}"))
    assert used.apply(messages, request=Request(system, window=window)).compacted


def test_request_over_the_window_is_compacted_all_the_same(tmp_path: Path) -> None:
    used = session(tmp_path, step("{tokens: {at_least: 80%}}"))
    results = calls(used, 40, system=words(7_000))
    assert 2 <= len(made(results)) <= 4


def test_list_that_has_grown_much_is_compacted_all_the_same(tmp_path: Path) -> None:
    used = session(tmp_path, step("{messages: {over: 4}}", "{keep_recent: {messages: 12}}"))
    assert 2 <= len(made(calls(used, 40))) <= 18


def test_sessions_without_state_compact_each_time(tmp_path: Path) -> None:
    text = step("{tokens: {at_least: 80%}}").replace("sync: never", "sync: never, state: none")
    used = session(tmp_path, text)
    assert len(made(calls(used, 6, system=words(6_600)))) >= 4


def test_plan_and_apply_agree_on_what_is_not_repeated(tmp_path: Path) -> None:
    used, system = session(tmp_path, step("{tokens: {at_least: 80%}}")), words(6_600)
    messages = [user("Rename the field in all modules.")]
    for number in range(8):
        planned = used.plan(messages, system=system)
        result = used.apply(messages, system=system)
        assert (planned.compaction is not None) == result.compacted
        messages += exchange(number)
