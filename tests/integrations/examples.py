"""The examples, the pages that show what policyctx adds to each, and the task that they solve.

Each example reads `FILES` files one after the other, then the file that the first placeholder
names, and prints how it begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx
from tests.integrations.openai_api import openai_api
from tests.integrations.scripted import Body, Reply, ScriptedAPI, calling, saying

ROOT = Path(__file__).parents[2]
FILES = 9
ANSWER = "The first begins with file 0.\n"


def example(name: str) -> Path:
    """Return the path of an example."""
    return ROOT / "examples" / f"{name}.py"


def without_policyctx(name: str, page: str = "") -> str:
    """Return the program with the differences on its page undone."""
    program = example(name).read_text(encoding="utf-8")
    path = ROOT / "docs" / f"{page or name.replace('_', '-')}.md"
    for diff in re.findall(r"```diff\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        lines = diff.splitlines()
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        assert program.count(after) == 1
        program = program.replace(after, before)
    return program


def added_lines(name: str, page: str = "") -> list[str]:
    """Return the lines that an example has more than the program without policyctx, no imports."""
    bare = without_policyctx(name, page).splitlines()
    assert "policyctx" not in "\n".join(bare)
    more = [line for line in example(name).read_text("utf-8").splitlines() if line not in bare]
    return [line for line in more if not line.startswith(("from ", "import "))]


def files_in(folder: Path) -> Path:
    """Make the files to read below a folder, and return their folder."""
    files = folder / "files"
    files.mkdir(parents=True)
    for i in range(FILES):
        (files / f"{i}.txt").write_text(f"file {i} " * 6_000)
    return files


def offloaded_path(messages: Any) -> str:
    """Return the path in the first placeholder of a list; without one the first file's name."""
    path = re.search(r"Path: (\S+)", json.dumps(messages).replace("\\n", "\n"))
    return path[1] if path else "0.txt"


def printed_by(program: Path, folder: Path, environment: dict[str, str]) -> str:
    """Run a program on the files in a folder, which is its home, and return what it prints."""
    with pytest.MonkeyPatch.context() as environ:
        for name, value in {"HOME": str(folder), **environment}.items():
            environ.setenv(name, value)
        run = policyctx(files_in(folder), program=program)
    assert run.returncode == 0, run.stderr
    return run.stdout


def outputs(body: Any) -> list[str]:
    """Return the texts of the results in a request of either API of OpenAI, or in its items."""
    items = body if isinstance(body, list) else body.get("input") or body["messages"]
    found = [
        item.get("output") or item.get("content")
        for item in items
        if item.get("type") == "function_call_output" or item.get("role") == "tool"
    ]
    return [text if isinstance(text, str) else text[0]["text"] for text in found]


def reading(
    results: Callable[[Body], Sequence[str]], final: Callable[[str], Reply] = saying
) -> Callable[[Body], Reply]:
    """Return a script for the task; `results` are the texts of the results in a request."""

    def reply(body: Body) -> Reply:
        found = [*results(body)]
        turn = len(found)
        if turn < FILES:
            path = f"{turn}.txt"
            return calling((f"t{turn}", "read_file", {"path": path}), reasons=turn % 2 == 0)
        if turn == FILES:
            return calling((f"t{turn}", "read_file", {"path": offloaded_path(found)}))
        return final(f"The first begins with {found[-1][:6]}.")

    return reply


def prompts_of(
    api: ScriptedAPI, program: Path, folder: Path, environment: dict[str, str]
) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    assert printed_by(program, folder, environment) == ANSWER
    assert api.refused == []
    return api.prompts


def run_with_openai(
    program: Path, folder: Path, final: Callable[[str], Reply] = saying, **more: str
) -> list[int]:
    """Run a program whose model is OpenAI's."""
    with openai_api() as api:
        api.script = reading(outputs, final)
        given = {"OPENAI_BASE_URL": api.url, "OPENAI_API_KEY": "k", **more}
        given["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
        return prompts_of(api, program, folder, given)


def check_example(
    name: str,
    folder: Path,
    page: str = "",
    run: Callable[[Path, Path], list[int]] = run_with_openai,
    *,
    session: str = "",
    calls: int = FILES + 2,
) -> None:
    """Check that an example and the program without policyctx give the same answer.

    Its session has the name of the example, or the one given here.
    """
    bare = folder / "bare.py"
    bare.write_text(without_policyctx(name, page))
    sent, sent_bare = run(example(name), folder / "a"), run(bare, folder / "b")
    check_sent(sent, sent_bare, calls)
    check_session(folder / "a", session or name.replace("_", "-"))


def check_session(home: Path, session: str) -> None:
    """Check that an example has one session, by its name as a pattern."""
    [folder] = (home / ".agent" / "context").iterdir()
    assert fnmatch(folder.name, session)


def check_sent(sent: list[int], bare: list[int], calls: int = FILES + 2) -> None:
    """Check the prompts' tokens of an example, and those without policyctx."""
    assert len(sent) == len(bare) == calls
    assert max(sent) < 0.8 * max(bare)
