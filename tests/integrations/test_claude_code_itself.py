"""The hook in Claude Code itself, which compacts against a scripted provider.

`scripts/test-clients` installs Claude Code; nothing is sent to anyone but the loopback address.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.blackbox.programs import CLIENTS, KEY
from tests.proxy.blackbox.recorded import Recorded
from tests.proxy.blackbox.scripts import Reply
from tests.proxy.blackbox.upstream import Upstream, upstream

pytestmark = pytest.mark.clients

CLAUDE = CLIENTS / "node" / "node_modules" / ".bin" / "claude"
ORDER = "Never push to the main branch of this repository, whatever anybody says to you."
VALUE = "The staging server of the new service listens on port 8081."
TASK = "Echo some numbers until I stop you."
SHORT = "Some numbers were echoed."
COMPLETE = f"The user said: {ORDER} {VALUE} {SHORT}"
REMINDED, DELIVERED = "What the user forbade in it", "lacks what is quoted here"
# Claude Code compacts near this many tokens, and a prompt that is billed so much is near it.
WINDOW, MUCH, LITTLE = 100_000, 90_000, 12_000


class Claude:
    """Claude Code with the hook, in a home and a folder of its own."""

    def __init__(self, folder: Path, server: Upstream) -> None:
        self._work = folder / "work"
        self._work.mkdir()
        self._variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "NO_PROXY": "127.0.0.1",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.url,
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(WINDOW),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }
        install = (sys.executable, "-m", "policyctx", "hook", "claude-code", "--install", "--yes")
        subprocess.run(install, env=self._variables, check=True, stdout=subprocess.DEVNULL)

    def remove_hook(self, event: str) -> None:
        settings = Path(self._variables["HOME"], ".claude/settings.json")
        found = json.loads(settings.read_text())
        del found["hooks"][event]
        settings.write_text(json.dumps(found))

    def ask(self, prompt: str, *options: str) -> None:
        words = ("-p", *options, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash")
        run = subprocess.run(
            [CLAUDE, *words, "--", prompt],
            cwd=self._work,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]


class Script:
    """Runs a few commands, and summarises when it is asked to."""

    def __init__(self, summary: str, *, fills_window: bool) -> None:
        self._summary, self._fills = summary, fills_window
        self._commands = 0

    def __call__(self, request: Recorded, _: int) -> Reply:
        if is_for_summary(request):
            self._fills = False
            return Reply(f"<summary>{self._summary}</summary>", tokens=LITTLE)
        if TASK not in told(request) and REMINDED not in told(request):
            return Reply("Understood.", tokens=LITTLE)
        self._commands += 1
        if self._commands > 5:
            return Reply("The task is done.", tokens=LITTLE)
        given = {"command": f"echo {self._commands}", "description": "Echo a number"}
        tokens = MUCH if self._fills and self._commands > 1 else LITTLE
        return Reply("On it.", ((f"call_{self._commands}", "Bash", given),), tokens=tokens)


def told(request: Recorded) -> str:
    return json.dumps(request.messages)


def is_for_summary(request: Recorded) -> bool:
    return "Your task is to create a detailed summary" in told(request)


@pytest.fixture
def server() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


def requests_of(server: Upstream, *, after: bool) -> list[Recorded]:
    """Return the requests for a summary, or those after the last one."""
    found = [one for one in server.of("/v1/messages") if one.body.get("tools")]
    asked = [i for i, one in enumerate(found) if is_for_summary(one)]
    return found[asked[-1] + 1 :] if after else [found[i] for i in asked]


@pytest.mark.parametrize(("summary", "lacks"), [(SHORT, True), (COMPLETE, False)])
def test_an_automatic_compaction_gets_back_what_its_summary_lacks(
    server: Upstream, tmp_path: Path, summary: str, lacks: bool
) -> None:
    server.script = Script(summary, fills_window=True)
    claude = Claude(tmp_path, server)
    claude.ask(f"{ORDER} {VALUE}")
    claude.ask(TASK, "--continue")
    [asked] = requests_of(server, after=False)
    assert f"- order: {ORDER}" in told(asked)
    assert f"- exact value: {VALUE}" in told(asked)
    first, *later = requests_of(server, after=True)
    assert REMINDED in told(first)
    assert f"- order: {ORDER}" in told(first)
    assert DELIVERED not in told(first)
    assert (DELIVERED in told(later[0])) == lacks
    assert f"- exact value: {VALUE}" in told(later[0]) or not lacks
    # Once: it stays in the history, and nothing new comes.
    assert told(later[-1]).count(DELIVERED) == int(lacks)


def test_a_manual_compaction_has_the_instructions_behind_those_of_the_user(
    server: Upstream, tmp_path: Path
) -> None:
    server.script = Script(SHORT, fills_window=False)
    claude = Claude(tmp_path, server)
    claude.ask(f"{ORDER} {VALUE}")
    claude.ask("What a day it is, do you not think so?", "--continue")
    claude.ask("/compact Keep it short.", "--continue")
    claude.ask(TASK, "--continue")
    [asked] = requests_of(server, after=False)
    said = told(asked)
    assert said.index("Keep it short.") < said.index(f"- order: {ORDER}")
    first, *_ = requests_of(server, after=True)
    # Claude Code shows the model what was added to the instructions, so nothing is missing.
    assert VALUE in told(first)
    assert DELIVERED not in told(first)


@pytest.mark.parametrize(("summary", "lacks"), [(SHORT, True), (COMPLETE, False)])
def test_without_instructions_the_next_prompt_brings_back_what_is_missing(
    server: Upstream, tmp_path: Path, summary: str, lacks: bool
) -> None:
    server.script = Script(summary, fills_window=False)
    claude = Claude(tmp_path, server)
    claude.remove_hook("PreCompact")
    claude.ask(f"{ORDER} {VALUE}")
    claude.ask("What a day it is, do you not think so?", "--continue")
    claude.ask("/compact", "--continue")
    claude.ask(TASK, "--continue")
    first, *_ = requests_of(server, after=True)
    assert f"- order: {ORDER}" in told(first)
    assert (DELIVERED in told(first)) == lacks
    assert f"- exact value: {VALUE} [line 3]" in told(first) or not lacks
