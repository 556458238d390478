"""What the scripted model answers: replies that fit any of the three APIs, and whole tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.proxy.blackbox.recorded import Recorded

# A call of a tool: its id, its name and its input.
Call: TypeAlias = tuple[str, str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer: a text, calls, or both, after thinking if wanted.

    `tokens` are what its prompt is billed, in place of what its bytes say. Another `status` than
    200 answers with an error. The rest are faults of a stream: `cut_after`
    ends the connection after so many events, `pause` waits before each event but the first
    (seconds), `gzip` compresses, `events` repeats the text in so many events.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinks: bool = False
    tokens: int | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    pause: float = 0.0
    gzip: bool = False


DONE = Reply("The task is done.")
OVERLOADED = Reply(status=529, headers={"retry-after-ms": "1", "x-should-retry": "true"})
LIMITED = Reply(status=429, headers={"retry-after": "0.01", "x-ratelimit-remaining": "0"})

# Called with the request and the number of answers that its conversation already had.
Script: TypeAlias = "Callable[[Recorded, int], Reply]"


def always(reply: Reply) -> Script:
    """Return the script that always answers the same."""
    return lambda _request, _number: reply


def in_order(*replies: Reply) -> Script:
    """Return the script that answers each conversation with these in order, then `DONE`.

    An error counts as an answer.
    """
    return lambda _request, number: replies[number] if number < len(replies) else DONE


def task(turns: int, *, tokens: int = 6_000, last_command: str | None = None) -> Script:
    """Return the script of an agent that runs a command in each turn, and then says it is done.

    Each command prints about `tokens` tokens, and no two print the same. An agent that ends by a
    command runs `last_command` instead. A request without tools gets a title.
    """

    def script(request: Recorded, turn: int) -> Reply:
        tools = request.body.get("tools") or []
        if not tools:
            return Reply("Compiling modules")
        if turn > turns or (turn == turns and last_command is None):
            return DONE
        command = printing(turn, tokens) if turn < turns else str(last_command)
        name, given = shell_call(tools, command)
        call = (f"call_{turn:03}", name, given)
        return Reply(plan_of(turn), (call,), thinks=turn % 2 == 0)

    return script


def reading_back(turns: int) -> Script:
    """Return the script of `task`, at whose end the agent reads the first text that has left."""
    first = task(turns, tokens=400)

    def script(request: Recorded, turn: int) -> Reply:
        if not request.body.get("tools") or turn < turns:
            return first(request, turn)
        found = _SHOWN_PATH.search(json.dumps(request.messages))
        name = next((name for name in _names(request.body) if "read_offloaded" in name), None)
        if turn > turns or found is None or name is None:
            return DONE
        return Reply("I read it again.", (("call_back", name, {"path": found[1]}),))

    return script


# As the default placeholder shows it in the JSON of a request.
_SHOWN_PATH = re.compile(r"\[Content offloaded\]\\nPath: ([^\\\"]+)\\nUse read_offloaded tool")


def _names(body: Mapping[str, Any]) -> list[str]:
    """Return the names of a request's tools, those in a namespace after it and a slash."""
    found = []
    for tool in body["tools"]:
        found += [f"{tool['name']}/{_name(one)}" for one in tool.get("tools", ())]
        found += [] if "tools" in tool else [_name(tool)]
    return found


def printing(turn: int, tokens: int) -> str:
    """Return a shell command that prints a log of about `tokens` tokens."""
    lines = max(1, tokens // _TOKENS_OF_LINE)
    return f"seq -f 'turn {turn}: module_%g compiled in 12 ms without warnings' 1 {lines}"


# As o200k_base counts a line that `printing` prints.
_TOKENS_OF_LINE = 14


def plan_of(turn: int) -> str:
    """Return what the agent says in a turn: some 150 tokens that no other turn has."""
    said = [f"Step {turn}.{i}: I look at module {turn * 10 + i} and compile it." for i in range(8)]
    return " ".join(said)


def shell_call(tools: Sequence[dict[str, Any]], command: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the input of a call of the request's shell tool."""
    names = [_name(tool) for tool in tools]
    found = next((name for name in names if name in _INPUTS), None)
    if found is None:
        message = f"there is no shell tool that this script knows among {names}"
        raise LookupError(message)
    return found, _INPUTS[found](command)


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))


_INPUTS: dict[str, Callable[[str], dict[str, Any]]] = {
    # Codex
    "exec_command": lambda command: {"cmd": command, "max_output_tokens": 20_000},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-c", command]},
    # Claude Code
    "Bash": lambda command: {"command": command, "description": "Compile the modules"},
    # Pi, OpenCode, mini-swe-agent
    "bash": lambda command: {"command": command, "description": "Compile the modules"},
}
