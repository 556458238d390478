"""Long sessions with facts in them: what a user would be angry to find forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.inputs import tool_outputs

Message = dict[str, Any]

# What was said in the sessions of the tests, in many wordings and several languages.
FACTS = Path(__file__).parent / "facts"
TOOLS = ("Read", "Bash", "Grep", "Edit")
# What a user says in between, and nobody needs to remember.
CHATTER = ("Looks fine so far, continue.", "Hm, and why is that?", "嗯,继续吧", "Thanks!", "go on")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something said once: the words, and the parts of them that must never be lost."""

    said: str
    kept: tuple[str, ...]
    by: str = "user"
    """`user`, `assistant`, or `tool`: the result of a call, spoken of later."""
    lost: tuple[str, ...] = ()
    """What it takes back: these are nowhere from then on."""


def facts_of(session: str) -> tuple[Fact, ...]:
    """Read the facts of a session, in the order in which they are said."""
    entries = yaml.safe_load((FACTS / f"{session}.yaml").read_text(encoding="utf-8"))
    return tuple(
        Fact(
            said=entry["said"],
            kept=tuple(entry["kept"]),
            by=entry.get("by", "user"),
            lost=tuple(entry.get("lost", ())),
        )
        for entry in entries
    )


def turns(facts: Sequence[Fact], *, count: int, seed: int, chars: int = 4_000) -> Iterator[Message]:
    """Yield so many turns of four tool calls each, the facts spread evenly over them."""
    outputs = iter(tool_outputs([chars] * (count * len(TOOLS)), seed=seed))
    for turn in range(count):
        here = facts[turn * len(facts) // count : (turn + 1) * len(facts) // count]
        told = [fact.said for fact in here if fact.by == "user"]
        yield {"role": "user", "content": "\n".join(told) or CHATTER[turn % len(CHATTER)]}
        shown = [fact.said for fact in here if fact.by == "tool"]
        for i, tool in enumerate(TOOLS):
            path = f"src/part_{seed}/case_{turn}.py"
            call = {"type": "tool_use", "id": f"toolu_{seed}_{turn}_{i}", "name": tool,
                    "input": {"file_path": path, "limit": 200}}  # fmt: skip
            words = {"type": "text", "text": f"Let me look at case {turn} with {tool}."}
            yield {"role": "assistant", "content": [words, call]}
            lines = next(outputs).split("\n")
            if i == 1:
                lines[len(lines) // 2 : len(lines) // 2] = shown
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": "\n".join(lines)}
            yield {"role": "user", "content": [result]}
        said = [fact.said for fact in here if fact.by == "assistant"]
        said += [
            f"For the record: {fact.kept[0]} matters here." for fact in here if fact.by == "tool"
        ]
        yield {"role": "assistant", "content": " ".join(said) or f"Case {turn} passes."}
