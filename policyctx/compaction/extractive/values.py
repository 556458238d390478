"""Exact values in a text: paths, ids, numbers, names in code, dates, commands, what is quoted.

All that no one can guess is one, a number of one digit as well; whether it is so particular that it
tells where a text comes from is another question.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,120})\"|“([^”\n]{1,120})”|「([^」\n]{1,120})」"
)
# The characters that a value may end with, and those that it has before that only. Letters are
# those of ASCII, so that `用8080端口` has one.
_LAST, _INSIDE = r"A-Za-z0-9_/%*", r"~.\\@:#$€£¥+&?=-"
_CHAR = f"[{_LAST}{_INSIDE}]"
# A word like most, with what signs there are at its end.
_PLAIN = rf"[A-Za-z][a-z]*+[{_INSIDE}]*+(?![{_LAST}])"
# A run of such characters that is no plain word, with the commas of its thousands.
_TOKEN = re.compile(rf"(?<!{_CHAR})(?!{_PLAIN}){_CHAR}*(?:(?<=\d),(?=\d{{3}}){_CHAR}*)*[{_LAST}]")
# Numbers in CJK numerals, before what they count; one alone is an article more often than a number.
_CJK_NUMERALS = "零二两三四五六七八九十百千万半"
_CJK_NUMBER = re.compile(
    rf"(?:周|星期)[一二三四五六日天]|[{_CJK_NUMERALS}][一{_CJK_NUMERALS}]*(?=[点天个小分秒米次月年号元块人页行条倍周])"
)
# Without any of these there is no value: true of most sentences. The first characters by themselves
# make the search fast.
_HINT = re.compile(
    rf"(?=[周星{_CJK_NUMERALS}\d/\\_@`\"“「.A-Z-])"
    rf"(?:{_CJK_NUMBER.pattern}|[\d/\\_@`\"“「]|\.[A-Za-z]|(?<=[a-z])[A-Z]|--)"
)
_NUMBER = re.compile(r"[#$€£¥v+-]?\d[\d.,:/-]*(?:[A-Za-z%]{0,3})")
_INNER_DOT = re.compile(r"[A-Za-z0-9_]\.[A-Za-z0-9_]*[A-Za-z]")
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_WORD_AFTER = re.compile(r"\s?([A-Za-z]+|[\u3400-\u9fff\uac00-\ud7af\u3040-\u30ff])")
_WORD_BEFORE = re.compile(r"([A-Za-z]+|[\u3400-\u9fff\uac00-\ud7af\u3040-\u30ff])\s?$")
_SHORTEST = 4

NUMBER, PATH, NAME, QUOTED = "number", "path", "name", "quoted"


class Value(NamedTuple):
    """An exact value and its place in the text, in characters."""

    text: str
    start: int
    end: int
    kind: str
    """`number`, `path`, `name` (an identifier or an option), or `quoted`."""

    def neighbours(self, text: str) -> frozenset[str]:
        """Return the word before and the word after, in lower case: the unit of a number."""
        after = _WORD_AFTER.match(text, self.end)
        before = _WORD_BEFORE.search(text, max(0, self.start - 30), self.start)
        return frozenset(found[1].lower() for found in (before, after) if found)


def values_in(text: str) -> tuple[Value, ...]:
    """Return the exact values in the text, in order; what is quoted is one, without its quotes."""
    found: list[Value] = []
    if _HINT.search(text) is None:
        return ()
    at = 0
    for quoted in _QUOTED.finditer(text):
        found += _bare(text, at, quoted.start())
        inner = next(group for group in quoted.groups() if group is not None)
        kind = _kind_of(inner) or QUOTED
        start = quoted.start() + 1
        found.append(Value(inner, start, start + len(inner), kind))
        at = quoted.end()
    found += _bare(text, at, len(text))
    return tuple(found)


def _bare(text: str, start: int, end: int) -> Iterator[Value]:
    for number in () if text.isascii() else _CJK_NUMBER.finditer(text, start, end):
        yield Value(number[0], number.start(), number.end(), NUMBER)
    for token in _TOKEN.finditer(text, start, end):
        word = token[0]
        begin = token.start()
        bare = word.lstrip("=:?&.") if word[0] in "=:?&" else word
        begin += len(word) - len(bare)
        if kind := _kind_of(bare):
            yield Value(bare, begin, begin + len(bare), kind)


def _kind_of(word: str) -> str | None:
    """Say what kind of value a word is, None for a word like any other."""
    if " " in word:
        return None
    if _NUMBER.fullmatch(word):
        return NUMBER
    if ("/" in word or "\\" in word) and len(word) >= 2 and not _is_alternative(word):  # noqa: PLR2004
        return PATH
    if _INNER_DOT.search(word) and len(word) >= _SHORTEST:
        return PATH
    named = "_" in word.strip("_*") or "@" in word or word.startswith("--")
    if named or any(map(str.isdigit, word)) or _CAMEL.search(word):
        return NAME
    return None


def _is_alternative(word: str) -> bool:
    """Is this two words with a stroke between them, such as `and/or`."""
    first, _, second = word.partition("/")
    return first.isalpha() and second.isalpha() and len(word) < 2 * _SHORTEST
