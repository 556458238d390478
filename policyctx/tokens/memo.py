"""`MemoCounter`: counts each text once, and remembers what it counted within a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.tokens.bounds import Bounds, byte_bounds
from policyctx.tokens.request_size import request_tokens
from policyctx.tokens.truncating import truncated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policyctx.tokens.blocks import Message
    from policyctx.tokens.encoders import Measure
    from policyctx.tokens.provider_models import ProviderModel

MEMO_BYTES = 64 * 1024 * 1024

# What an entry takes beside its text's characters: the string's head, the count, the links.
_ENTRY_BYTES = 200
# CPython takes 1, 2 or 4 bytes for each character of a text; only the first is known at once.
_WIDE_CHAR_BYTES = 4


@dataclass(frozen=True, slots=True)
class MemoStats:
    """What a counter has been asked since it was made, and what it holds now.

    `hits` are the counts answered from memory, `misses` the texts that were measured. `held_bytes`
    is the memory of what is remembered, a non-ASCII character taken for 4 bytes. `estimated` are
    the misses counted locally though the policy asks for the provider's count, and `problem` says
    what kept the last of them from it.
    """

    hits: int = 0
    misses: int = 0
    held_bytes: int = 0
    estimated: int = 0
    problem: str = ""


class MemoCounter:
    """A `TokenCounter` over a `measure`, with the counts of the texts seen last in memory.

    What was not asked for longest is forgotten first, so that no more than `memo_bytes` are held.
    One counter serves all threads.
    """

    def __init__(
        self,
        measure: Measure,
        *,
        bounds: Callable[[str], Bounds] = byte_bounds,
        memo_bytes: int = MEMO_BYTES,
    ) -> None:
        self._measure, self._bounds, self._memo_bytes = measure, bounds, memo_bytes
        self.shared_as: Callable[[], object] | None = None
        """Returns the process's counter, where this is it."""
        self._memo: OrderedDict[str, int] = OrderedDict()
        self._using = threading.Lock()
        self._hits = self._misses = self._held = 0

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        """Copy and pickle a counter of the process as that: another process uses its own."""
        if self.shared_as is None:
            raise TypeError("a token counter that the process does not share cannot be copied")
        return self.shared_as, ()

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; see `TokenCounter`."""
        with self._using:
            known = self._memo.get(text)
            if known is not None:
                self._memo.move_to_end(text)
                self._hits += 1
                return known
        return self._measured([text])[text]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; new ones are measured together."""
        with self._using:
            counts = list(map(self._memo.get, texts))
            if None not in counts:
                for text in texts:
                    self._memo.move_to_end(text)
                self._hits += len(texts)
                return counts  # type: ignore[return-value]
        new = self._measured([t for t, n in zip(texts, counts, strict=True) if n is None])
        with self._using:
            self._hits += len(texts) - len(new)
        return [new[t] if n is None else n for t, n in zip(texts, counts, strict=True)]

    def bounds(self, text: str) -> Bounds:
        """Return what `count` cannot be below nor above, without counting."""
        return self._bounds(text)

    def truncate(self, text: str, tokens: int, *, end: bool = False) -> str:
        """Return the start of `text`, or its end, in at most so many tokens."""
        return truncated(text, tokens, self._measure, end=end)

    def count_messages(
        self,
        messages: Sequence[Message],
        tools: object = None,
        system: object = None,
        *,
        model: ProviderModel | None = None,
    ) -> int:
        """Return the tokens of a whole request; see `request_tokens`."""
        return request_tokens(self, messages, tools, system, model=model)

    @property
    def stats(self) -> MemoStats:
        """What was asked and what is held, at this moment."""
        with self._using:
            return MemoStats(self._hits, self._misses, self._held)

    def _measured(self, texts: Sequence[str]) -> dict[str, int]:
        """Measure the texts, each once, outside the lock, and remember them."""
        new = list(dict.fromkeys(texts))
        counts = dict(zip(new, self._measure(new), strict=True))
        with self._using:
            self._misses += len(new)
            for text, tokens in counts.items():
                self._remember(text, tokens)
        return counts

    def _remember(self, text: str, tokens: int) -> None:
        size = _held_bytes(text)
        if text in self._memo or size > self._memo_bytes:
            return
        self._memo[text] = tokens
        self._held += size
        while self._held > self._memo_bytes:
            oldest, _ = self._memo.popitem(last=False)
            self._held -= _held_bytes(oldest)


def _held_bytes(text: str) -> int:
    """Return the same for equal texts, however they are stored."""
    return _ENTRY_BYTES + len(text) * (1 if text.isascii() else _WIDE_CHAR_BYTES)
