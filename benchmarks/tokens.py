"""Counting tokens, against the bare encoder and against counting again.

A policy in tokens counts every text once, so a first count should cost hardly more than the
encoder does by itself: at least 0.9 of its speed is the goal. Every later count of a text should
cost next to nothing, because a turn counts the whole context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.tokens.counter import counter_for
from policyctx.tokens.vocabulary import encoding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.tokens.counter import TokenCounter

ENCODING = "o200k_base"
# Characters of one tool result after another: most are small, most characters are in large ones.
SIZES = (120, 400, 900, 2_000, 5_000, 16_000)


def ratios() -> list[Ratio]:
    """The figures of this module; one call counts 240 texts, about a million characters."""
    texts = tool_outputs(SIZES * 40, seed=1)
    encode = encoding(ENCODING).encode_ordinary
    warm = _empty_counter()

    def counted_cold() -> int:
        return _total(_empty_counter(), texts)

    return [
        Ratio(
            "first count / bare encode_ordinary",
            ours=counted_cold,
            baseline=lambda: sum(len(encode(text)) for text in texts),
            bound=1 / 0.9,
        ),
        Ratio("count again / first count", ours=lambda: _total(warm, texts), baseline=counted_cold),
    ]


def _empty_counter() -> TokenCounter:
    """A counter that remembers nothing yet: the process's own is the one in the cache."""
    return counter_for.__wrapped__(ENCODING)


def _total(counter: TokenCounter, texts: Sequence[str]) -> int:
    return sum(counter.count(text) for text in texts)
