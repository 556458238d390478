"""The example for LangChain, and the same program without policyctx.

A module in place of `langchain_openai` has a scripted model, so no key and no network is needed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "langchain_agent.py"
FILES = 9
MODEL = '''\
import json, os, re
from tests.integrations.langchain_model import ScriptedModel, calling, results, saying


def reply(messages):
    """Read one file after the other, then the file of the first placeholder, then answer."""
    found = results(messages)
    if len(found) < FILES:
        return calling((f"t{len(found)}", "read_file", {"path": f"{len(found)}.txt"}))
    if len(found) == FILES:
        path = re.search(r"Path: (\\S+)", "\\n".join(found))
        return calling(("again", "read_file", {"path": path[1] if path else "0.txt"}))
    with open(os.environ["PROMPTS"], "w") as file:
        json.dump(MODEL.prompts, file)
    return saying(f"The first begins with {found[-1][:6]}.")


MODEL = ScriptedModel(script=reply)


def ChatOpenAI(**_):
    return MODEL
'''


def without_policyctx() -> str:
    """The example with the differences on its page undone."""
    program = EXAMPLE.read_text(encoding="utf-8")
    page = (ROOT / "docs" / "langchain.md").read_text(encoding="utf-8")
    for diff in re.findall(r"```diff\n(.*?)```", page, re.DOTALL):
        lines = diff.splitlines()
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        assert program.count(after) == 1
        program = program.replace(after, before)
    return program


def run(program: Path, folder: Path) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    files, modules = folder / "files", folder / "modules"
    files.mkdir(parents=True)
    modules.mkdir()
    (modules / "langchain_openai.py").write_text(MODEL.replace("FILES", str(FILES)))
    for i in range(FILES):
        (files / f"{i}.txt").write_text(f"file {i} " * 600)
    given = {
        "HOME": str(folder),
        "PROMPTS": str(folder / "prompts.json"),
        "PYTHONPATH": os.pathsep.join([str(modules), str(ROOT)]),
    }
    printed = subprocess.run(
        [sys.executable, str(program), str(files)],
        env={**os.environ, **given},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert printed == "The first begins with file 0.\n"
    prompts: list[int] = json.loads((folder / "prompts.json").read_text())
    return prompts


@pytest.mark.slow
def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text(without_policyctx())
    sent, sent_bare = run(EXAMPLE, tmp_path / "a"), run(bare, tmp_path / "b")
    assert len(sent) == len(sent_bare) == FILES + 1
    assert max(sent) < 0.8 * max(sent_bare)
    [session] = (tmp_path / "a" / ".agent" / "context").iterdir()
    assert session.name == "read-the-folder"


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    with_it = EXAMPLE.read_text(encoding="utf-8").splitlines()
    bare = without_policyctx().splitlines()
    assert "policyctx" not in "\n".join(bare)
    more = [line for line in with_it if line not in bare]
    assert [line for line in more if not line.startswith(("from ", "import "))] == [
        'policy = PolicyMiddleware("coding-agent")',
        'agent = create_agent("openai:gpt-6-sol", [read_file], middleware=[policy])',
    ]
