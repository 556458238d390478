"""README.md does what it prints, from its first command to its last, in a new user's folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.integrations.anthropic_api import anthropic_api
from tests.integrations.scripted import Reply, calling, saying
from tests.replay.test_running import claude_code

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 120


def blocks(language: str) -> list[str]:
    """Return the contents of the README's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    """Return the words of each command, without its comment."""
    return [
        words
        for block in blocks("sh")
        for line in block.splitlines()
        if (words := shlex.split(line, comments=True))
    ]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new user's home, in which one session of Claude Code is recorded."""
    sessions = tmp_path / ".claude" / "projects" / "work"
    sessions.mkdir(parents=True)
    claude_code(sessions / "session.jsonl", *[f"{i} some output\n" * 900 for i in range(9)])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


@pytest.mark.slow
def test_every_command_runs_in_the_order_of_the_readme(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, language in (("researcher.yaml", "yaml"), ("researcher.feature", "gherkin")):
        assert f"`{name}`" in README
        [content] = blocks(language)
        Path(name).write_text(content, encoding="utf-8")
    activate, install, *others = commands()
    assert activate[:3] == ["python3", "-m", "venv"]
    # The first one installs what these tests run with; tests/test_wheel.py installs the wheel.
    assert install[:2] == ["pip", "install"]
    assert [command[0] for command in others] == ["policyctx"] * len(others)
    for command in [*(words[1:] for words in others), ["test", "researcher.feature"]]:
        run = policyctx(*[word.replace("~", str(home)) for word in command], cwd=home)
        assert run.returncode == 0, (command, run.stdout, run.stderr)


@pytest.mark.slow
def test_the_program_runs_as_printed(home: Path) -> None:
    def script(body: dict[str, object]) -> Reply:
        turns = str(body["messages"]).count("'tool_use'")
        if turns < len(texts):
            return calling((f"t{turns}", "read_file", {"path": f"{turns}.txt"}))
        return saying("All are read.")

    texts = [f"line {i} of a long text\n" * 4_000 for i in range(6)]
    for i, text in enumerate(texts):
        (home / f"{i}.txt").write_text(text)
    [program] = blocks("python")
    with anthropic_api() as api:
        api.script = script
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "k"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stdout) == (0, "All are read.\n"), run.stderr
        assert api.refused == []
    # The six results have 24,000 tokens each: the sixth makes it pay to offload the first three.
    assert list((home / ".agent" / "context" / "task-1").rglob("*t0*"))
