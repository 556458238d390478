"""Each command of the page on uninstalling does what the page says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from policyctx import Session
from tests.cli.running import policyctx
from tests.conversations import session_of, user
from tests.policies import policy

PAGE = (Path(__file__).parents[1] / "docs" / "uninstall.md").read_text(encoding="utf-8")
COMMANDS = [line.strip() for line in re.findall(r"^    (\S.*)$", PAGE, re.MULTILINE)]
POLICY = """
items: {{tool_result: {{offload: true}}}}
compaction: {{summary: {{by: extractive}}, min_new: 0}}
steps: [{{name: s, do: {do}}}]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_of_the_page_runs_in_its_order(home: Path) -> None:
    settings = (home / ".claude/settings.json", home / "work/.claude/settings.json")
    work = home / "work"
    for path in settings:
        path.parent.mkdir(parents=True)
        path.write_text('{"theme":  "dark"}\n', encoding="utf-8")
    for more in ((), ("--project",)):
        run = policyctx("hook", "claude-code", "--install", "--yes", *more, cwd=work)
        assert run.returncode == 0
    assert all("policyctx-hook" in path.read_text(encoding="utf-8") for path in settings)
    for folder in (work / ".claude/policyctx", home / ".cache/policyctx"):
        folder.mkdir(parents=True)

    messages = session_of("text\n" * 400, "another\n" * 400)
    with Session(policy(POLICY.format(do="offload")), root=work / "ROOT", session_id="s") as one:
        edited = list(one.apply(messages).messages)
    with Session(policy(POLICY.format(do="compact")), root=work / "ROOT", session_id="s") as one:
        one.apply([*edited, user("and now?")])
    (work / "messages.json").write_text(json.dumps(edited), encoding="utf-8")
    first = messages[1]["content"][0]["id"]

    printed = {}
    for command in COMMANDS:
        program, *words = shlex.split(command.replace("toolu_01", first), posix=True)
        if program == "policyctx":
            run = policyctx(*words, cwd=work)
            assert run.returncode == 0, (command, run.stderr)
            printed[command] = run.stdout
        elif program == "rm":
            paths = [word.replace("~", str(home)) for word in words]
            subprocess.run(["/bin/rm", *paths], cwd=work, check=True)
        else:  # scripts/release runs it in an environment that may lose the package
            assert command == "pip uninstall --yes policyctx"

    assert all(path.read_text(encoding="utf-8") == '{"theme":  "dark"}\n' for path in settings)
    assert json.loads((work / "restored.json").read_text(encoding="utf-8")) == messages
    assert printed["policyctx store cat ROOT toolu_01"] == "text\n" * 400
    assert "the task" in (work / "before.json").read_text(encoding="utf-8")
    assert (work / "session.tar.zst").stat().st_size > 0
    assert not (work / ".claude/policyctx").exists()
    assert not (home / ".cache/policyctx").exists()
