"""Texts of an exact size: no two alike, and the same in every run."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from policyctx.testing.failures import WordingError

if TYPE_CHECKING:
    from policyctx.testing.kinds import Size

# With the space before it, each is one token of every vocabulary and four characters.
_WORDS = re.findall(
    r"\w+",
    """
    the and for are but not you all can had her was one our out day get has him his how man new now
    old see two way who did its let put say she too use any may run set top end big far few own ask
    try red hot low air men led yet off per act age ago job law war web map key log row bit box car
    cup dog eye fly fun guy hit ice
    """,
)
_LINE_CHARS = 72


def filler(size: Size, serial: int) -> str:
    """Return the text of this size that belongs to the `serial` number, 0 or more.

    Its tokens are those that each tokenizer counts for the text by itself.
    """
    if size.unit == "tokens":
        return "".join(f" {word}" for word in _words(size.number, serial))
    text = _characters(size.number, serial)
    lines = (text[i : i + _LINE_CHARS] for i in range(0, len(text), _LINE_CHARS + 1))
    return "\n".join(lines).ljust(size.number, ".")[: size.number]


def filler_blocks(size: Size, serial: int) -> list[dict[str, Any]]:
    """Return one text block: its compact JSON has the characters, or its text the tokens.

    Raises `WordingError` where no block is that small.
    """
    if size.unit == "tokens":
        return [{"type": "text", "text": filler(size, serial)}]
    empty = len(compact([{"type": "text", "text": ""}]))
    if size.number < empty:
        raise WordingError(f"the JSON of a text block has {empty} characters or more, not {size}")
    return [{"type": "text", "text": _characters(size.number - empty, serial)}]


def compact(content: object) -> str:
    """Return the JSON that stands for content which is no plain text, as policies measure it."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _characters(count: int, serial: int) -> str:
    words = _words(count // 4 + 1, serial)
    return f"{serial} {' '.join(words)}"[:count]


def _words(count: int, serial: int) -> list[str]:
    """Return words that begin with the digits of `serial`, written in words, and then go round."""
    base = len(_WORDS)
    digits = [serial // base**2 % base, serial // base % base, serial % base]
    start = serial % base
    going_round = range(start, start + count - len(digits))
    return [_WORDS[i % base] for i in [*digits, *going_round]][:count]
