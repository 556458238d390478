"""The kinds of values that a sentence holds, and how each is written."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["characters", "tokens"]

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = rf"(?:{_QUOTED}|`[^`]*`|[^\s\"`,]*[^\s\"`,:])"
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
COUNT_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""The counts that a sentence may have as a word, from 1 on."""
_ORDINAL_WORDS = (
    *("first", "second", "third", "fourth", "fifth"),
    *("sixth", "seventh", "eighth", "ninth", "tenth"),
)
COUNT_WORD = f"(?:{'|'.join(COUNT_WORDS)})"
ORDINAL = rf"(?:\d+(?:st|nd|rd|th)|{'|'.join(_ORDINAL_WORDS)})"
"""A position, such as `2nd` or `second`."""
_BOUND = r"(?:at least |at most |more than |fewer than |less than |under |over |exactly )"
BOUND = rf"{_BOUND}{_NUMBER}"
"""A bound for a number, such as `at least 3`."""
_COUNT = rf"(?:{COUNT_WORD}|{_NUMBER})"
_AMOUNT = rf"(?:no|an?|{_BOUND}?{_COUNT})"
_SIZE = rf"{_NUMBER} (?:characters?|tokens?)"
# Words and quoted texts in any order; what they mean is read by `selecting` and `pieces`.
_PHRASE = rf"(?:[^\"\s]|{_QUOTED})(?:[^\"]|{_QUOTED})*?"
_DURATION = rf"{_NUMBER} (?:seconds?|minutes?|hours?|days?)"
_AND = rf"{_QUOTED}(?:, {_QUOTED})*(?:,? and {_QUOTED})?"

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\"}
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([ntr0"\\]))')


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, or a bound for one: `3`, `at least 3`, `no`."""

    number: float
    bound: str = "exactly"

    def holds_for(self, found: float) -> bool:
        """Is `found` such an amount."""
        return {
            "exactly": found == self.number,
            "at least": found >= self.number,
            "at most": found <= self.number,
            "over": found > self.number,
            "under": found < self.number,
        }[self.bound]

    def __str__(self) -> str:
        number = f"{self.number:,g}" if self.number % 1 else f"{int(self.number):,}"
        return number if self.bound == "exactly" else f"{self.bound} {number}"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a text is: `2,000 tokens`."""

    number: int
    unit: Unit

    def __str__(self) -> str:
        return f"{self.number:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value: the regular expression that finds it, and what becomes of the text."""

    regex: str
    convert: Callable[[str], Any]
    meaning: str
    """What a reader of the step page is told."""


def unquoted(text: str) -> str:
    r"""Return what is between double quotes or backticks, or the bare word itself.

    Between double quotes, `\n`, `\t`, `\r`, `\0`, `\"`, `\\` and `\uXXXX` are what they are in
    JSON; any other backslash is one.
    """
    if text.startswith("`"):
        return text[1:-1]
    if not text.startswith('"'):
        return text
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES[m[2]], text[1:-1])


def quoted_texts(text: str) -> tuple[str, ...]:
    """Return each text between double quotes, in order."""
    return tuple(unquoted(found) for found in re.findall(_QUOTED, text))


def number(text: str) -> float:
    """Return the number written as `2,000` or `0.25`."""
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def count(text: str) -> float:
    """Return the number written as `two` or `2,000`."""
    return COUNT_WORDS.index(text) + 1 if text in COUNT_WORDS else number(text)


def position(text: str) -> int:
    """Return the position written as `second`, `2nd` or `2`, whatever its ending; else 1."""
    if text in _ORDINAL_WORDS:
        return _ORDINAL_WORDS.index(text) + 1
    return int(re.sub(r"\D", "", text) or 1)


def amount(text: str) -> Amount:
    """Return the amount written as `3`, `two`, `no`, `at least 2,000`."""
    if text in {"no", "a", "an"}:
        return Amount(0 if text == "no" else 1)
    words, _, digits = text.rpartition(" ")
    bounds = {"": "exactly", "more than": "over", "fewer than": "under", "less than": "under"}
    return Amount(count(digits), bounds.get(words, words))


def size(text: str) -> Size:
    """Return the size written as `2500 characters` or `1 token`."""
    digits, unit = text.split(" ")
    return Size(int(number(digits)), "tokens" if unit.startswith("token") else "characters")


def duration(text: str) -> float:
    """Return the seconds written as `30 days` or `1 hour`."""
    digits, unit = text.split(" ")
    return number(digits) * _SECONDS[unit.removesuffix("s")]


KINDS = {
    "amount": Kind(_AMOUNT, amount, "`3`, `two`, `no`, `at least 2`, `under 2,000`"),
    "duration": Kind(_DURATION, duration, "`90 seconds`, `1 hour`, `30 days`"),
    "name": Kind(_NAME, unquoted, 'a name, in quotes or without: `Bash`, `"mcp__web__get"`'),
    "names": Kind(_AND, quoted_texts, '`"a"`, or `"a", "b" and "c"`'),
    "number": Kind(_NUMBER, number, "`3`, `2,000`"),
    "phrase": Kind(_PHRASE, str, "words and quoted texts"),
    "size": Kind(_SIZE, size, "`2500 characters`, `3,000 tokens`"),
    "text": Kind(_QUOTED, unquoted, 'a text in double quotes; `\\n`, `\\"`, `\\u5b57` as in JSON'),
}
