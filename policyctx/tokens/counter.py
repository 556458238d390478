"""`TokenCounter`: how many tokens a text has, each text counted once."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Protocol

from policyctx.tokens.vocabulary import encoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Beyond this a run without a break costs the encoder quadratic time or makes it panic.
SPLIT_CHARS = 4_096
# What the memo may hold, in characters of text.
MEMO_CHARS = 64 * 1024 * 1024


class TokenCounter(Protocol):
    """Counts the tokens of a text; the same text always has the same count."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 or more; takes any text and never raises."""
        ...


@cache
def counter_for(tokenizer: str) -> TokenCounter:
    """Return the process's counter for a `model.tokenizer`, which holds its memo.

    Nothing is loaded until the first count.
    """
    if tokenizer == "approximate":
        return MemoCounter(lambda text: -(-len(text) // 4))
    return MemoCounter(lambda text: _encoded_length(text, tokenizer))


class MemoCounter:
    """Remembers the count of each text, up to `memo_chars` characters; the oldest go first."""

    def __init__(self, measure: Callable[[str], int], *, memo_chars: int = MEMO_CHARS) -> None:
        self._measure = measure
        self._memo_chars = memo_chars
        self._held = 0
        self._memo: dict[str, int] = {}
        self._changing = threading.Lock()

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; see `TokenCounter`."""
        known = self._memo.get(text)
        if known is None:
            known = self._measure(text)
            self._remember(text, known)
        return known

    def _remember(self, text: str, tokens: int) -> None:
        with self._changing:
            if text not in self._memo:
                self._memo[text] = tokens
                self._held += len(text)
            while self._held > self._memo_chars:
                oldest = next(iter(self._memo))
                del self._memo[oldest]
                self._held -= len(oldest)


def _encoded_length(text: str, tokenizer: str) -> int:
    encode = encoding(tokenizer).encode_ordinary
    return sum(len(encode(piece)) for piece in pieces(text))


def pieces(text: str) -> Iterator[str]:
    """Cut a long text into pieces of at most 4,096 characters, after a newline where there is one.

    A cut can part what would have been one token: measured, +0.07 % at worst on plain text and
    +0.014 % where there are newlines. Texts up to 4,096 characters are counted exactly.
    """
    start = 0
    while len(text) - start > SPLIT_CHARS:
        newline = text.rfind("\n", start, start + SPLIT_CHARS)
        end = start + SPLIT_CHARS if newline < start else newline + 1
        yield text[start:end]
        start = end
    yield text[start:]
