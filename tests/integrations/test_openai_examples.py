"""The examples for OpenAI's SDK and OpenAI Agents, and the same programs without policyctx."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.integrations.examples import added_lines, check_example, example

# Each example, and the lines that it has more than the program without policyctx.
EXAMPLES = {
    "openai_sdk": [
        'session = Session("coding-agent", session_id="openai-sdk")',
        "client = with_policy(OpenAI(), session)",
    ],
    "openai_agents": [
        'policy = PolicyFilter(Session("coding-agent", session_id="openai-agents"))',
        "result = Runner.run_sync(agent, task, max_turns=50, **policy.options)",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path, name: str
) -> None:
    check_example(name, tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_program_without_policyctx_differs_by_two_lines_and_imports(name: str) -> None:
    assert added_lines(name) == EXAMPLES[name]


@pytest.mark.parametrize("name", [*EXAMPLES, "anthropic_sdk", "plain_loop", "agent"])
def test_an_example_without_a_folder_says_how_to_run_it(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example(name))])
    # In this process, which has imported the SDKs; an interpreter prints such an exit on stderr.
    with pytest.raises(SystemExit, match=rf"(?s)python examples/{name}\.py ") as ended:
        runpy.run_path(str(example(name)), run_name="__main__")
    assert isinstance(ended.value.code, str)
    assert capsys.readouterr() == ("", "")
