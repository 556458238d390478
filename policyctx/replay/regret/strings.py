"""The strings of a text, and its ranges, that must come from somewhere.

What is rare: a name or a path with a mark or a digit in it, a number of several digits, and a line.
Of a language written without spaces it is some characters in a row.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple, ParamSpec, TypeVar, cast

from policyctx.replay.readers.source import value_of

# Characters of languages that are written without spaces, and Hangul.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_FIRST_CJK = "\u3040"
# So many of them in a row, digits among them, are as telling as a name.
GRAM = 8
_RUN = re.compile(rf"[\d{_CJK}]{{{GRAM},}}")

# How a patch of many agents begins.
PATCH = "*** Begin Patch"

_SIGNS = re.compile(rf"[{_CJK}]+")
_ASCII = re.compile(r"[\0-\x7f]+")
_TOKEN = re.compile(r"\w[\w./@:-]{3,}\w")
# In most texts, and quicker.
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@:-]{3,}[A-Za-z0-9_]")
_PARTS = re.compile(r"[/.:@]+")
# Letters in a row tell a name from a range of a regular expression.
_NAME = re.compile(r"(?=.*[^\W\d_]{3})(?:(?=.{7}).*(?:_|[a-z][A-Z])|(?=.{8}).*[/.@\d])")
# A hash is also known by its first digits; a number is not.
HASH = re.compile(r"(?=.*\d)(?=.*[a-f])[\da-f]{7,40}")
_SHORT, _DIGITS, _LINE = 5, 3, 30
# Lines, without the file and the number that `nl` and `grep -n` write before them.
_LINES = re.compile(r"^(?:[^\S\n]*(?:[\w./-]+[:-])?\d+[\t\u2192:|-])?(.*)$", re.MULTILINE)
# A test is named after what it tests.
_ENDING = re.compile(r"(?:_test|\.spec|\.test|Test)?(?:\.\w{1,5})?$")
_SEPARATORS = bytes(sign for sign in range(128) if not chr(sign).isalnum())
_SEPARATORS_IN_LINES = _SEPARATORS.replace(b"\n", b"")
P = ParamSpec("P")
T = TypeVar("T")
# A line that is longer than this is data: only what is around a string is read of it.
_LONG_LINE = 400
_AROUND = 120
# Strings that are at most so many lines apart are read at once.
NEAR = 20


def rare_strings(
    text: str, *, keys: bool = True, wanted: frozenset[bytes] | None = None
) -> dict[bytes, str]:
    """Return the rare strings of a text, by what they are without separators and case.

    Without `keys`, the names of the fields of JSON are left out. If `wanted` is given, only
    strings of these are returned.
    """
    read = plain(text, keys=keys)
    runs = list[str]()
    if read.isascii():
        tokens = _ASCII_TOKEN.findall(read)
    elif _SIGNS.search(_ASCII.sub("", read)) is None:
        tokens = _TOKEN.findall(read)
    else:
        tokens, runs = _TOKEN.findall(_SIGNS.sub(" ", read)), _RUN.findall(read)
    said = list[str]()
    for token in dict.fromkeys(tokens):
        parts = _PARTS.split(token)
        said += parts if len(parts) == 1 else (token, *parts)
    long = (line for one in _LINES.findall(read) if len(line := one.strip()) >= _LINE)
    lines = [line for line in long if any(map(str.isalnum, line))]
    found: dict[bytes, str] = {}
    for key, one in zip(_all_bare(said), said, strict=False):
        if (wanted is None or key in wanted) and _is_rare(one):
            found.setdefault(key, one)
    for key, one in zip(_all_bare(lines), lines, strict=False):
        # A line is another string than a name of the same letters.
        if wanted is None or key + b"\n" in wanted:
            found.setdefault(key + b"\n", one)
    # All of them take a hundred times the memory of the text: only the wanted are made.
    for gram in (run[i : i + GRAM] for run in runs for i in range(len(run) - GRAM + 1)):
        if not gram.isdecimal() and (wanted is None or bare(gram) in wanted):
            found[bare(gram)] = gram
    return found


def _is_rare(token: str) -> bool:
    if len(token) < _SHORT:
        return False
    return _NAME.match(token) is not None or sum(map(str.isdigit, token)) >= _DIGITS


def parts_of(text: str) -> Sequence[bytes]:
    """Return the parts of a path without separators and case; none of what is not a path."""
    if " " in text:
        return ()
    telling = [one for one in map(bare, _PARTS.split(_ENDING.sub("", text))) if len(one) > 1]
    return telling if len(telling) > 1 else ()


def bare(text: str) -> bytes:
    """Return a text in lower case without separators; bytes lose them much quicker than strings."""
    return text.lower().encode("utf-8", "surrogatepass").translate(None, _SEPARATORS)


def _all_bare(lines: Sequence[str]) -> Sequence[bytes]:
    """Return each of some texts of one line as `bare` does; together they are quicker."""
    joined = "\n".join(lines).lower().encode("utf-8", "surrogatepass")
    return joined.translate(None, _SEPARATORS_IN_LINES).split(b"\n")


def plain(text: str, *, keys: bool = True) -> str:
    """Return what a person would read: of JSON, its values and its `keys`, one a line."""
    if not text.startswith(("{", "[")) or not text.rstrip().endswith(("}", "]")):
        return text
    try:
        value = value_of(text)
    except ValueError:
        return text
    found: list[str] = []
    waiting: list[object] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key, inner in reversed(value.items()):
                waiting += (inner, key) if keys else (inner,)
        elif isinstance(value, list):
            waiting += reversed(value)
        elif value is not None and not isinstance(value, bool):
            found.append(str(value))
    return "\n".join(found)


def start_of(wanted: str, text: str, *, whole: bool = True) -> int:
    """Return where a text first holds a string, not as a part of longer words; else -1.

    If not `whole`, a word may go on behind it.
    """
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not (
            (start > 0 and _is_wordy(text[start - 1]) and _is_wordy(text[start]))
            or (whole and end < len(text) and _is_wordy(text[end - 1]) and _is_wordy(text[end]))
        ):
            break
        start = text.find(wanted, start + 1)
    return start


def _is_wordy(sign: str) -> bool:
    """May a word go on beside this sign; signs of languages without spaces stand alone."""
    return sign == "_" or (sign < _FIRST_CJK and sign.isalnum())


class Memo:
    """Functions that find the same for the same arguments, each computed once.

    A policy decides which texts of a recording are compared, and not what is in them.
    """

    def __init__(self) -> None:
        self._known: dict[Callable[..., object], Callable[..., object]] = {}

    def of(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a function that remembers what it found; its arguments are hashable."""
        if function not in self._known:
            self._known[function] = cache(function)
        return cast("Callable[P, T]", self._known[function])


