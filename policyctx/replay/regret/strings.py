"""The strings of a text, and its ranges, that must come from somewhere.

Each string (path, id, number, line) has a weight. A weight of 1 shows that the text used what holds
the string; so do two of ½, or eight consecutive characters of a language written without spaces.
A weight of ¼ shows something only beside the same words; see `facts`. What a model writes by itself
(years, round numbers, powers of two, words of a language) weighs nothing.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from http import HTTPStatus
from itertools import accumulate
from typing import NamedTuple, ParamSpec, TypeVar, cast

from policyctx.replay.readers.source import value_of
from policyctx.tokens.encoders import common_words

# Characters of languages that are written without spaces, and Hangul.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_FIRST_CJK = "\u3040"
# So many of them in a row are as telling as a rare word.
GRAM = 6

_PARTING = str.maketrans(dict.fromkeys(set(string.punctuation) - {"_"}, " "))
_ASCII, _UTF_8 = bytes(range(128)), ("utf-8", "surrogatepass")
_ASCII_RUN = re.compile(r"[\x00-\x7f]+")
_LETTER = re.compile(r"\w")
_OTHER_WORD = re.compile(rf"[^\W\x00-\x7f{CJK}]+")
_RUN = re.compile(rf"[{CJK}]{{{GRAM},}}")

# How a patch of many agents begins, and what its lines begin with.
PATCH = "*** Begin Patch"
PATCH_MARK = re.compile(r"^[-+ ]", re.MULTILINE)


def plain(text: str, *, keys: bool = True) -> str:
    """Return what a person would read: of JSON, its keys and values, one a line.

    Without `keys`, only the values.
    """
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


def words(text: str) -> list[str]:
    """Return the words of a text, each as often as it is there; letters, digits and `_`.

    A word with letters outside of ASCII is cut where they begin and end.
    """
    if text.isascii():
        # Most short texts are one word, which need not be cut.
        return [text] if text.isalnum() else text.translate(_PARTING).split()
    found = text.encode("ascii", "replace").decode().translate(_PARTING).split()  # `?` parts words
    if _LETTER.search(text.encode(*_UTF_8).translate(None, _ASCII).decode(*_UTF_8)):
        # A pass over what is not ASCII alone is quicker than one word by word.
        others = _ASCII_RUN.sub("\n", text)
        found += [*_OTHER_WORD.findall(others), *grams(others)]
    return found


def grams(text: str) -> list[str]:
    """Return each `GRAM` characters in a row of a language written without spaces."""
    return [run[i : i + GRAM] for run in _RUN.findall(text) for i in range(len(run) - GRAM + 1)]


def stands_in(wanted: str, text: str) -> bool:
    """Does a text hold a string, and not merely as a part of longer words."""
    return bool(starts_of(wanted, text, most=1))


def starts_of(wanted: str, text: str, *, most: int) -> list[int]:
    """Return where a text holds a string, at most so many places; see `stands_in`."""
    found: list[int] = []
    start = text.find(wanted)
    while start >= 0 and len(found) < most:
        end = start + len(wanted)
        if not (
            (start > 0 and _is_wordy(text[start - 1]) and _is_wordy(text[start]))
            or (end < len(text) and _is_wordy(text[end - 1]) and _is_wordy(text[end]))
        ):
            found.append(start)
        start = text.find(wanted, start + 1)
    return found


def _is_wordy(sign: str) -> bool:
    """May a word go on beside this sign; signs of languages without spaces stand alone."""
    return sign == "_" or (sign < _FIRST_CJK and sign.isalnum())


class Distinct(NamedTuple):
    """A string that tells where a text comes from, and how certainly."""

    text: str
    weight: float
    words: tuple[str, ...]
    """What an index knows it by; see `words`."""


SURE, LIKELY = 1.0, 0.5
# Of a short number or a measure, which shows something only as a fact; see `facts`.
HINT = 0.25
# Of a gram: three that overlap make a sure sign.
_OF_THREE = 0.34

_TOKEN = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![^\W{CJK}])|[^\W{CJK}]+(?:[./\\:@#+~-]+[^\W{CJK}]+)*|(?<![^\s/\"'`=,(])\.[a-z]+(?:-[a-z]+)+|[~.]{{0,2}}/[^\W{CJK}][\w./@+~-]*"
)
_BETWEEN = re.compile(r"[./\\:@#+~-]+")
_PATH_SIGN = re.compile(r"[/\\]")
# What tells a part of a path from a word with a slash beside it, as in `and/or`.
_MARKED = re.compile(r"[^\W\d][._]|_[^\W\d]|[^\W\d]\d|\d[^\W\d]")
_FILE = re.compile(r"[\w+@-]+(?:\.[\w+@-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}")
_NUMBER = re.compile(r"\d+(?:[.,:-]\d+)*")
# `sha256`, `utf8`, `python3`: words of the trade.
_NAMED = re.compile(r"[A-Za-z]+[-_]?\d{1,3}|\d{1,3}[A-Za-z]+")
# A number with its unit: `900px`, `135ms`.
_MEASURE = re.compile(r"\d{2,3}[A-Za-z]{2,}")
# An amount of money: nobody guesses its cents.
_CENTS = re.compile(r"[\d,]*\d\d\.\d\d")
# The record locator of a booking.
_CODE = re.compile(r"(?!\d+\Z)[A-Z\d]{6}")
_VOCABULARY, _KNOWN = "o200k_base", 80_000
# `.some-folder`: a folder of settings.
_HIDDEN = re.compile(r"\.[a-z]+(?:-[a-z]+)+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")
_SENTENCE_END = ".:,;/\\-"
# What has none of these weighs nothing: it is a word, or a mark beside one or behind a sentence.
_TELLING = re.compile(r"[\d@_]|[a-z][A-Z]|[A-Z]{6}|[^\x00-\x7f]|[./\\](?![.:,;/\\-]*\Z)")

# Years, what a server answers, and powers of two.
_FAMILIAR = frozenset(
    {*range(1900, 2101), *HTTPStatus, *(2**power - by for power in range(24) for by in (0, 1))}
)
_SURE_DIGITS, _LIKELY_DIGITS, _HINT_DIGITS = 5, 4, 3
_ID_DIGITS, _ID_LENGTH = 4, 5
_SURE_PARTS, _SURE_LENGTH, _LIKELY_LENGTH = 4, 20, 8
# Longer ones are data that nobody quotes.
_MOST = 256


def distinct_in(said: str) -> tuple[Distinct, ...]:
    """Return what is particular in characters without a space between, in their order."""
    if _TELLING.search(said) is None:  # quick, and true of most
        return ()
    found = [
        one
        for token in _TOKEN.findall(said)
        if len(token) <= _MOST
        for one in _distinct_in(token.rstrip(_SENTENCE_END))
    ]
    if not said.isascii():
        found += (Distinct(gram, _OF_THREE, (gram,)) for gram in grams(said))
    return tuple(found)


def _distinct_in(token: str) -> Iterator[Distinct]:
    """Yield what is particular in a token, as a whole or in its parts: `x.some_long_name`."""
    known = tuple(words(token))
    whole = _weight(token)
    if whole:
        yield Distinct(token, whole, known)
    if whole < SURE and len(known) > 1:
        for part in dict.fromkeys(_BETWEEN.split(token)):
            if part != token and (weight := _weight(part)):
                yield Distinct(part, weight, tuple(words(part)))


def _weight(token: str) -> float:
    if token.isidentifier():  # the quick test: none of the others is one
        return _of_name(token)
    if _NUMBER.fullmatch(token):
        return _of_number(token)
    if "@" in token.strip("@"):
        return SURE
    if _PATH_SIGN.search(token):
        return _of_path(token)
    if _FILE.fullmatch(token) or _HIDDEN.fullmatch(token):
        return _of_file(token)
    return _of_name(token)


def _of_number(token: str) -> float:
    digits = re.sub(r"\D", "", token).strip("0")
    if len(digits) >= _SURE_DIGITS:
        return SURE
    if len(digits) == _LIKELY_DIGITS and _CENTS.fullmatch(token):
        return SURE
    if token.isdigit() and (int(token) in _FAMILIAR or len(digits) < _HINT_DIGITS):
        return 0
    if token.isdigit() and len(digits) == _HINT_DIGITS:
        return HINT
    return LIKELY if len(digits) >= _LIKELY_DIGITS - (not token.isdigit()) else 0


def _of_path(token: str) -> float:
    parts = [part for part in _PATH_SIGN.split(token) if part.strip(".")]
    telling = [
        part
        for part in parts
        if (_MARKED.search(part) or _is_mixed(part)) and not _NAMED.fullmatch(part)
    ]
    if len(parts) <= 1:
        return LIKELY if telling else 0
    return SURE if telling or len(parts) > 2 else 0  # noqa: PLR2004 - `and/or` is no path


def _is_mixed(part: str) -> bool:
    """Are there letters and digits in a part of a path."""
    return any(map(str.isdigit, part)) and any(map(str.isalpha, part))


def _of_file(token: str) -> float:
    """A file's name without its folder may be a name with an attribute just as well."""
    if _HIDDEN.fullmatch(token):
        return LIKELY
    base = token.rpartition(".")[0]
    if re.search(r"[_\d-]", base):
        return SURE if len(token) > _LIKELY_LENGTH else LIKELY
    return LIKELY if base.isalpha() and len(base) >= _LIKELY_LENGTH else 0


