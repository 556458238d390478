"""The example for LangChain, and the same program without policyctx.

A module in place of `langchain_openai` has a scripted model, so no key and no network is needed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.integrations.examples import ANSWER, FILES, ROOT, added_lines, check_example, printed_by

NAME, PAGE = "langchain_agent", "langchain"
MODEL = '''\
import json, os, re
from tests.integrations.langchain_model import ScriptedModel, results
from tests.integrations.scripted import calling, saying


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


def run(program: Path, folder: Path) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    modules = folder / "modules"
    modules.mkdir(parents=True)
    (modules / "langchain_openai.py").write_text(MODEL.replace("FILES", str(FILES)))
    given = {
        "PROMPTS": str(folder / "prompts.json"),
        "PYTHONPATH": os.pathsep.join([str(modules), str(ROOT)]),
    }
    assert printed_by(program, folder, given) == ANSWER
    prompts: list[int] = json.loads((folder / "prompts.json").read_text())
    return prompts


@pytest.mark.slow
def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example(NAME, tmp_path, PAGE, run, calls=FILES + 1)


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert added_lines(NAME, PAGE) == [
        'policy = PolicyMiddleware("coding-agent")',
        'agent = create_agent("openai:gpt-6-sol", [read_file], middleware=[policy])',
    ]
