"""The examples for OpenAI's SDK and OpenAI Agents, and the same programs without policyctx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integrations.examples import (
    ANSWER,
    FILES,
    added_lines,
    check_sent,
    example,
    offloaded_path,
    printed_by,
    without_policyctx,
)
from tests.integrations.openai_api import Reply, calling, openai_api, saying

if TYPE_CHECKING:
    from pathlib import Path

# Each example, its page, and the lines that it has more than the program without policyctx.
EXAMPLES = {
    "openai_sdk": [
        'session = Session("small-context", session_id="read-the-folder")',
        "client = with_policy(OpenAI(), session)",
    ],
    "openai_agents": [
        'policy = PolicyFilter(Session("small-context", session_id="read-the-folder"))',
        "result = Runner.run_sync(agent, task, max_turns=50, **policy.options)",
    ],
}


def reading(body: Any) -> Reply:
    """Read one file after the other, then the file of the first placeholder, then answer."""
    outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
    turn = len(outputs)
    if turn < FILES:
        return calling((f"t{turn}", "read_file", {"path": f"{turn}.txt"}), reasons=turn % 2 == 0)
    if turn == FILES:
        return calling((f"t{turn}", "read_file", {"path": offloaded_path(outputs)}))
    return saying(f"The first begins with {outputs[-1]['output'][:6]}.")


def run(program: Path, folder: Path) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    with openai_api() as api:
        api.script = reading
        given = {
            "OPENAI_BASE_URL": api.url,
            "OPENAI_API_KEY": "k",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }
        assert printed_by(program, folder, given) == ANSWER
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
    check_sent(sent, sent_bare, FILES + 2, (tmp_path / "a" / ".agent" / "context").iterdir())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_program_without_policyctx_differs_by_two_lines_and_imports(name: str) -> None:
    assert added_lines(name) == EXAMPLES[name]
