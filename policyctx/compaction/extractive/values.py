"""Exact values in a text: what nobody can guess, such as paths, ids, numbers, dates, quotations."""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,120})\"|“([^”\n]{1,120})”|「([^」\n]{1,120})」"
)
_CJK_NUMBER = re.compile(
    "(?:周|星期)[一二三四五六日天]"
    "|(?:[二两三四五六七八九][十百千万亿]|十[一二两三四五六七八九])[零一二两三四五六七八九十百千万亿半]*"
    "|[零二两三四五六七八九十百千万亿半]+(?=[点天个小分秒米次月年号元块人页行条倍周])"
)
_TOKEN = re.compile(r"[A-Za-z0-9_/%*~.\\@:#$€£¥+&?=,-]+")
# A text without any of these has no value, which is true of most sentences.
_HINT = re.compile(rf"[\d/\\_@`\"“「]|\.[A-Za-z]|[a-z][A-Z]|--|{_CJK_NUMBER.pattern}")
_PATH = re.compile(r"[^/\\]*[/\\].+|\w+\.\w*[A-Za-z]")
_ALTERNATIVE = re.compile(r"[A-Za-z]{1,6}/[A-Za-z]{1,6}")
_NAMED = re.compile(r".*(?:\w_\w|@|\d|[a-z0-9][A-Z])|--\w")
NAME = re.compile(
    r"(?<=[a-z,;:] )[A-Z][\w'-]+|(?<=[\u3400-\u9fff，：、“「])\s?[A-Z][\w-]+|“[^”]+”|「[^」]+」"
)
"""A name in the middle of a sentence, or a word in Latin letters among others."""


def values_in(text: str) -> list[str]:
    """Return the exact values in the text, in order; what is quoted is one, without its quotes."""
    if _HINT.search(text) is None:
        return []
    found: list[str] = []
    at = 0
    for quoted in _QUOTED.finditer(text):
        found += _bare(text[at : quoted.start()])
        found.append(next(group for group in quoted.groups() if group is not None))
        at = quoted.end()
    found += _bare(text[at:])
    return found


def _bare(text: str) -> Iterator[str]:
    if not text.isascii():
        yield from _CJK_NUMBER.findall(text)
    for token in _TOKEN.findall(text):
        word = token.strip(".,:;=?&-+") if not token.startswith("--") else token.rstrip(".,:;=?")
        is_path = _PATH.fullmatch(word) and not _ALTERNATIVE.fullmatch(word)
        if word and (is_path or _NAMED.match(word)):
            yield word
