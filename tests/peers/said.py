"""Recorded sessions as plain conversations, which each library takes in a form of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from policyctx.definitions.items import Message
from policyctx.messages.reading import Reading
from policyctx.replay.reading import recordings_in
from tests.recordings import TRACES

# The formats whose sessions are long and have calls of tools, among them parallel ones.
FOLDERS = ("claude-code", "codex", "openhands", "pi", "swe-agent")
_LEAST_CALLS = 6
# The tools of these recordings that run commands.
SHELLS = ["Bash", "exec_command", "bash"]

Block: TypeAlias = tuple[str, ...]
"""`(text, TEXT)`, `(call, ID, TOOL, ARGUMENTS as JSON)` or `(result, ID, TEXT)`."""
Plain: TypeAlias = tuple[str, tuple[Block, ...]]
"""A message as it is compared: its role and its blocks."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered."""

    id: str
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """One message: of the user, of the model with its calls, or the results of these calls."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A recorded session, or the part of one that begins with a list of its own."""

    name: str
    messages: tuple[Said, ...]

    def calls(self) -> Iterator[tuple[int, int]]:
        """Yield, for each model call, from where to where its list is new."""
        seen = 0
        for end, message in enumerate(self.messages):
            if message.role == "assistant" and end:
                yield seen, end
                seen = end
        if self.messages[-1].role != "assistant":
            yield seen, len(self.messages)


@cache
def conversations(folders: Sequence[str] = FOLDERS) -> list[Conversation]:
    """Return the conversations of the recordings in these folders that have some model calls."""
    paths = [path for folder in folders for path in sorted((TRACES / folder).glob("*"))]
    found = (one for path in paths for one in _conversations(path))
    return [one for one in found if sum(1 for _ in one.calls()) >= _LEAST_CALLS]


def _conversations(path: Path) -> Iterator[Conversation]:
    for recording in recordings_in(path):
        lists: list[list[Message]] = []
        for call in recording.calls:
            if call.anew or not lists:
                lists.append([])
            lists[-1].extend(call.new)
        if not recording.after_anew and lists:
            lists[-1].extend(recording.after)
        for number, messages in enumerate(lists):
            if said := tuple(_said(messages)):
                yield Conversation(f"{recording.name}/{number}", said)


def _said(messages: Sequence[Message]) -> Iterator[Said]:
    """Yield messages that every provider takes: each call has one result, right behind it.

    Ids are new ones, thinking is left out, and what is not text is its JSON.
    """
    reading = Reading()
    reading.extend(messages)
    items = reading.items
    calls = 0
    for role, positions in _grouped(reading):
        text = "\n".join(items[i].text for i in positions if items[i].kind != "tool_call")
        if role == "user":
            yield Said("user", text or "…")
            continue
        made: list[tuple[Call, Result]] = []
        for i in positions:
            if items[i].kind == "tool_call" and i in reading.partners:
                calls += 1
                id_, tool = f"call_{calls}", items[i].tool or "tool"
                answer = items[reading.partners[i]].text
                made.append((Call(id_, tool, _object(items[i].text)), Result(id_, tool, answer)))
        yield Said("assistant", text if text or made else "…", tuple(call for call, _ in made))
        if made:
            yield Said("tool", results=tuple(result for _, result in made))


def _grouped(reading: Reading) -> Iterator[tuple[str, list[int]]]:
    """Yield what the user and the model said in turn, as positions of items.

    Each message of the user is one by itself; what the model said ends where results come.
    """
    begun = False
    spoken: list[int] = []
    for message in range(reading.message_count):
        positions = [i for i in reading.items_of(message) if reading.items[i].inside is None]
        own = [i for i in positions if reading.items[i].kind in _SPOKEN]
        if reading.roles[message] == "assistant":
            spoken += own if begun else []
            continue
        if spoken:
            yield "assistant", spoken
            spoken = []
        if own:
            begun = True
            yield "user", own
    if spoken:
        yield "assistant", spoken


_SPOKEN = {"user_message", "assistant_message", "tool_call", "image", "document"}


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = text
    return found if isinstance(found, dict) else {"input": text}


def arguments(value: object) -> str:
    """Return the arguments of a call in the form that is compared."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
