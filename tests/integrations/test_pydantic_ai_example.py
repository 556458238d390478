"""The example for Pydantic AI, and the same program without policyctx."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.examples import added_lines, check_example

NAME, PAGE = "pydantic_ai_agent", "pydantic-ai"


@pytest.mark.slow
def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example(NAME, tmp_path, PAGE)


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert added_lines(NAME, PAGE) == [
        'policy = PolicyCapability("coding-agent")',
        'agent = Agent("openai:gpt-6-sol", tools=[read_file], capabilities=[policy])',
    ]
