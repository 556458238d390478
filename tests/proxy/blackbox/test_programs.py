"""Agents that other people wrote, through the proxy, each with a task of 30 commands to its end."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.proxy.blackbox.checks import lost_texts, placeholder_paths, prefixes, strings
from tests.proxy.blackbox.programs import (
    AIDER,
    CLAUDE,
    CLAUDE_READING,
    CODEX,
    CODEX_READING,
    KEY,
    MINI,
    OPENCODE,
    OPENCODE_READING,
    PI,
    PROGRAMS,
    READING,
    Program,
)
from tests.proxy.blackbox.proxies import EAGER, PLACEHOLDER, POLICY, WINDOW, Proxy, proxied
from tests.proxy.blackbox.recorded import Recorded
from tests.proxy.blackbox.scripts import Reply, always, reading_back, task
from tests.proxy.blackbox.upstream import Upstream

TURNS = 30
# The instructions and tools of an agent alone take up to half of the window.
WITH_DEFAULT_WORDING = EAGER.replace(f'placeholder: "{PLACEHOLDER}{{path}}]"\n', "")
ROOMY = POLICY.replace("{at_least: 60%}", "{at_least: 75%}")


PAGE = Path(__file__).parents[3] / "docs" / "proxy-clients.md"


def programs(*some: Program) -> pytest.MarkDecorator:
    params = [pytest.param(one, id=one.name, marks=pytest.mark.clients) for one in some]
    return pytest.mark.parametrize("program", params)


@programs(CLAUDE, CODEX, PI, MINI, OPENCODE)
def test_a_long_task_stays_in_a_small_window(
    program: Program, own_provider: Upstream, tmp_path: Path
) -> None:
    own_provider.script = task(TURNS, last_command=program.last_command)
    own_provider.accepted = program.accepted
    with proxied(own_provider.url, tmp_path / "proxy", policy=ROOMY) as proxy:
        run = program.run(proxy.url, tmp_path / "client")
        shown = shown_decisions(proxy)
    assert own_provider.refused == []
    assert run.returncode == 0, run.stderr[-2000:]
    decided = journal_decisions(proxy.root)
    assert decided <= shown
    assert "offloaded" in {action for _, _, action in decided}
    requests = [one for one in own_provider.of(program.path) if one.body.get("tools")]
    assert len(requests) == TURNS + 1
    assert max(own_provider.prompts) <= WINDOW
    moves_markers = program.path == "/v1/messages"
    seen = prefixes(requests, moves_markers=moves_markers)
    assert seen.wrong == ()
    assert seen.offloads >= 3
    named = placeholder_paths(requests)
    assert len(named) >= TURNS // 2
    assert lost_texts(proxy.root, named, texts_of(requests)) == []
    assert KEY not in proxy.logged


def shown_decisions(proxy: Proxy) -> Counter[tuple[str, str, str]]:
    """Return the decisions that the proxy shows, each by its session, its item and its action."""
    url = f"{proxy.url}/_policyctx/decisions.json"
    with urlopen(url, timeout=60) as answer:  # noqa: S310 - http
        found = json.load(answer)
    assert found["unreadable_sessions"] == []
    assert all(one["step"] and one["call"] and one["reason"] for one in found["decisions"])
    return Counter((one["session"], one["item"], one["action"]) for one in found["decisions"])


def journal_decisions(root: Path) -> Counter[tuple[str, str, str]]:
    """Return the decisions in the journals below a root, as `shown_decisions` does."""
    found: Counter[tuple[str, str, str]] = Counter()
    for journal in root.glob("*/.policyctx/*/journal.jsonl"):
        session = journal.parent.name
        for line in journal.read_text(encoding="utf-8").splitlines():
            record = json.loads(line).get("record", {"record": "of the store"})
            if record["record"] == "decision" and "rewritten" not in record:
                found[session, record["item_id"], record["state"]] += 1
            elif record["record"] == "compaction":
                first, last = record["skipped"], record["skipped"] + record["count"] - 1
                found[session, f"messages {first} to {last}", "summarised"] += 1
    return found


def texts_of(requests: list[Recorded]) -> set[str]:
    """Return the texts that the client sent, and lists of blocks as the store writes them."""
    found = {text for request in requests for _, text in strings(request.messages)}
    for request in requests:
        for message in request.messages:
            for block in (message, *_blocks(message)):
                for value in block.values():
                    if isinstance(value, list):
                        found.add(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return found


def _blocks(message: dict[str, object]) -> list[dict[str, object]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


@programs(AIDER)
def test_a_question_is_answered(program: Program, own_provider: Upstream, tmp_path: Path) -> None:
    own_provider.script = always(Reply("There is nothing to compile."))
    with proxied(own_provider.url, tmp_path / "proxy") as proxy:
        run = program.run(proxy.url, tmp_path / "client")
    assert run.returncode == 0, run.stderr[-2000:]
    assert "There is nothing to compile." in run.stdout
    assert own_provider.refused == []
    assert len(own_provider.of(program.path)) == 1


@programs(CLAUDE_READING, CODEX_READING, OPENCODE_READING)
def test_a_text_is_read_back_over_mcp(
    program: Program, own_provider: Upstream, tmp_path: Path
) -> None:
    own_provider.script, own_provider.window = reading_back(3), None
    own_provider.accepted = program.accepted
    options = ("--read-back", "mcp", "--client", "other")
    folder = tmp_path / "proxy"
    with proxied(own_provider.url, folder, *options, policy=WITH_DEFAULT_WORDING) as proxy:
        run = program.run(proxy.url, tmp_path / "client")
    assert own_provider.refused == []
    assert run.returncode == 0, run.stderr[-2000:]
    requests = [one for one in own_provider.of(program.path) if one.body.get("tools")]
    assert len(requests) == 5
    before, after = (json.dumps(one.messages) for one in requests[-2:])
    line = "turn 0: module_7 compiled"
    assert line not in before.partition("call_000")[2].partition("call_001")[0]
    assert line in after.rpartition("call_back")[2]
    assert str(folder) not in after
    assert KEY not in proxy.logged


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.name))
def test_the_document_shows_the_settings_that_are_run(program: Program) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, text in program.settings.items():
        assert f"In `~/{name}`:" in page
        assert f"\n{text}```\n" in page
    shown = [f"{name}={text}" for name, text in program.variables.items()]
    if program.name in READING:
        assert f"\n{READING[program.name]}```\n" in page
    if program.name == CLAUDE.name:
        adding = shlex.join(["claude", *CLAUDE_READING.prepared])
        assert adding in page.replace(" \\\n        ", " ")
    command = [program.installed.name, *program.arguments][: program.shown]
    assert f"\n    {' '.join([*shown, *command])}" in page
