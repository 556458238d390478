"""Texts that look like what tools return, and pack as well as those of recorded sessions.

A generated text has new lines, and lines that repeat an earlier one with another number; the share
of new lines decides how well it packs.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from random import Random

_SYLLABLES = """
an ar ba ber bi cal co cor de den di du en er fa fi for ga ge gra ha hi in ka ko la le li lo ma me
mi mo na ne no o pa per pi po qua ra re ri ro sa se si so ta te ti to tra u un va ve vi
"""
_SHORT = """
a all and are as at be by can for from has have if in is it not of on or that the then this to was
when which with you
"""
_NUMBER = re.compile(r"\d+")
KINDS = ("code", "json", "listing", "log", "prose")
_WORDS = 4_000
_LATEST = 200


def _vocabulary() -> tuple[str, ...]:
    chance, syllables = Random(5), _SYLLABLES.split()  # noqa: S311 - words to measure with
    return tuple(
        "".join(chance.choices(syllables, k=chance.randrange(2, 5))) for _ in range(_WORDS)
    )


_VOCABULARY = _vocabulary()
_COMMON = _SHORT.split()


def text_of(chance: Random, kind: str, chars: int, fresh: float) -> str:
    """Return a text of a kind and a length, with a share of lines that repeat no earlier one."""
    if chars <= 0:
        return ""
    if kind == "json":
        return _document(chance, chars, fresh)
    return "\n".join(_lines(chance, _LINES[kind], chars, fresh))[:chars]


def words(chance: Random, chars: int) -> str:
    """Return sentences, as people and models write them."""
    return text_of(chance, "prose", max(1, chars), 1.0)


def packing(text: str) -> float:
    """Return the bytes of a text over those that zlib packs it into."""
    raw = text.encode("utf-8", "replace")
    return len(raw) / len(zlib.compress(raw, 6))


def kind_of(text: str) -> str:
    """Return the kind of a recorded text, by its look."""
    start = text.lstrip()[:1]
    if start in {"{", "["} and _is_json(text):
        return "json"
    lines = text.splitlines()[:40] or [""]
    marks = {
        "log": re.compile(r"\d\d:\d\d|\b(?:INFO|WARN|ERROR|DEBUG|PASS|FAIL|ok)\b|\bError\b"),
        "listing": re.compile(r"^\S*/\S+$|^[-dl][rwx-]{9}|^\S+:\d+:"),
        "code": re.compile(
            r"^\s*\d+[→\t|]|[;{}]\s*$|^\s*(?:def|class|import|return|if|for|const)\b"
        ),
    }
    shares = {
        kind: sum(bool(mark.search(line)) for line in lines) / len(lines)
        for kind, mark in marks.items()
    }
    best = max(shares, key=lambda kind: shares[kind])
    return best if shares[best] > _ENOUGH else "prose"


_ENOUGH = 0.25


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def calibrated(kinds: Mapping[str, float], chars: int, ratio: float) -> float:
    """Return the share of new lines with which texts of a length pack as well as `ratio` says."""
    low, high = 0.02, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        if _mean_packing(kinds, chars, middle) > ratio:
            low = middle
        else:
            high = middle
    return round((low + high) / 2, 3)


def _mean_packing(kinds: Mapping[str, float], chars: int, fresh: float) -> float:
    found = 0.0
    for kind, share in kinds.items():
        of_kind = (packing(text_of(Random(seed), kind, chars, fresh)) for seed in range(4))  # noqa: S311
        found += share * sum(of_kind) / 4
    return found


def _lines(chance: Random, line: Callable[[Random], str], chars: int, fresh: float) -> list[str]:
    made: list[str] = []
    missing = chars
    while missing > 0:
        if made and chance.random() >= fresh:
            earlier = made[-1 - int(chance.random() * min(len(made), _LATEST))]
            made.append(_NUMBER.sub(str(int(chance.random() * 9_999)), earlier, count=1))
        else:
            made.append(line(chance))
        missing -= len(made[-1]) + 1
    return made


def _document(chance: Random, chars: int, fresh: float) -> str:
    """Return a JSON array of objects with the same keys, as a service returns rows."""
    keys = [_word(chance) for _ in range(6)]
    rows: list[str] = []
    missing = chars - 2
    while missing > 0:
        if rows and chance.random() >= fresh:
            earlier = rows[int(chance.random() * len(rows))]
            rows.append(_NUMBER.sub(str(int(chance.random() * 9_999)), earlier, count=1))
        else:
            values = (_value(chance) for _ in keys)
            rows.append(json.dumps(dict(zip(keys, values, strict=True))))
        missing -= len(rows[-1]) + 2
    return f"[{', '.join(rows)}]"


def _value(chance: Random) -> object:
    form = int(chance.random() * 3)
    if form == 0:
        return int(chance.random() * 99_999)
    return _word(chance) if form == 1 else f"{_word(chance)} {_word(chance)} {_word(chance)}"


def _word(chance: Random) -> str:
    # A few words are used often and most are used seldom, as in every text.
    return _VOCABULARY[int(chance.random() ** 3 * _WORDS)]


def _code(chance: Random) -> str:
    one, two, three = _word(chance), _word(chance), _word(chance)
    number, indent = int(chance.random() * 999), "    " * int(chance.random() * 4)
    form = int(chance.random() * 5)
    if form == 0:
        return f"{indent}{one}_{two} = self.{three}.{two}({one}={number})"
    if form == 1:
        return f"{indent}if {one}.{two} > {number} and not {three}:"
    if form == 2:  # noqa: PLR2004 - forms are numbered
        return f'{indent}raise {one.title()}Error(f"{two} {three}: {{{one}}}")'
    if form == 3:  # noqa: PLR2004
        return f"{indent}# {one.title()} {two} the {three} of {number} items."
    return f"def {one}_{two}({three}: str, *, {two}: int = {number}) -> {one.title()}:"


def _log(chance: Random) -> str:
    level = ("INFO", "INFO", "INFO", "DEBUG", "WARNING", "ERROR")[int(chance.random() * 6)]
    at = f"{int(chance.random() * 24):02}:{int(chance.random() * 60):02}"
    return (
        f"2026-03-0{1 + int(chance.random() * 9)}T{at}:07Z {level} {_word(chance)}.{_word(chance)}:"
        f" {_word(chance)} {_word(chance)} id={int(chance.random() * 2**40):x}"
        f" took {int(chance.random() * 5_000)} ms"
    )


def _listing(chance: Random) -> str:
    path = f"src/{_word(chance)}/{_word(chance)}_{_word(chance)}.py"
    return f"{path}:{int(chance.random() * 900)}:    {_word(chance)}({_word(chance)})"


def _prose(chance: Random) -> str:
    count = 6 + int(chance.random() * 14)
    chosen = (
        _word(chance) if chance.random() < 0.6 else _COMMON[int(chance.random() * len(_COMMON))]  # noqa: PLR2004
        for _ in range(count)
    )
    return " ".join(chosen).capitalize() + "."


_LINES: Mapping[str, Callable[[Random], str]] = {
    "code": _code,
    "listing": _listing,
    "log": _log,
    "prose": _prose,
}
