"""Policies, contents and results for the loops that run over each SDK."""

from __future__ import annotations

from pathlib import Path

from policyctx import Session
from tests.drawing import in_profile
from tests.policies import policy

OLD = """\
    items: {tool_result: {offload: true, keep_recent: 1}}
    min_tokens: 100
    steps: [{name: retire, do: offload}]
    """
GATED = """\
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload, when: {tokens: {at_least: 20000}}}]
    """
SHARE = """\
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload, when: {tokens: {at_least: 80%}}}]
    """
# The names of models, each with the tokens from which the gate of `SHARE` opens.
LIMITS = [("gpt-4o", 102_400), ("claude-opus-4-8", 800_000), ("a-model-of-ours", 160_000)]
BIG, SECOND = "alpha " * 400, "beta " * 400

WINDOW = 20_000
# Of the long task that each SDK works on; the policy compacts the list every ten turns or so.
TURNS = in_profile(40, 100)
LONG = """\
    model: {context_window: 20000}
    min_tokens: 500
    items: {tool_result: {offload: true}}
    compaction: {keep_recent: {messages: 1}, keep_newest_user_message: true}
    steps:
      - {name: retire, do: offload, select: {keep_recent: {items: 2, per: all}}}
      - name: room
        do: offload
        when: {tokens: {at_least: 50%}}
        select: {keep_recent: {messages: 1}}
      - {name: summarise, do: compact, when: {tokens: {at_least: 55%}}}
    """


def long_results(turn: int) -> list[tuple[str, str]]:
    """Results that are billed with at most 8,000 tokens together."""
    count = 1 + turn % 3
    sizes = [7000 if turn % 7 == 3 else 1500 if i else 300 + 97 * (turn % 23) for i in range(count)]
    scale = min(1.0, 7_500 / sum(sizes))
    texts = [f"{turn}.{i}: " + "output of a command\n" * 4000 for i in range(count)]
    return [
        (f"t{turn}_{i}", text[: int(3 * size * scale)])
        for i, (text, size) in enumerate(zip(texts, sizes, strict=True))
    ]


def limit_of(session: Session) -> float:
    """Return the tokens from which the gate of `SHARE` opens after the calls that were made."""
    [verdict] = session.plan([]).gates
    return float(verdict.limit)


def files_of(session: Session) -> list[str]:
    """Return the path of each item of a session that is in a file."""
    return [item.offload_path for item in session.items if item.offload_path]


def ten_sessions(folder: Path) -> dict[str, Session]:
    """Return sessions under `OLD` by the names of ten agents, each with a store of its own."""
    rules, names = policy(OLD), [f"agent{i}" for i in range(10)]
    return {name: Session(rules, root=folder / name, session_id=name) for name in names}


def check_own_files(sessions: dict[str, Session], count: int) -> None:
    """Check that each session has so many files, and only those of results that name its agent."""
    for name, session in sessions.items():
        files = files_of(session)
        assert len(files) == count
        assert all(session.read(file).startswith(f"{name} ") for file in files)
