"""`TokenCounter`: how many tokens a text has; and the process's counters, one a tokenizer."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Protocol

from policyctx.tokens.bounds import Bounds
from policyctx.tokens.encoders import approximate, measure_for
from policyctx.tokens.memo import MEMO_BYTES, MemoCounter, MemoStats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.tokens.blocks import Message
    from policyctx.tokens.provider_models import ProviderModel


class TokenCounter(Protocol):
    """Counts the tokens of texts and requests.

    Takes any text whatever and never hangs; the same text has the same count while the counter
    remembers it. Only a damaged installation raises: `VocabularyError`, at the first count.
    """

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 or more."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; quicker than one by one."""
        ...

    def bounds(self, text: str) -> Bounds:
        """Return what `count` cannot be below nor above, without counting."""
        ...

    def truncate(self, text: str, tokens: int, *, end: bool = False) -> str:
        """Return as much of the start of `text`, or of its end, as has at most so many tokens."""
        ...

    def count_messages(
        self,
        messages: Sequence[Message],
        tools: object = None,
        system: object = None,
        *,
        model: ProviderModel | None = None,
    ) -> int:
        """Return the tokens of a whole request, with what the provider's API adds to its texts.

        `model` says what that is; by default the shape of the messages tells the provider.
        """
        ...

    @property
    def stats(self) -> MemoStats:
        """What was asked and what is held, at this moment."""
        ...


def counter_for(tokenizer: str, *, language_model: str | None = None) -> TokenCounter:
    """Return the process's counter for a `model.tokenizer`, which holds its memo.

    `language_model` is whose count `anthropic` asks for; to the others it is nothing. Nothing is
    loaded until the first count. Raises `MissingExtraError` for `anthropic` without the package
    of that name.
    """
    key = tokenizer, language_model if tokenizer == "anthropic" else None
    with _making:
        if key not in _counters:
            counter = new_counter(tokenizer, language_model=language_model)
            counter.shared_as = partial(counter_for, tokenizer, language_model=key[1])
            _counters[key] = counter
        return _counters[key]


def new_counter(
    tokenizer: str,
    *,
    language_model: str | None = None,
    fast: bool | None = None,
    memo_bytes: int = MEMO_BYTES,
) -> MemoCounter:
    """Return a counter that shares nothing with any other; see `measure_for` for `fast`."""
    if tokenizer == "anthropic":
        from policyctx.tokens.anthropic_api import AnthropicCounter  # noqa: PLC0415 - an extra

        return AnthropicCounter(language_model=language_model, memo_bytes=memo_bytes)
    measure = measure_for(tokenizer, fast=fast)
    if measure is approximate:
        return MemoCounter(measure, bounds=_exact_bounds, memo_bytes=memo_bytes)
    return MemoCounter(measure, memo_bytes=memo_bytes)


def _exact_bounds(text: str) -> Bounds:
    (tokens,) = approximate([text])
    return Bounds(tokens, tokens)


_counters: dict[tuple[str, str | None], TokenCounter] = {}
_making = threading.Lock()
