"""What measures texts: tiktoken with the shipped vocabularies, toktok where it says the same.

`measure_for` gives a function from texts to their counts; it loads nothing before its first call.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TypeAlias

from policyctx.tokens.splitting import SPLIT_CHARS, pieces
from policyctx.tokens.vocabulary import encoding

# From texts to the tokens of each, in their order.
Measure: TypeAlias = Callable[[Sequence[str]], list[int]]


def measure_for(tokenizer: str, *, fast: bool | None = None) -> Measure:
    """Return what counts texts for a `model.tokenizer`.

    `fast` says whether toktok counts what it can; by default it does where it is installed. The
    counts are the same with it and without.
    """
    if tokenizer == "approximate":
        return approximate
    if find_spec("toktok") is not None if fast is None else fast:
        return lambda texts: _fast_counts(texts, tokenizer)
    return lambda texts: exact_counts(texts, tokenizer)


def approximate(texts: Sequence[str]) -> list[int]:
    """Count a token for every four characters begun."""
    return [-(-len(text) // 4) for text in texts]


def exact_counts(texts: Sequence[str], tokenizer: str) -> list[int]:
    """Count with tiktoken; see `pieces` for texts of more than 16,384 characters.

    Names of special tokens are plain text, and what UTF-8 cannot carry counts as U+FFFD.
    """
    encode = encoding(tokenizer).encode_ordinary
    return [
        sum(len(encode(piece)) for piece in pieces(text))
        if len(text) > SPLIT_CHARS
        else len(encode(text))
        for text in texts
    ]


def _fast_counts(texts: Sequence[str], tokenizer: str) -> list[int]:
    """Count with toktok, and with tiktoken the texts on which the two may differ."""
    import toktok  # type: ignore[import-untyped]  # noqa: PLC0415 - only when a count is needed

    owners: list[int] = []
    parts: list[str] = []
    left: list[int] = []
    for i, text in enumerate(texts):
        if not text.isascii() and _may_differ(text):
            left.append(i)
            continue
        own = pieces(text) if len(text) > SPLIT_CHARS else (text,)
        parts.extend(own)
        owners.extend([i] * (len(parts) - len(owners)))
    counts = [0] * len(texts)
    for i, tokens in zip(owners, toktok.batch_count(parts, tokenizer, threads=1), strict=True):
        counts[i] += tokens
    if left:
        for i, tokens in zip(left, exact_counts([texts[i] for i in left], tokenizer), strict=True):
            counts[i] = tokens
    return counts


def _may_differ(text: str) -> bool:
    """Say whether toktok may refuse this text or see it otherwise than tiktoken.

    Each library has the letters of its own version of Unicode, so what this Python's version has
    not assigned is left to tiktoken. toktok refuses surrogates, and versions of it have taken the
    long s after an apostrophe for an s.
    """
    signs = text.replace("\n", "").replace("\t", "").replace("\r", "")
    if signs.isprintable():  # the quick test: what is not assigned is not printable
        return _LONG_S in signs
    return _unsettled().search(text) is not None or any(
        unicodedata.category(sign) == "Cn" for sign in set(_BEYOND.findall(text))
    )


_LONG_S = "\u017f"
# Searched by itself: a class of signs is only quick where all are in the first plane.
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


@cache
def _unsettled() -> re.Pattern[str]:
    signs = (chr(code) for code in range(0x10000))
    unsettled = (s for s in signs if s == _LONG_S or unicodedata.category(s) in {"Cn", "Cs"})
    return re.compile(f"[{re.escape(''.join(unsettled))}]")
