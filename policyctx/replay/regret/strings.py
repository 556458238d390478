"""What in a text is so particular that it must come from somewhere: paths, ids, numbers, lines.

Each has a weight: 1 is enough to say that the text drew on what holds it, two of ½ are as well,
and so are eight characters in a row of a language written without spaces.
What a model writes of its own accord (years, round numbers, words of a language) weighs nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from policyctx.replay.regret.words import CJK, grams, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # May a string with these words come from what was lost.
    MayCome: TypeAlias = Callable[[Sequence[str]], bool]


class Distinct(NamedTuple):
    """A string that tells where a text comes from, and how surely."""

    text: str
    weight: float
    words: tuple[str, ...]
    """What an index knows it by; see `words`."""


SURE, LIKELY = 1.0, 0.5
# Of a gram: three that overlap make a sure sign.
_OF_THREE = 0.34

_TOKEN = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![^\W{CJK}])|[^\W{CJK}]+(?:[./\\:@#+~-]+[^\W{CJK}]+)*|[~.]{{0,2}}/[^\W{CJK}][\w./@+~-]*"
)
_BETWEEN = re.compile(r"[./\\:@#+~-]+")
_PATH_SIGN = re.compile(r"[/\\]")
# What tells a part of a path from a word with a slash beside it, as in `and/or`.
_MARKED = re.compile(r"[^\W\d][._]|_[^\W\d]|[^\W\d]\d|\d[^\W\d]")
_FILE = re.compile(r"[\w+@-]+(?:\.[\w+@-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}")
_NUMBER = re.compile(r"\d+(?:[.,:-]\d+)*")
# `sha256`, `utf8`, `python3`: words of the trade.
_NAMED = re.compile(r"[A-Za-z]+[-_]?\d{1,3}|\d{1,3}[A-Za-z]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")
_SENTENCE_END = ".:,;/\\-"
# What has none of these weighs nothing: it is a word, or a mark beside one or behind a sentence.
_TELLING = re.compile(r"[\d@_]|[a-z][A-Z]|[^\x00-\x7f]|[./\\](?![.:,;/\\-]*\Z)")

_YEARS = range(1900, 2101)
_SURE_DIGITS, _LIKELY_DIGITS = 5, 4
_ID_DIGITS, _ID_LENGTH = 4, 5
_SURE_PARTS, _SURE_LENGTH, _LIKELY_LENGTH = 4, 20, 8
# Longer ones are data that nobody quotes.
_MOST = 256


def may_be_distinct(said: str) -> bool:
    """May there be anything particular in characters without a space between; quick to say."""
    return _TELLING.search(said) is not None


def tokens_in(said: str) -> list[str]:
    """Return what stands in such characters by itself, without the marks around it."""
    found = _TOKEN.findall(said)
    return [token.rstrip(_SENTENCE_END) for token in found if len(token) <= _MOST]


def distinct_in(token: str, may_come: MayCome) -> Iterator[Distinct]:
    """Yield what is particular in a token, as a whole or in its parts: `x.some_long_name`.

    Only strings that `may_come` from where their words stand are weighed.
    """
    known = tuple(words(token))
    may_be = may_come(known)
    if len(known) == 1 and not may_be:
        return
    whole = _weight(token)
    if whole and may_be:
        yield Distinct(token, whole, known)
    if whole < SURE and len(known) > 1:
        for part in dict.fromkeys(_BETWEEN.split(token)):
            known = tuple(words(part))
            if part != token and may_come(known) and (weight := _weight(part)):
                yield Distinct(part, weight, known)


def distinct_grams(said: str, may_come: MayCome) -> Iterator[Distinct]:
    """Yield the grams of languages without spaces; see `distinct_in`."""
    for gram in grams(said):
        if may_come((gram,)):
            yield Distinct(gram, _OF_THREE, (gram,))


def _weight(token: str) -> float:
    if token.isidentifier():  # the quick test: none of the others is one
        return _of_name(token)
    if _NUMBER.fullmatch(token):
        return _of_number(token)
    if "@" in token.strip("@"):
        return SURE
    if _PATH_SIGN.search(token):
        return _of_path(token)
    if _FILE.fullmatch(token):
        return _of_file(token)
    return _of_name(token)


def _of_number(token: str) -> float:
    digits = re.sub(r"\D", "", token).strip("0")
    if len(digits) >= _SURE_DIGITS:
        return SURE
    if token.isdigit() and (int(token) in _YEARS or len(digits) < _LIKELY_DIGITS):
        return 0
    return LIKELY if len(digits) >= _LIKELY_DIGITS - (not token.isdigit()) else 0


def _of_path(token: str) -> float:
    parts = [part for part in _PATH_SIGN.split(token) if part.strip(".")]
    telling = [part for part in parts if _MARKED.search(part) or _is_mixed(part)]
    if len(parts) < 2:  # noqa: PLR2004 - a path has two parts
        return LIKELY if telling else 0
    return SURE if telling or len(parts) > 2 else 0  # noqa: PLR2004 - `and/or` is no path


def _is_mixed(part: str) -> bool:
    """Are there letters and digits in a part of a path."""
    return any(map(str.isdigit, part)) and any(map(str.isalpha, part))


def _of_file(token: str) -> float:
    """A file's name without its folder may be a name with an attribute just as well."""
    base = token.rpartition(".")[0]
    if re.search(r"[_\d-]", base):
        return SURE if len(token) > _LIKELY_LENGTH else LIKELY
    return LIKELY if base.isalpha() and len(base) >= _LIKELY_LENGTH else 0


def _of_name(token: str) -> float:
    digits = 0 if token.isalpha() else sum(map(str.isdigit, token))
    if digits and not token.isdigit():
        if _NAMED.fullmatch(token) or len(token) < 4:  # noqa: PLR2004 - `v1.2`
            return 0
        is_id = digits >= _ID_DIGITS or (digits == _ID_DIGITS - 1 and len(token) > _ID_LENGTH)
        return SURE if is_id else LIKELY
    if token.startswith("__") or len(token) < _LIKELY_LENGTH:
        return 0
    parts = [part for part in _HUMP.split(token.strip("_")) if part]
    if len(parts) < 2 or "." in token:  # noqa: PLR2004 - a plain word
        return 0
    return SURE if len(parts) >= _SURE_PARTS or len(token) >= _SURE_LENGTH else LIKELY
