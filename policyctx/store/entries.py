"""`Entry`: what the index knows of a saved content, as a value and as JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from policyctx.store.blocks import Hollow
from policyctx.store.content import Origin

if TYPE_CHECKING:
    from policyctx.store.content import JSON

STATE_FOLDER = ".policyctx"

_SHA256 = re.compile(r"[0-9a-f]{64}")
# The parts of a path that lead elsewhere.
_ELSEWHERE = frozenset({"", ".", ".."})
_TEXTS = ("item_id", "item_type", "tool_use_id", "tool_name", "role")
_NUMBERS = ("message", "turn", "tokens")


@dataclass(frozen=True, slots=True)
class Entry:
    """A content in the store. Paths are below the root, with `/`."""

    path: str
    sha256: str
    """Of the text in UTF-8, in hex."""
    size: int
    """Bytes of the text in UTF-8."""
    chars: int
    lines: int
    saved_at: float
    """Seconds since 1970, by the clock of that moment."""
    wanted: str = ""
    """The path without the number that it got; empty when it got none."""
    format: Literal["text", "envelope"] = "text"
    origin: Origin | None = None
    """The item that it was, without its block."""
    hollow: Hollow | None = None
    """The item's block without the text."""
    same_as: str | None = None
    """The path of an equal content that was there before; the disk holds the two once."""
    replaces: str | None = None
    """The hash of what had this path, under `on_conflict: overwrite`: a crash may have left it."""
    adopted: bool = False
    """Was it found on the disk when the index was rebuilt; retention leaves it alone."""

    @property
    def item_id(self) -> str | None:
        """The id of the item, None where the content came without."""
        return self.origin.item_id if self.origin else None

    def as_json(self) -> dict[str, JSON]:
        """Return what the index holds, without what is not known."""
        values: dict[str, JSON] = {
            "path": self.path,
            "sha256": self.sha256,
            "bytes": self.size,
            "chars": self.chars,
            "lines": self.lines,
            "saved_at": self.saved_at,
        }
        if self.origin is not None:
            values |= _known(self.origin)
        if self.hollow is not None:
            values |= self.hollow.as_json()
        for name in ("wanted", "same_as", "replaces", "adopted"):
            value = getattr(self, name)
            if value:
                values[name] = value
        if self.format != "text":
            values["format"] = self.format
        return values


def entry_of(value: object) -> Entry | None:
    """Return the entry that a JSON value is, None when it is none that this store could hold."""
    if not isinstance(value, dict) or not _is_entry(value):
        return None
    return Entry(
        path=value["path"],
        sha256=value["sha256"],
        size=value["bytes"],
        chars=value["chars"],
        lines=value["lines"],
        saved_at=float(value["saved_at"]),
        wanted=value.get("wanted", ""),
        format="envelope" if value.get("format") == "envelope" else "text",
        origin=_origin(value),
        hollow=_hollow(value),
        same_as=value.get("same_as"),
        replaces=value.get("replaces"),
        adopted=value.get("adopted") is True,
    )


def is_inside(path: object) -> bool:
    """Is this the path of a content: relative, leading nowhere else, and not the store's own."""
    if not isinstance(path, str) or "\0" in path:
        return False
    parts = path.split("/")
    return not _ELSEWHERE & set(parts) and parts[0].casefold() != STATE_FOLDER


def _is_entry(value: dict[object, object]) -> bool:
    numbers = (value.get(name) for name in ("bytes", "chars", "lines", "saved_at"))
    texts = (value.get(name, "") for name in ("wanted", "same_as", "replaces", *_TEXTS))
    positions = (value.get(name, 0) for name in _NUMBERS)
    sha256 = value.get("sha256")
    return (
        is_inside(value.get("path"))
        and isinstance(sha256, str)
        and _SHA256.fullmatch(sha256) is not None
        and all(type(number) in {int, float} for number in numbers)
        and all(isinstance(text, str) for text in texts)
        and all(type(position) is int for position in positions)
        and ("wanted" not in value or is_inside(value["wanted"]))
    )


def _known(origin: Origin) -> dict[str, JSON]:
    values: dict[str, JSON] = {
        "item_id": origin.item_id,
        "item_type": origin.item_type,
        "tool_use_id": origin.tool_use_id,
        "tool_name": origin.tool_name,
        "role": origin.role,
        "message": origin.message,
        "turn": origin.turn,
        "tokens": origin.tokens,
    }
    return {name: value for name, value in values.items() if value is not None}


def _origin(value: dict[str, str]) -> Origin | None:
    if "item_id" not in value:
        return None
    known = {name: value[name] for name in (*_TEXTS, *_NUMBERS) if name in value}
    return Origin(**{"item_type": "unknown", **known})  # type: ignore[arg-type]


def _hollow(value: dict[str, JSON]) -> Hollow | None:
    place = value.get("text_at")
    if "block" not in value:
        return None
    if not isinstance(place, list):
        return Hollow(value["block"], None)
    parts = tuple(part for part in place if isinstance(part, (str, int)))
    return Hollow(value["block"], parts, "json" if value.get("text_as") == "json" else "text")
