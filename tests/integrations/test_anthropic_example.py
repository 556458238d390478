"""The examples for Anthropic's SDK, and the same programs without policyctx."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.anthropic_api import anthropic_api
from tests.integrations.examples import ANSWER, added_lines, check_example, files_in, reading

# Each example, and the lines that it has more than the program without policyctx.
EXAMPLES = {
    "anthropic_sdk": [
        'session = Session("coding-agent", session_id="anthropic-sdk")',
        "client = Anthropic(middleware=[PolicyMiddleware(session)])",
    ],
    "plain_loop": [
        'session = Session("coding-agent", session_id="plain-loop")',
        "        messages=session.apply(messages, system=SYSTEM, tools=[READ_FILE]).messages,",
        "    session.observe(answer.usage)",
    ],
}


def results_in(body: Any) -> list[str]:
    """Return the texts of the results in a request."""
    blocks = (block for message in body["messages"] for block in message["content"])
    return [b["content"] for b in blocks if isinstance(b, dict) and b["type"] == "tool_result"]


def run(
    program: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    files = files_in(folder)
    with anthropic_api() as api:
        api.script = reading(results_in)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setattr(sys, "argv", [str(program), str(files)])
        runpy.run_path(str(program), run_name="__main__")
        assert capsys.readouterr().out == ANSWER
        assert api.refused == []
        return api.prompts


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    check_example(
        name, tmp_path, run=lambda program, folder: run(program, folder, monkeypatch, capsys)
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_differs_from_the_program_without_policyctx_by_these_lines(name: str) -> None:
    assert added_lines(name) == EXAMPLES[name]
