"""`Item`: one addressable piece of an agent's context."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pydantic_core import to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Message: TypeAlias = dict[str, Any]
# Where in a message an item stands, such as ("content", 2, "text").
Path: TypeAlias = tuple[str | int, ...]

# The type of what is carried along untouched because nothing here knows what it means.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Medium:
    """An image, a document or a sound: the block as it lies in a message.

    `weights` remembers, by the name of the rules, what it was found to weigh in tokens.
    """

    block: Mapping[str, Any] = field(hash=False)
    weights: dict[str, int] = field(default_factory=dict, compare=False, repr=False)


class Item(NamedTuple):
    """A block, or a whole string message, with what a policy may ask of it.

    `text` is what offloading would save: a string as it is, a list of blocks or a call's input as
    compact JSON. `counted` is the text that a model is billed for, without the bytes of the
    `media` in it.
    """

    message: int
    """0-based position of its message in the list."""
    path: Path
    """Where in the message it stands: a text, a call's input, a result's content, a whole block."""
    kind: str
    """What it is by itself: a built-in item type, or `unknown`."""
    type: str
    """What a policy calls it: its kind, or a refinement of that which the policy defines."""
    role: str
    text: str
    counted: str
    media: tuple[Medium, ...] = ()
    turn: int = 0
    """Turns begun up to here; one begins with a user message that is no tool result."""
    tool: str | None = None
    """Name of the tool, for a call and for a result whose call is in the list."""
    tool_use_id: str | None = None
    call_message: int | None = None
    """Position of the message that made the call: results of parallel calls share it."""
    error: bool = False
    media_type: str | None = None
    """Of an image or document, such as `image/png`."""
    inside: int | None = None
    """Position, in the list of items, of the result that it stands inside of.

    The tool, the id, the call and the failure of such an item are those of its result.
    """
    number: int = 0
    """1-based, among the items inside of one result; 0 outside."""

    @property
    def item_id(self) -> str:
        """The tool-use id for calls and results, else `msg_` and a three-digit ordinal.

        Inside a result, its id and the item's number there: `toolu_1-2`.
        """
        name = f"msg_{self.message + 1:03}" if self.tool_use_id is None else self.tool_use_id
        return name if self.inside is None else f"{name}-{self.number}"


def compact_json(value: object) -> str:
    """Return the JSON text that stands for a value that is not plain text.

    Raises `TypeError`, `ValueError` or `RecursionError` for what is no JSON.
    """
    if _is_written_alike(value):
        try:
            return to_json(value).decode()
        except ValueError:  # it takes no lone surrogates
            pass
    return _encode(value)


def _is_written_alike(value: object) -> bool:
    """Is this of what both encoders write alike, nested no deeper than most; floats are not."""
    level = [value]
    for _ in range(_DEPTH):
        deeper: list[object] = []
        for one in level:
            if type(one) is dict and _NAMES.issuperset(map(type, one)):
                inner: Collection[object] = one.values()
            elif type(one) is list:
                inner = one
            else:
                return type(one) in _SIMPLE
            if not _SIMPLE.issuperset(map(type, inner)):
                deeper += [each for each in inner if type(each) not in _SIMPLE]
        if not deeper:
            return True
        level = deeper
    return False


def _plain_values(value: object) -> object:
    """A provider's SDK object as plain values; what is none is shown by its text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


_NAMES, _SIMPLE = frozenset({str}), frozenset({str, int, bool, NoneType})
_DEPTH = 16
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain_values).encode
