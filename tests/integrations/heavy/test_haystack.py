"""The worked example of `docs/plain-loop.md`: a shape and a hook for Haystack."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integrations.examples import (
    ROOT,
    check_sent,
    check_session,
    example,
    run_with_openai,
)

HOOK = ', hooks={"before_llm": [PolicyHook(session)]}'


@pytest.mark.slow
def test_the_example_and_the_program_without_a_hook_give_the_same_answer(tmp_path: Path) -> None:
    program = example("haystack_agent").read_text(encoding="utf-8")
    assert program.count(HOOK) == 1
    bare = tmp_path / "bare.py"
    bare.write_text(program.replace(HOOK, ""), encoding="utf-8")
    sent = run_with_openai(example("haystack_agent"), tmp_path / "a")
    check_sent(sent, run_with_openai(bare, tmp_path / "b"))
    check_session(tmp_path / "a", "haystack-agent")


def test_the_page_shows_the_hook_of_the_example() -> None:
    page = (ROOT / "docs/plain-loop.md").read_text(encoding="utf-8")
    program = example("haystack_agent").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(class .*?)```", page, re.DOTALL)
    assert [block in program for block in blocks] == [True]
