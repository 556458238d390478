"""What a text's count cannot be below nor above, told without counting."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from policyctx.tokens.counter import TokenCounter

# The longest token of o200k_base and of cl100k_base, in bytes.
LONGEST_TOKEN = 128


class Bounds(NamedTuple):
    """The fewest and the most tokens that a text can have."""

    least: int
    most: int


def byte_bounds(text: str) -> Bounds:
    """Bound the count of any tokenizer over bytes whose tokens are published.

    A token is at least one byte and at most 128; in UTF-8 a character is one byte or more.
    """
    size = utf8_bytes(text)
    return Bounds(-(-size // LONGEST_TOKEN), size)


def reaches(counter: TokenCounter, text: str, tokens: int) -> bool:
    """Say whether `text` has at least so many tokens, counting only where the bounds do not tell.

    Prefer it to `count(text) >= tokens` where the count itself is not shown.
    """
    least, most = counter.bounds(text)
    return least >= tokens or (most >= tokens and counter.count(text) >= tokens)


def utf8_bytes(text: str) -> int:
    """Return the length in UTF-8, in bytes; a lone surrogate takes three, as U+FFFD does."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