class Range(NamedTuple):
    """A part of an item's text, in lines and in characters."""

    first: int
    """The number of its first line; the first line of the item has the number 1."""
    last: int
    """The number of its last line."""
    start: int
    """The position of its first character, from 0 on."""
    end: int
    """The position behind its last character."""


class Lines:
    """The lines of a text, and where each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)][:-1]
        # How many blank lines there are up to each line.
        self._blank = list(accumulate(not line.strip() for line in self.lines))

    def number(self, at: int) -> int:
        """Return the number, from 1 on, of the line in which a character stands."""
        return bisect_right(self._starts, at)

    def whole(self) -> Range:
        """Return the range of the whole text."""
        return Range(1, len(self.lines), 0, len(self.text))

    def between(self, first: int, last: int) -> Range:
        """Return the range from one line to another, both included and counted from 1 on."""
        return Range(
            first, last, self._starts[first - 1], self._starts[last - 1] + len(self.lines[last - 1])
        )

    def block_of(self, one: Range) -> tuple[int, int]:
        """Return what ranges have in common whose lines have no blank line between them."""
        return self._blank[one.first - 1], self._blank[one.last - 1]

    def around(self, start: int, end: int) -> Range:
        """Return the range to be read for some characters: their lines, or a part of a long one."""
        first, last = self.number(start), self.number(max(start, end - 1))
        lines = self.between(first, last)
        if lines.end - lines.start <= max(_LONG_LINE, 2 * (end - start)):
            return lines
        return Range(first, last, max(lines.start, start - _AROUND), min(lines.end, end + _AROUND))

    def joined(self, ranges: Iterable[Range]) -> tuple[Range, ...]:
        """Return ranges in their order, those that overlap or stand near each other as one."""
        found: list[Range] = []
        for one in sorted(ranges, key=lambda one: one.start):
            last = found[-1] if found else None
            if last is not None and self._is_near(last, one):
                end = max(last.end, one.end)
                found[-1] = Range(last.first, max(last.last, one.last), last.start, end)
            else:
                found.append(one)
        return tuple(found)

    @staticmethod
    def _is_near(one: Range, other: Range) -> bool:
        """May two ranges be read at once; within one long line characters decide."""
        if other.start - one.end <= _LONG_LINE:
            return True
        return one.last < other.first <= one.last + NEAR


def without(ranges: Iterable[Range], had: Sequence[Range]) -> list[tuple[int, int]]:
    """Return the characters of some ranges that other ranges do not have, as start and end."""
    found = [(one.start, one.end) for one in ranges]
    for other in had:
        found = [
            part
            for start, end in found
            for part in ((start, min(end, other.start)), (max(start, other.end), end))
            if part[0] < part[1]
        ]
    return found
