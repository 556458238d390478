"""The examples for OpenAI's SDK and OpenAI Agents, and the same programs without policyctx."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.openai_api import Reply, calling, openai_api, saying

ROOT = Path(__file__).parents[2]
FILES = 9
# Each example, its page, and the lines that it has more than the program without policyctx.
EXAMPLES = {
    "openai_sdk": [
        'session = Session("coding-agent", session_id="read-the-folder")',
        "client = with_policy(OpenAI(), session)",
    ],
    "openai_agents": [
        'policy = PolicyFilter(Session("coding-agent", session_id="read-the-folder"))',
        "result = Runner.run_sync(agent, task, max_turns=50, **policy.options)",
    ],
}


def example(name: str) -> Path:
    return ROOT / "examples" / f"{name}.py"


def without_policyctx(name: str) -> str:
    """The example with the differences on its page undone."""
    program = example(name).read_text(encoding="utf-8")
    page = (ROOT / "docs" / f"{name.replace('_', '-')}.md").read_text(encoding="utf-8")
    for diff in re.findall(r"```diff\n(.*?)```", page, re.DOTALL):
        lines = diff.splitlines()
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        assert program.count(after) == 1
        program = program.replace(after, before)
    return program


def reading(body: Any) -> Reply:
    """Read one file after the other, then the file of the first placeholder, then answer."""
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    turn = len(outputs)
    if turn < FILES:
        return calling((f"t{turn}", "read_file", {"path": f"{turn}.txt"}), reasons=turn % 2 == 0)
    if turn == FILES:
        path = re.search(r"Path: (\S+)", json.dumps(outputs).replace("\\n", "\n"))
        return calling((f"t{turn}", "read_file", {"path": path[1] if path else "0.txt"}))
    return saying(f"The first begins with {outputs[-1]['output'][:6]}.")


def run(program: Path, folder: Path) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    files = folder / "files"
    files.mkdir(parents=True)
    for i in range(FILES):
        (files / f"{i}.txt").write_text(f"file {i} " * 600)
    with openai_api() as api:
        api.script = reading
        given = {
            "OPENAI_BASE_URL": api.url,
            "OPENAI_API_KEY": "k",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "HOME": str(folder),
        }
        printed = subprocess.run(
            [sys.executable, str(program), str(files)],
            env={**os.environ, **given},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        assert printed == "The first begins with file 0.\n"
        assert api.refused == []
        return api.prompts


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path, name: str
) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text(without_policyctx(name))
    sent = run(example(name), tmp_path / "a")
    sent_bare = run(bare, tmp_path / "b")
    assert len(sent) == len(sent_bare) == FILES + 2
    assert max(sent) < 0.8 * max(sent_bare)
    [session] = (tmp_path / "a" / ".agent" / "context").iterdir()
    assert session.name == "read-the-folder"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_program_without_policyctx_differs_by_two_lines_and_imports(name: str) -> None:
    with_it = example(name).read_text(encoding="utf-8").splitlines()
    bare = without_policyctx(name).splitlines()
    assert "policyctx" not in "\n".join(bare)
    more = [line for line in with_it if line not in bare]
    assert [line for line in more if not line.startswith(("from ", "import "))] == EXAMPLES[name]
