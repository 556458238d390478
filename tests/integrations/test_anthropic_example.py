"""The example for Anthropic's SDK, and the same program without policyctx."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integrations.anthropic_api import Reply, anthropic_api, calling, saying

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "anthropic_sdk.py"
PAGE = ROOT / "docs" / "anthropic-sdk.md"
FILES = 9


def without_policyctx() -> str:
    """The example with the differences on the page undone."""
    program = EXAMPLE.read_text(encoding="utf-8")
    for diff in re.findall(r"```diff\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        lines = diff.splitlines()
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        assert program.count(after) == 1
        program = program.replace(after, before)
    return program


def reading(body: Any) -> Reply:
    """Read one file after the other, then the file of the first placeholder, then answer."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if turn < FILES:
        return calling((f"t{turn}", "read_file", {"path": f"{turn}.txt"}))
    if turn == FILES:
        path = re.search(r"Path: (\S+)", json.dumps(body["messages"]).replace("\\n", "\n"))
        return calling((f"t{turn}", "read_file", {"path": path[1] if path else "0.txt"}))
    last = body["messages"][-1]["content"][0]["content"]
    return saying(f"The first begins with {last[:6]}.")


def run(
    program: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    files = folder / "files"
    files.mkdir(parents=True)
    for i in range(FILES):
        (files / f"{i}.txt").write_text(f"file {i} " * 600)
    with anthropic_api() as api:
        api.script = reading
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setattr(sys, "argv", [str(program), str(files)])
        runpy.run_path(str(program), run_name="__main__")
        assert capsys.readouterr().out == "The first begins with file 0.\n"
        assert api.refused == []
        return api.prompts


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text(without_policyctx())
    sent = run(EXAMPLE, tmp_path / "a", monkeypatch, capsys)
    sent_bare = run(bare, tmp_path / "b", monkeypatch, capsys)
    assert len(sent) == len(sent_bare) == FILES + 2
    assert max(sent) < 0.8 * max(sent_bare)
    [session] = (tmp_path / "a" / ".agent" / "context").iterdir()
    assert session.name == "read-the-folder"


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    with_it = EXAMPLE.read_text(encoding="utf-8").splitlines()
    bare = without_policyctx().splitlines()
    assert "policyctx" not in "\n".join(bare).replace("examples/anthropic_sdk.py", "")
    more = [line for line in with_it if line not in bare]
    assert [line for line in more if not line.startswith(("from ", "import "))] == [
        'session = Session("coding-agent", session_id="read-the-folder")',
        "client = Anthropic(middleware=[PolicyMiddleware(session)])",
    ]
