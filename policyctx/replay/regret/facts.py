"""Short facts: numbers that a reply gives beside what is beside them in a removed item.

A number of three digits, a measure or an id may coincide by chance. It is a fact where words that
stand near it in the reply stand near it in the item too, as in `HAT005 costs $166`. These words may
be known: the number is what the call was not sent.
"""

import re
from collections.abc import Sequence
from functools import cache

from policyctx.replay.regret.strings import starts_of
from policyctx.replay.regret.vocabulary import weight_of

# What is so near in a reply, and in an item, belongs to a fact; in characters.
IN_REPLY, IN_ITEM = 100, 200
# So much the words on which both agree weigh.
LEAST = 0.75
_DIGITS = 2
# A number may be in a text more often than is looked at.
_PLACES = 8
# A shorter word with digits in it, such as `v1`, stands everywhere.
_SHORTEST = 4

_WORD = re.compile(r"\w+")


def may_be_fact(text: str) -> bool:
    """Whether a string is a number, or has one."""
    return sum(map(str.isdigit, text)) >= _DIGITS


def fact_in(text: str, reply: str, item: str, starts: Sequence[int]) -> int | None:
    """Return where a string is in an item beside what is beside it in a reply.

    `starts` are its places in the item. None where both agree on too little around it.
    """
    size = len(text)
    said = [_around(reply, start, size, IN_REPLY) for start in starts_of(text, reply, most=_PLACES)]
    for start in starts[:_PLACES]:
        held = _around(item, start, size, IN_ITEM)
        if any(sum(map(_weight, near & held)) >= LEAST for near in said):
            return start
    return None


def _around(text: str, start: int, size: int, by: int) -> frozenset[str]:
    """Return the words around a place in a text, in lower case."""
    parts = text[max(0, start - by) : start], text[start + size : start + size + by]
    return frozenset(word.lower() for part in parts for word in _WORD.findall(part))


@cache
def _weight(word: str) -> float:
    """Return how telling a word beside a number is; other numbers are not."""
    if word.isdigit() or (not word.isalpha() and len(word) < _SHORTEST):
        return 0.0
    return weight_of(word)
