"""A request that is larger than the window: the warning, and what the presets do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policyctx import Session
from policyctx.turns.notices import fullness_ahead
from tests.conversations import calls, results, session_of, user
from tests.policies import policy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conversations import Message

LARGE = "".join(f"line {i} of a log\n" for i in range(60_000))  # about 300,000 tokens
QUIET = """\
    model: {tokenizer: approximate}
    steps: [{name: retire, do: offload, select: {keep_recent: 3}}]
    """


def session(root: Path, by: Any = None) -> Session:
    return Session(policy(QUIET) if by is None else by, root=root, session_id="s")


def test_a_newest_result_larger_than_the_window_gives_one_warning(tmp_path: Path) -> None:
    running, messages = session(tmp_path), session_of(LARGE)
    (warning,) = running.apply(messages).warnings
    assert "more than the context window of 200,000" in warning
    assert "tool_result c0 Bash in message 2" in warning
    assert "{on: arrival, do: offload, select: {types: [tool_result]}}" in warning
    assert running.apply([*messages, user("go on")]).warnings == ()


def test_the_step_that_the_warning_names_takes_the_result(tmp_path: Path) -> None:
    named = policy(
        """\
        model: {tokenizer: approximate}
        items: {tool_result: {offload: true}}
        steps: [{name: arrived, on: arrival, do: offload, select: {types: [tool_result]}}]
        """
    )
    result = session(tmp_path, named).apply(session_of(LARGE))
    assert result.warnings == ()
    assert result.offloaded_count == 1


@pytest.mark.parametrize(
    "rule", ["pin: true", "offload: false", "min_tokens: 900000", "min_chars: 9000000"]
)
def test_no_step_is_named_where_a_rule_of_the_tool_keeps_the_result(
    rule: str, tmp_path: Path
) -> None:
    ruled = policy(f"{QUIET}tools: {{Bash: {{{rule}}}}}\n")
    (warning,) = session(tmp_path, ruled).apply(session_of(LARGE)).warnings
    assert warning.endswith(f"; `tools.Bash.{rule.partition(':')[0]}` of the policy keeps it")


def test_a_session_without_state_warns_once_too(tmp_path: Path) -> None:
    running = session(tmp_path, policy(f"{QUIET}store: {{state: none}}\n"))
    messages = session_of(LARGE)
    assert running.apply(messages).warnings
    assert not running.apply([*messages, user("go on")]).warnings


def test_the_warning_comes_again_after_a_request_that_fitted(tmp_path: Path) -> None:
    running = session(tmp_path)
    assert running.apply(session_of(LARGE)).warnings
    assert not running.apply(session_of("short")).warnings
    assert running.apply([user(LARGE)]).warnings


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([user(LARGE)], "no step takes the newest user message"),
        ([user(LARGE), {"role": "assistant", "content": "?"}, user()], "user_message msg_001"),
        (
            [user(), calls(("a", "Read"), ("b", "Read")), results(("a", LARGE), ("b", LARGE))],
            "tool_result a Read",
        ),
    ],
)
def test_the_largest_item_that_stays_is_named(
    messages: list[Message], named: str, tmp_path: Path
) -> None:
    (warning,) = session(tmp_path).apply(messages).warnings
    assert named in warning


def test_a_system_prompt_larger_than_the_window_gives_a_warning(tmp_path: Path) -> None:
    (warning,) = session(tmp_path).apply([user()], system=LARGE).warnings
    assert "the system prompt and the tool schemas have" in warning


def test_a_plan_gives_the_same_warning(tmp_path: Path) -> None:
    messages = session_of(LARGE)
    planned = session(tmp_path / "a").plan(messages)
    assert (fullness_ahead(planned),) == session(tmp_path / "b").apply(messages).warnings


def test_the_window_is_that_of_the_called_model(tmp_path: Path) -> None:
    running = session(tmp_path)
    running.called_model = "gpt-4.1"
    assert running.apply(session_of(LARGE)).warnings == ()
