"""Files come back only as far as the gate of the step stays closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.turns.result import Result
from tests.conversations import Message, call, results, user
from tests.policies import policy

FILE = "value = compute(offset)\n" * 100  # 300 words


def applied(
    root: Path, gate: str, *, restore: str = "", files: int = 4, system: int = 0, size: int = 2_000
) -> Result:
    compiled = policy(f"""\
        model: {{context_window: {size}}}
        store: {{sync: never}}
        tools: {{Read: {{reads_file: path}}}}
        compaction: {{restore: {{work_dir: '{root}'{restore}}}}}
        steps: [{{name: summarise, do: compact, when: {gate}}}]
        """)
    messages: list[Message] = [user("Refactor the modules.")]
    for number in range(files):
        path = root / f"m{number}.py"
        path.write_text(FILE, encoding="utf-8")
        read = call(f"c{number}", "Read", {"path": str(path)})
        messages += [read, results((f"c{number}", FILE))]
    words: Any = lambda text: len(text.split())  # noqa: E731 - a counter
    used = Session(
        compiled,
        root=root / "out",
        summarizer=lambda _: "the summary",
        counter=words,
        expects_usage=False,
    )
    return used.apply(messages, system="rule " * system)


def restored(result: Result) -> list[str]:
    made = result.compaction
    assert made is not None
    return [one.path.rpartition("/")[2] for one in made.replacement.written if one.path]


@pytest.mark.parametrize(
    ("gate", "system", "expected"),
    [
        ("{tokens: {at_least: 50%}}", 0, ["m3.py", "m2.py", "m1.py"]),
        ("{tokens: {at_least: 50%}}", 300, ["m3.py", "m2.py"]),
        ("[{messages: {over: 100}}, {tokens: {over: 700}}]", 0, ["m3.py", "m2.py"]),
        ("{tokens: {at_least: 50%}}", 1_200, []),
        ("{messages: {over: 6}}", 0, ["m3.py", "m2.py", "m1.py", "m0.py"]),
        ("{turns: {over: 0}}", 0, ["m3.py", "m2.py", "m1.py", "m0.py"]),
    ],
)
def test_only_files_that_leave_the_gate_closed_come_back(
    tmp_path: Path, gate: str, system: int, expected: list[str]
) -> None:
    result = applied(tmp_path, gate, system=system)
    assert restored(result) == expected
    left_out = [warning for warning in result.warnings if "do not fit under the gate" in warning]
    assert len(left_out) == 4 - len(expected)


def test_a_step_without_a_gate_on_the_size_brings_all_files_back(tmp_path: Path) -> None:
    result = applied(tmp_path, "[{tokens: {over: 90%}}, {since_last: {messages: {at_least: 2}}}]")
    assert restored(result) == ["m3.py", "m2.py", "m1.py", "m0.py"]


def test_a_policy_may_bring_back_all_files_within_their_own_limits(tmp_path: Path) -> None:
    result = applied(tmp_path, "{tokens: {at_least: 50%}}", restore=", within_gate: false")
    assert restored(result) == ["m3.py", "m2.py", "m1.py", "m0.py"]


def test_the_document_context_compact_keeps_its_own_limits() -> None:
    compiled = policy("extends: context-compact")
    [step] = compiled.all_steps
    settings = compiled.compaction(step)
    assert not settings.restore.within_gate
    assert settings.summary.must_shrink_to is False
    assert not settings.keep_system_messages
