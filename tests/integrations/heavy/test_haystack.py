"""The worked example of `docs/any-loop.md`: a shape and a hook for Haystack."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.examples import (
    ANSWER,
    FILES,
    ROOT,
    check_sent,
    example,
    offloaded_path,
    printed_by,
)
from tests.integrations.openai_api import openai_api
from tests.integrations.scripted import Reply, calling, saying

HOOK = ', hooks={"before_llm": [PolicyHook(session)]}'


def reading(body: Any) -> Reply:
    """Read one file after the other, then the file of the first placeholder, then answer."""
    results = [message for message in body["messages"] if message["role"] == "tool"]
    turn = len(results)
    if turn < FILES:
        return calling((f"t{turn}", "read_file", {"path": f"{turn}.txt"}))
    if turn == FILES:
        return calling((f"t{turn}", "read_file", {"path": offloaded_path(results)}))
    return saying(f"The first begins with {results[-1]['content'][:6]}.")


def run(program: Path, folder: Path) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    with openai_api() as api:
        api.script = reading
        address = {"OPENAI_BASE_URL": f"{api.url}", "OPENAI_API_KEY": "k"}
        assert printed_by(program, folder, address) == ANSWER
        assert api.refused == []
        return api.prompts


@pytest.mark.slow
def test_the_example_and_the_program_without_a_hook_give_the_same_answer(tmp_path: Path) -> None:
    program = example("haystack_agent").read_text(encoding="utf-8")
    assert program.count(HOOK) == 1
    bare = tmp_path / "bare.py"
    bare.write_text(program.replace(HOOK, ""), encoding="utf-8")
    sent = run(example("haystack_agent"), tmp_path / "a")
    sent_bare = run(bare, tmp_path / "b")
    check_sent(sent, sent_bare, FILES + 2, (tmp_path / "a" / ".agent" / "context").iterdir())


def test_the_page_shows_the_shape_and_the_hook_of_the_example() -> None:
    page = (ROOT / "docs/any-loop.md").read_text(encoding="utf-8")
    program = example("haystack_agent").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(class .*?)```", page, re.DOTALL)
    assert [block in program for block in blocks] == [True, True]
