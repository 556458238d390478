"""What of a user's text was typed, and what was pasted into it or put there by a program.

What was typed binds; what was pasted is mostly there to be read. It is told by its structure: a
fence of code, a quotation, an element with a compound name, lines in a row that are more signs and
values than words, and all that is longer than anyone types, but for its beginning and its end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# A text of more words than this was pasted, but for what was typed before and after it.
_MOST_TYPED = 400
_TYPED_BEFORE, _TYPED_AFTER = 80, 50
_CHARS_PER_WORD = 8
# The shares of signs, and of words with a value, that printed lines have; and how long a run of
# them was surely pasted.
_MANY_SIGNS, _MANY_VALUES = 0.08, 0.3
_PRINTED_LINES, _PRINTED_CHARS = 6, 600

BULLET = re.compile(r"\s*(?:[-*+•·\u276f>]|\(?\d{1,2}[.)、]|[a-z]\))\s+")
SAYS = re.compile(r"[^\W_]")
_HEADING = re.compile(r"\s*#{1,6}\s")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,200})?>")
_ONLY_TAG = re.compile(r"\s*</?[A-Za-z][\w.-]{0,60}(?:\s[^<>]{0,200})?>\s*")
_SIGNS = re.compile(r"[{}()\[\]<>;=|\\\":/_@$&*+]")
_WITH_VALUE = re.compile(r"[\d=]\S*")


class Line(NamedTuple):
    """A line of a text."""

    text: str
    pasted: bool = False


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines that say something, bullets kept; what programs print comes in runs."""
    run: list[Line] = []
    for line in _marked_lines(text):
        if _is_printed(line.text):
            run.append(line)
            continue
        yield from _printed(run)
        run = []
        yield line
    yield from _printed(run)


def _printed(run: list[Line]) -> Iterator[Line]:
    """Yield lines that look printed: pasted, when there are so many that no one typed them."""
    chars = sum(len(line.text) for line in run)
    long = len(run) >= _PRINTED_LINES or (len(run) > 1 and chars >= _PRINTED_CHARS)
    for line in run:
        yield Line(line.text, pasted=line.pasted or long)


def _is_printed(line: str) -> bool:
    """Whether a line looks like code or what a program prints: signs and values, few words."""
    if BULLET.match(line):
        return False
    if len(_SIGNS.findall(line)) >= _MANY_SIGNS * len(line) or line.startswith(("    ", "\t")):
        return True
    return len(_WITH_VALUE.findall(line)) >= _MANY_VALUES * len(line.split())


def _marked_lines(text: str) -> Iterator[Line]:
    """Yield the lines that say something; pasted are those in a fence, an element, a quotation."""
    fenced = False
    for piece, marked in _outside_and_inside_marks(text):
        for line in piece.split("\n"):
            if line.lstrip().startswith(("```", "~~~")):
                fenced = not fenced
            elif SAYS.search(line) and not _ONLY_TAG.fullmatch(line):
                quoted = line.startswith("> ") or _HEADING.match(line) is not None
                text = _TAG.sub("", line) if marked else line
                if SAYS.search(text):
                    yield Line(text.rstrip(), fenced or marked or quoted)


def _outside_and_inside_marks(text: str) -> Iterator[tuple[str, bool]]:
    """Cut a text where a program's elements begin and end; each piece with whether it is inside."""
    at, inside = 0, False
    for start, end in _marks(text):
        yield text[at:start], inside
        yield text[start:end], True
        at = end
    yield text[at:], inside


def _marks(text: str) -> list[tuple[int, int]]:
    """Return where the outermost elements with a compound name stand, in order."""
    opened: dict[str, list[int]] = {}
    closed: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        name = tag[2]
        if "-" not in name and "_" not in name:
            continue
        if not tag[1]:
            opened.setdefault(name, []).append(tag.start())
        elif opened.get(name):
            closed.append((opened[name].pop(), tag.end()))
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(closed):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    return outermost


def ends_typed(sentences: list[Line]) -> set[int]:
    """Return the positions of the sentences that were typed: all, or the ends of a long text."""
    sizes = [0 if sentence.pasted else _words(sentence.text) for sentence in sentences]
    if sum(sizes) <= _MOST_TYPED:
        return set(range(len(sentences)))
    typed: set[int] = set()
    for order, most in (
        (range(len(sentences)), _TYPED_BEFORE),
        (range(len(sentences))[::-1], _TYPED_AFTER),
    ):
        seen = 0
        for i in order:
            if seen >= most:
                break
            seen += sizes[i]
            typed.add(i)
    return typed


def _words(text: str) -> int:
    """Return about how many words a text has, one without spaces as well."""
    return max(len(text.split()), len(text) // _CHARS_PER_WORD)
