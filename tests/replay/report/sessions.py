"""Replayed sessions for reports, and reports of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from policyctx.definitions.items import Message
from policyctx.replay.recording import Recording
from policyctx.replay.report.page import page, write_page
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.simulation import simulated
from policyctx.tokens.usage import Usage
from tests.conversations import call, results, user
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

STEPS = """
items: {tool_result: {offload: true}}
steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 2}}]
"""
UNPRICED = policy(STEPS + "model: {context_window: 4000, cache: {min_tokens: 0}}")
PRICED = policy(
    STEPS + "model: {context_window: 4000,"
    " price: {input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}}"
)
# What a page must not take for its own.
HOSTILE = (
    '</script><script>document.title = "taken"</script><!-- <script> ]]>'
    '<img src=x onerror="document.title = `taken`"> &lt;b&gt; javascript:alert(1)'
    " \u2028\u2029\ud800"
)


def messages(
    turns: int,
    *,
    text: str = "a line of output, number",
    tool: str = "Read",
    task: str = "the task",
) -> list[Message]:
    """A task, and for each turn a call of the tool for another file and its result."""
    made: list[Message] = [user(task)]
    for i in range(turns):
        output = "\n".join(f"{text} {i * 1000 + line}" for line in range(30))
        made += [call(f"c{i}", tool, {"path": f"src/f{i}.py"}), results((f"c{i}", output))]
    return made


def replayed(
    turns: int = 12,
    *,
    name: str = "session.jsonl",
    under: Any = UNPRICED,
    began: float | None = None,
    **more: Any,
) -> SimulatedSession:
    """A session of so many calls, and one that asks for its first file again at its end."""
    told = messages(turns, **more)
    asked = call("again", more.get("tool", "Read"), {"path": "src/f0.py"})
    first = told[2]["content"][0]["content"] if turns else "nothing"
    told += [asked, results(("again", first))]
    usages = [Usage(1_000 + 400 * i, output=20) for i in range(turns + 1)]
    times = [] if began is None else [began + 60 * i for i in range(turns + 1)]
    recorded = turn_by_turn(told, name=name, usages=usages, times=times)
    return simulated(recorded, under, path=f"folder/{name}", excerpt=400)


def as_replayed(recorded: Recording, *, excerpt: int = 400) -> SimulatedSession:
    """A session of a recording that a test has put together."""
    return simulated(recorded, UNPRICED, path=f"folder/{recorded.name}", excerpt=excerpt)


def report(path: Path, *sessions: SimulatedSession) -> Path:
    """Write the report of sessions to a path, and return it."""
    missing = [f"error: {'folder/' * 40}broken.jsonl: no message is in it"]
    write_page(path, page("test", sessions, missing))
    return path
