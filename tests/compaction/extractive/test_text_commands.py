"""Agents without tools: a command in each message, and its result in the program's reply."""

from __future__ import annotations

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import group, later, said, summary_of
from tests.conversations import Message, user

GO = user("Mend the lid of pump 4 in the halls.")


def does(thought: str, *commands: str) -> Message:
    blocks = "".join(f"\n\n```bash\n{command}\n```" for command in commands)
    return said(f"THOUGHT: {thought}{blocks}")


def gives(output: str, code: int = 0) -> Message:
    return user(f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>")


TESTED = [does("I test it.", "python -m pytest -q"), gives("3 failed, 80 passed in 2.1s", 1)]
EDITED = [does("I mend it.", "sed -i 's/a/b/' halls/pump4.py"), gives("")]
WRITTEN = [does("A script.", "cat <<'EOF' > look.py\nimport sys\nEOF"), gives("")]
DIFF = "diff --git a/halls/lid.py b/halls/lid.py\n--- a/halls/lid.py\n+++ b/halls/lid.py\n+tin = 1"
REFUSED = user("Please always provide EXACTLY ONE action in triple backticks, found 2 actions.")


def test_the_commands_in_an_agents_messages_are_its_commands() -> None:
    summary = summary_of(GO, *EDITED, *TESTED)
    assert group(summary, Group.STEPS) == [
        "- python -m pytest -q => exit code 1: 3 failed, 80 passed in 2.1s"
    ]
    assert group(summary, Group.FILES) == ["- halls/pump4.py: edited"]
    assert group(later(summary, *TESTED, *EDITED), Group.STEPS)[0] == (
        "- python -m pytest -q => exit code 1: 3 failed, 80 passed in 2.1s; changed since: pump4.py"
    )


def test_files_of_here_documents_and_of_the_last_diff_are_listed() -> None:
    submit = does("I submit.", "rm look.py\necho DONE && git add -A && git diff --cached")
    first = summary_of(GO, *EDITED, *WRITTEN)
    assert group(first, Group.FILES) == ["- look.py: written", "- halls/pump4.py: edited"]
    files = group(summary_of(GO, *EDITED, *WRITTEN, submit, user(DIFF)), Group.FILES)
    assert files == ["- halls/lid.py: edited", "- halls/pump4.py: edited"]
    assert "git add -A" in group(summary_of(GO, *EDITED, submit, user(DIFF)), Group.STEPS)[0]


@pytest.mark.parametrize("then", [[], TESTED])
def test_a_message_that_was_refused_is_not_the_agents_state(then: list[Message]) -> None:
    refused = does("The lid is of tin, so I weld it in two steps.", "weld a", "weld b")
    summary = summary_of(GO, *EDITED, refused, REFUSED, *then)
    assert "weld" not in summary


def test_a_message_that_is_refused_behind_a_summary_is_not_the_agents_state() -> None:
    refused = does("The lid is of tin, so I weld it in two steps.", "weld a", "weld b")
    first = summary_of(GO, *EDITED, refused)
    assert "weld" in first
    assert "weld" not in later(first, REFUSED, *TESTED)


def test_a_command_that_an_agent_only_speaks_of_was_not_run() -> None:
    told = [does("Run this.", "make all"), user("It says: no rule.\n\n" + DIFF)]
    summary = summary_of(GO, *told, said("Then leave it."))
    assert group(summary, Group.STEPS) == []
    assert group(summary, Group.FILES) == []