def _of_code(token: str) -> float:
    """Letters alone may be a word, and so may letters with digits behind them: `SHA512`."""
    if _NAMED.fullmatch(token):
        return LIKELY
    if token.isalpha():
        return 0 if token.lower() in common_words(_VOCABULARY, _KNOWN) else SURE
    return SURE


def _of_name(token: str) -> float:
    digits = 0 if token.isalpha() else sum(map(str.isdigit, token))
    if _CODE.fullmatch(token) and (weight := _of_code(token)):
        return weight
    if digits and not token.isdigit():
        if _NAMED.fullmatch(token) or len(token) < 4:  # noqa: PLR2004 - `v1.2`
            return HINT if _MEASURE.fullmatch(token) else 0
        is_id = digits >= _ID_DIGITS or (digits == _ID_DIGITS - 1 and len(token) > _ID_LENGTH)
        return SURE if is_id else LIKELY
    if token.startswith("__") or len(token) < _LIKELY_LENGTH:
        return 0
    parts = [part for part in _HUMP.split(token.strip("_")) if part]
    if len(parts) <= 1 or "." in token:
        return 0
    return SURE if len(parts) >= _SURE_PARTS or len(token) >= _SURE_LENGTH else LIKELY


P = ParamSpec("P")
T = TypeVar("T")


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


# A line that is longer than this is data: only what is around a string is read of it.
_LONG_LINE = 400
_AROUND = 120
# Strings that are at most so many lines apart are read at once.
NEAR = 20


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

    def text_of(self, one: Range) -> str:
        """Return what is in a range."""
        return self.text[one.start : one.end]


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
