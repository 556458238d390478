"""Excerpts: the beginning and the end of a text that its placeholder shows.

A line ends with a newline (U+000A), which a carriage return may precede. Nothing else ends one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyctx.policy.models.placeholder import Extent, Placeholder
    from policyctx.tokens.counter import TokenCounter

_CUT = "…"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# How many characters a token is taken for at first; about what it has in prose.
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a text, and how much of it is not.

    Where no line was cut or numbered, `head` is a prefix of the text and `tail` a suffix of what
    comes after it.
    """

    head: str
    tail: str
    omitted_lines: int
    """Lines of which nothing is shown."""
    omitted_chars: int
    """Code points that are not shown, those hidden in cut lines among them."""


def excerpt(text: str, wording: Placeholder, counter: TokenCounter) -> Excerpt:
    """Return the head and the tail of `text` that `wording` asks for; one not asked for is empty.

    Both measure the text itself; the marks of cut lines and the numbers come on top. The head has
    precedence: the tail is taken from what it leaves.

    `lines: N` is the first or last N lines, each with the newline that ends it; `chars: N` is N
    code points. `tokens: N` is at most N tokens by `counter`, where one code point more would be
    more than N. A few more than one may have N tokens again, since a whole word can have fewer
    tokens than a part of it. A code point is never cut; a sign made of several may be.

    `max_line_chars` leaves so many code points of what is shown of a line, then `…`; the newline
    stays. `line_numbers` puts a line's number in the whole text before it, from 1, as wide as
    the largest number shown, and a tab; a line of which a part is shown has its number too.

    The time grows with what is shown, and with one look for newlines through the rest.
    """
    end = _head_end(text, wording.head, counter)
    start = _tail_start(text, end, wording.tail, counter)
    head_lines, tail_lines = line_count(text[:end]), line_count(text[start:])
    before_tail = text.count("\n", 0, start) if tail_lines else line_count(text)
    width = 0
    if wording.line_numbers:
        width = len(str(before_tail + tail_lines if tail_lines else head_lines))
    head, hidden_in_head = _shown(text[:end], wording.max_line_chars, 1, width)
    tail, hidden_in_tail = _shown(text[start:], wording.max_line_chars, before_tail + 1, width)
    return Excerpt(
        head=head,
        tail=tail,
        omitted_lines=max(before_tail - head_lines, 0),
        omitted_chars=start - end + hidden_in_head + hidden_in_tail,
    )


def line_count(text: str) -> int:
    """Return the number of lines; the last one needs no newline to be one."""
    return text.count("\n") + (text[-1:] not in {"", "\n"})


def _head_end(text: str, extent: Extent | None, counter: TokenCounter) -> int:
    """Where the head ends."""
    if extent is None:
        return 0
    if extent.tokens is not None:
        return len(counter.truncate(text, extent.tokens))
    if extent.chars is not None:
        return min(extent.chars, len(text))
    end = 0
    for _ in range(extent.lines or 0):
        newline = text.find("\n", end)
        if newline < 0:
            return len(text)
        end = newline + 1
    return end


def _tail_start(text: str, end: int, extent: Extent | None, counter: TokenCounter) -> int:
    """Where the tail starts: nowhere before `end`, where the head ends."""
    size, left = len(text), len(text) - end
    if extent is None:
        return size
    if extent.tokens is not None:
        return size - len(counter.truncate(text[end:], extent.tokens, end=True))
    if extent.chars is not None:
        return size - min(extent.chars, left)
    start = size
    for _ in range(extent.lines or 0):
        # The newline right before `start` ends the line that is looked for.
        start = text.rfind("\n", end, max(start - 1, end)) + 1
        if start <= end:
            return end
    return start


def _shown(part: str, max_line_chars: int | None, first: int, width: int) -> tuple[str, int]:
    """Return the part with lines cut, and numbered from `first`, and how much the cuts hide.

    A `width` of 0 is no numbers.
    """
    if max_line_chars is None and not width:
        return part, 0
    lines, hidden = [], 0
    for number, match in enumerate(_LINE.finditer(part), first):
        line = match.group()
        ending = next(ending for ending in ("\r\n", "\n", "") if line.endswith(ending))
        over = len(line) - len(ending) - (max_line_chars or len(line))
        if over > 0:
            line = f"{line[:max_line_chars]}{_CUT}{ending}"
            hidden += over
        lines.append(f"{number:>{width}}\t{line}" if width else line)
    return "".join(lines), hidden
