"""Same-word updates: a later value of the same thing, said in the same words, replaces the earlier.

"Tests must finish under 10 minutes", then "Actually, tests must finish under 6 minutes now". Both
have one number with one unit, and the same words except those that only mark a change. One word
more may name another thing, so both stay then, in their order, and no order is lost silently.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.said import Quote
from policyctx.tokens.encoders import CJK

# A number with its unit. Behind "page 12" or "第 3 号" is no unit: such a number names a thing.
_NUMBER = re.compile(
    r"(第\s?)?([$€£¥])?(\d[\d.,:]*\d|\d)\s?(%|°C|(?:ms|s|secs?|seconds?|mins?|minutes?|h|hours?|days?"
    r"|weeks?|months?|years?|[kmgt]i?b|px|mm|cm|m|km|g|kg|words?|lines?|tokens?|characters?|requests?"
    r"|retries|times|copies|users?|people|euros?|dollars?|usd|eur)\b|毫秒|秒|分钟|小时|天|周|元|块|万"
    r"|次|个|人|字|条|倍)?",
    re.IGNORECASE,
)
# What a number without a unit limits, right before it.
_LIMITS = re.compile(
    r"\b(?:cap|limit|max|maximum|min|minimum|budget|timeout)\W*(?:(?:is|to|of|at|be|now)\W+)*$"
    r"|(?:上限|下限|预算)[^\d，。]{0,4}$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
# So many earlier statements of a unit are compared with a new one.
_COMPARED = 50


class _Setting(NamedTuple):
    place: int
    number: str
    words: frozenset[str]
    negated: bool


def told_once(quotes: Sequence[Quote], cues: Cues) -> list[Quote]:
    """Return the quotes without those whose value a later one of the same speaker replaces."""
    old = _replaced(quotes, cues)
    return [one for i, one in enumerate(quotes) if i not in old]


def _replaced(quotes: Iterable[Quote], cues: Cues) -> set[int]:
    found: set[int] = set()
    settings: defaultdict[tuple[bool, str], deque[_Setting]] = defaultdict(
        lambda: deque(maxlen=_COMPARED)
    )
    for place, one in enumerate(quotes):
        numbers = list(_NUMBER.finditer(one.text))
        if len(numbers) != 1 or one.pasted or one.asked or one.text.endswith(("?", "？")):
            continue
        nth, sign, number, unit = numbers[0].groups()
        unit = (sign or unit or "").casefold()
        if nth or not (unit or _LIMITS.search(one.text[: numbers[0].start()])):
            continue
        rest = f"{one.text[: numbers[0].start()]} {one.text[numbers[0].end() :]}"
        new = _Setting(place, number, _words(rest, cues), cues.negations.found_in(rest))
        same = settings[one.user, unit]
        for before in same:
            same_words = bool(new.words) and before.words == new.words
            if same_words and before.number != number and before.negated == new.negated:
                found.add(before.place)
        same.append(new)
    return found


def _words(text: str, cues: Cues) -> frozenset[str]:
    """Return the words of a text but those of revision; of CJK text each pair of characters."""
    bare = cues.revisions.removed_from(text)
    found = set(_WORD.findall(CJK.sub(" ", bare)))
    for run in re.findall(rf"(?:{CJK.pattern})+", bare):
        found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return frozenset(found)
