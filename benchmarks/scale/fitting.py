"""From recorded sessions to `Shapes`: quantiles of sizes, pauses and tools; no text is kept."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from benchmarks.scale.shapes import FamilyShape, Quantiles, Shapes, ToolShape
from benchmarks.scale.texts import calibrated, kind_of, packing
from policyctx.definitions.items import Item, Message
from policyctx.errors import MessagesError, UnreadableRecordingError
from policyctx.messages.reading import items_of
from policyctx.replay.reading import files_in, recordings_in
from policyctx.replay.recording import ModelCall, Recording

# Recordings of conversations with a customer's service; all others are of coding agents.
_SERVICE = frozenset({"tau-bench", "tau2", "inspect"})
_TOOLS = {
    "shell": re.compile(r"bash|shell|exec|terminal|stdin|command", re.IGNORECASE),
    "edit": re.compile(r"edit|write|patch|insert|create|replace", re.IGNORECASE),
    "read": re.compile(r"read|view|open|cat\b", re.IGNORECASE),
    "search": re.compile(r"grep|glob|search|find|ls\b|list", re.IGNORECASE),
    "web": re.compile(r"web|browser|fetch", re.IGNORECASE),
}
_OF_SERVICE = "lookup"
_OTHER = "note"
# Shorter texts pack badly whatever they are.
_PACKED_FROM = 400
_CHARS_OF_TOKEN = 3.6


@dataclass(slots=True)
class _Tool:
    arguments: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    errors: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)

    def shape(self) -> ToolShape:
        shown = sum(self.kinds.values()) or 1
        kinds = {kind: round(count / shown, 3) for kind, count in sorted(self.kinds.items())}
        kinds = kinds or {"prose": 1.0}
        ratio = Quantiles.of(self.ratios).values[10] if self.ratios else 2.0
        chars = int(sum(self.results) / max(1, len(self.results)))
        return ToolShape(
            len(self.arguments),
            Quantiles.of(self.arguments),
            Quantiles.of(self.results),
            round(self.errors / max(1, len(self.results)), 3),
            kinds,
            round(ratio, 2),
            calibrated(kinds, max(chars, _PACKED_FROM), ratio),
        )


@dataclass(slots=True)
class _Family:
    calls: list[int] = field(default_factory=list)
    tools_per_reply: list[int] = field(default_factory=list)
    replies: int = 0
    said: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    pause: list[float] = field(default_factory=list)
    pause_of_turn: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)
    tools: dict[str, _Tool] = field(default_factory=lambda: defaultdict(_Tool))

    def shape(self) -> FamilyShape:
        return FamilyShape(
            len(self.calls),
            Quantiles.of(self.calls),
            Quantiles.of(self.tools_per_reply),
            round(1 - len(self.tools_per_reply) / max(1, self.replies), 3),
            Quantiles.of(self.said),
            Quantiles.of(self.asked),
            Quantiles.of(self.pause),
            Quantiles.of(self.pause_of_turn),
            Quantiles.of(self.head),
            {name: tool.shape() for name, tool in sorted(self.tools.items())},
        )


def fitted(paths: Iterable[Path]) -> Shapes:
    """Return the shapes of the recordings among files and in folders; others are left out."""
    families: dict[str, _Family] = {}
    for path in files_in(paths):
        try:
            for recording in recordings_in(path):
                if recording.calls:
                    name = "service" if recording.format in _SERVICE else "coding"
                    _take(families.setdefault(name, _Family()), recording, name)
        except UnreadableRecordingError:
            continue
    return {name: families[name].shape() for name in sorted(families)}


def _take(family: _Family, recording: Recording, name: str) -> None:
    family.calls.append(len(recording.calls))
    first = recording.calls[0]
    if first.usage is not None and first.usage.prompt:
        shown = sum(len(item.counted) for item in _items(first.new)) / _CHARS_OF_TOKEN
        family.head.append(max(0.0, first.usage.prompt - shown))
    opening = [item for item in _items(first.new) if item.kind == "user_message"]
    family.asked.append(sum(len(item.text) for item in opening))
    new = [*(call.new for call in recording.calls[1:] if not call.anew), recording.after]
    steps = [_items(messages) for messages in new]
    # Where results have no role of their own, replies do not show which of them called a tool.
    if any(item.kind == "tool_call" for items in steps for item in items):
        for items in steps:
            _take_step(family, items, name)
    for before, after in pairwise(recording.calls):
        _take_pause(family, before, after)


def _unwrapped(text: str) -> str:
    """Return the text of a result, which may be a list of text blocks as JSON."""
    if not text.startswith('[{"'):
        return text
    try:
        blocks = json.loads(text)
    except ValueError:
        return text
    texts = [block.get("text") if isinstance(block, dict) else None for block in blocks]
    known = [one for one in texts if isinstance(one, str)]
    return "\n".join(known) if len(known) == len(texts) else text


def _take_step(family: _Family, items: list[Item], name: str) -> None:
    """Take what came between two calls: a reply, the results of its calls, a user's words."""
    calls = [item for item in items if item.kind == "tool_call"]
    said = sum(len(item.text) for item in items if item.kind in {"assistant_message", "thinking"})
    if calls or said:
        family.replies += 1
        family.said.append(said)
        if calls:
            family.tools_per_reply.append(len(calls))
    asked = sum(len(item.text) for item in items if item.kind == "user_message")
    if asked:
        family.asked.append(asked)
    for item in items:
        if item.kind == "tool_call":
            family.tools[_tool(item.tool, name)].arguments.append(len(item.text))
        elif item.kind == "tool_result":
            tool = family.tools[_tool(item.tool, name)]
            text = _unwrapped(item.text)
            tool.results.append(len(text))
            tool.errors += item.error
            if len(text) >= _PACKED_FROM:
                tool.kinds[kind_of(text)] += 1
                tool.ratios.append(packing(text))


def _take_pause(family: _Family, before: ModelCall, after: ModelCall) -> None:
    if before.at is None or after.at is None or after.anew:
        return
    asked = any(item.kind == "user_message" for item in _items(after.new))
    pauses = family.pause_of_turn if asked else family.pause
    pauses.append(max(0.0, after.at - before.at))


def _items(messages: Iterable[Message]) -> list[Item]:
    try:
        return [*items_of([*messages])]
    except MessagesError:
        return []


def _tool(name: str | None, family: str) -> str:
    if family == "service":
        return _OF_SERVICE
    return next((tool for tool, form in _TOOLS.items() if form.search(name or "")), _OTHER)
