"""Sessions that are distributed as `Shapes` say, each the same for its seed and number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.scale.shapes import FamilyShape, Shapes, ToolShape, shapes
from benchmarks.scale.texts import text_of, words

_MODELS = {"coding": "claude-opus-4-6", "service": "claude-sonnet-4-5-20250929"}
_TOOLS = {
    "shell": ("Bash", "command"),
    "edit": ("Edit", "new_string"),
    "read": ("Read", "file_path"),
    "search": ("Grep", "pattern"),
    "web": ("WebFetch", "url"),
    "note": ("TodoWrite", "todos"),
    "lookup": ("get_details", "reference"),
}
_START_S = 1_772_323_200  # 2026-03-01
_YEAR_S = 31_536_000 // 2
_CHARS_OF_TOKEN = 3.6
_CACHE_S = 300
# No share of the recorded families is a claim about other people's sessions, so it is an option.
CODING = 0.13


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call of a model: what was added to the prompt before it, and the reply."""

    new: tuple[dict[str, Any], ...]
    reply: dict[str, Any]
    at: float
    """When the reply came, in seconds since 1970."""
    usage: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GeneratedSession:
    """A session in the form of Anthropic's messages."""

    id: str
    model: str
    exchanges: tuple[Exchange, ...]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the session, in order."""
        return [one for each in self.exchanges for one in (*each.new, each.reply)]


def sessions(
    count: int, *, seed: int, coding: float = CODING, first: int = 0
) -> Iterator[GeneratedSession]:
    """Yield sessions; number 7 is the same whatever their count.

    `coding` is the share of sessions of coding agents; the rest are of a customer's service.
    """
    for number in range(first, first + count):
        yield session(number, seed=seed, coding=coding)


def session(number: int, *, seed: int, coding: float = CODING) -> GeneratedSession:
    """Return the session with a number."""
    chance = Random(f"{seed}/{number}")  # noqa: S311 - input to measure with
    family = "coding" if chance.random() < coding else "service"
    known: Shapes = shapes()
    made = _Making(chance, known[family], f"session-{number:07}")
    return GeneratedSession(made.id, _MODELS[family], tuple(made.exchanges()))


class _Making:
    """A session that is being made."""

    def __init__(self, chance: Random, shape: FamilyShape, session_id: str) -> None:
        self.id = session_id
        self._chance = chance
        self._shape = shape
        self._at = _START_S + chance.random() * _YEAR_S
        self._chars = 0
        self._head = shape.head.drawn(chance)
        self._cached = 0
        self._results = 0
        self._tools = [*shape.tools.items()]
        self._weights = [tool.calls for _, tool in self._tools]

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the calls of the session."""
        new: list[dict[str, Any]] = [self._asked()]
        pause = self._shape.pause
        for _ in range(max(1, round(self._shape.calls.drawn(self._chance)))):
            waited = pause.drawn(self._chance)
            self._at += waited
            self._chars += sum(_chars(message) for message in new)
            reply, results = self._reply()
            yield Exchange(tuple(new), reply, self._at, self._usage(waited, reply))
            self._chars += _chars(reply)
            new = [results or self._asked()]
            pause = self._shape.pause if results else self._shape.pause_of_turn

    def _asked(self) -> dict[str, Any]:
        asked = int(self._shape.asked.drawn(self._chance))
        return {"role": "user", "content": words(self._chance, asked)}

    def _reply(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return a reply and, unless it ends the turn, the message with the results."""
        blocks: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        said = int(self._shape.said.drawn(self._chance))
        if self._chance.random() >= self._shape.ends_turn:
            for _ in range(max(1, round(self._shape.tools_per_reply.drawn(self._chance)))):
                call, result = self._called()
                blocks.append(call)
                results.append(result)
        if said or not blocks:
            blocks.insert(0, {"type": "text", "text": words(self._chance, said)})
        answer = {"role": "user", "content": results} if results else None
        return {"role": "assistant", "content": blocks}, answer

    def _called(self) -> tuple[dict[str, Any], dict[str, Any]]:
        chance = self._chance
        ((name, shape),) = chance.choices(self._tools, self._weights)
        tool, key = _TOOLS[name]
        self._results += 1
        call_id = f"toolu_{self.id[-7:]}{self._results:05}"
        given = {key: text_of(chance, "code", int(shape.arguments.drawn(chance)), 1.0)}
        call = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": self._result(shape),
        }
        if chance.random() < shape.errors:
            result["is_error"] = True
        return call, result

    def _result(self, shape: ToolShape) -> str:
        (kind,) = self._chance.choices([*shape.kinds], [*shape.kinds.values()])
        return text_of(self._chance, kind, int(shape.result.drawn(self._chance)), shape.fresh)

    def _usage(self, waited: float, reply: dict[str, Any]) -> dict[str, int]:
        """Return a bill: what was sent before is read from the cache, unless it has expired."""
        prompt = 10 + int(self._head + self._chars / _CHARS_OF_TOKEN)
        read = self._cached if waited <= _CACHE_S else 0
        self._cached = prompt - 2
        return {
            "input_tokens": 2,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": max(0, prompt - 2 - read),
            "output_tokens": max(1, int(_chars(reply) / _CHARS_OF_TOKEN)),
        }


def _chars(message: dict[str, Any]) -> int:
    content = message["content"]
    if isinstance(content, str):
        return len(content)
    return sum(
        len(block.get("text") or block.get("content") or "")
        + sum(map(len, block.get("input", {}).values()))
        for block in content
    )
