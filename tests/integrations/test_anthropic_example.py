"""The examples for Anthropic's SDK, and the same programs without policyctx."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.anthropic_api import anthropic_api
from tests.integrations.examples import (
    ANSWER,
    FILES,
    added_lines,
    check_sent,
    example,
    files_in,
    offloaded_path,
    without_policyctx,
)
from tests.integrations.scripted import Reply, calling, saying

SESSION = 'session = Session("coding-agent", session_id="read-the-folder")'
# Each example, and the lines that it has more than the program without policyctx.
EXAMPLES = {
    "anthropic_sdk": [SESSION, "client = Anthropic(middleware=[PolicyMiddleware(session)])"],
    "plain_loop": [
        SESSION,
        "        messages=session.apply(messages, system=SYSTEM, tools=[READ_FILE]).messages,",
        "    session.observe(answer.usage)",
    ],
}


def reading(body: Any) -> Reply:
    """Read one file after the other, then the file of the first placeholder, then answer."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if turn < FILES:
        return calling((f"t{turn}", "read_file", {"path": f"{turn}.txt"}))
    if turn == FILES:
        return calling((f"t{turn}", "read_file", {"path": offloaded_path(body["messages"])}))
    last = body["messages"][-1]["content"][0]["content"]
    return saying(f"The first begins with {last[:6]}.")


def run(
    program: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    files = files_in(folder)
    with anthropic_api() as api:
        api.script = reading
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
    bare = tmp_path / "bare.py"
    bare.write_text(without_policyctx(name))
    sent = run(example(name), tmp_path / "a", monkeypatch, capsys)
    sent_bare = run(bare, tmp_path / "b", monkeypatch, capsys)
    check_sent(sent, sent_bare, FILES + 2, (tmp_path / "a" / ".agent" / "context").iterdir())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_differs_from_the_program_without_policyctx_by_these_lines(name: str) -> None:
    assert added_lines(name) == EXAMPLES[name]
