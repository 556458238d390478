"""Counting tokens, against the bare libraries and against counting again.

A policy in tokens counts every text once, so a first count should cost hardly more than the
library does by itself: at least 0.9 of its speed is the goal, and 150 ms for 200,000 tokens with
tiktoken, 40 with toktok. A turn sums the whole context, so what is known should cost next to
nothing: 0.2 ms for 573 messages. Loading comes once, and should stay below 500 ms.

toktok is so quick that looking for letters on which it may differ from tiktoken shows: what is not
ASCII is read once more for that. So its figure is bound on ASCII, and shown with CJK as well.
"""

from __future__ import annotations

import binascii
import gzip
import importlib.resources
from collections.abc import Sequence
from importlib.util import find_spec

import tiktoken

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.tokens.counter import new_counter
from policyctx.tokens.encoders import VOCABULARIES, built_encoding, encoding

ENCODING = "o200k_base"
# Characters of one tool result after another: most are small, most characters are in large ones.
SIZES = (120, 400, 900, 2_000, 5_000, 16_000)
# Together about 200,000 tokens.
REPEATED = 23
KNOWN = 573


def ratios() -> list[Ratio]:
    """The figures of this module; a call of the first ones counts 138 texts."""
    texts = tool_outputs(SIZES * REPEATED, seed=1)
    known = (tool_outputs(SIZES * (KNOWN // len(SIZES) + 1), seed=2))[:KNOWN]
    encode = encoding(ENCODING).encode_ordinary
    warm = new_counter(ENCODING)
    counts = dict(zip(known, warm.count_many(known), strict=True))
    return [
        Ratio(
            "first count, 200,000 tokens / bare encode_ordinary",
            ours=lambda: _cold(texts, fast=False),
            baseline=lambda: sum(len(encode(text)) for text in texts),
            bound=1 / 0.9,
        ),
        *(_fast_ratios(texts) if find_spec("toktok") else ()),
        Ratio(
            "sum of 573 known texts / a dict's look-ups",
            ours=lambda: sum(warm.count_many(known)),
            baseline=lambda: sum(map(counts.__getitem__, known)),
        ),
        Ratio(
            "573 known texts one by one / a dict's look-ups",
            ours=lambda: sum(map(warm.count, known)),
            baseline=lambda: sum(map(counts.__getitem__, known)),
        ),
        Ratio(
            "load the vocabulary, checked / unpack and build it",
            ours=lambda: built_encoding(ENCODING),
            baseline=_bare_encoding,
        ),
    ]


def _fast_ratios(texts: Sequence[str]) -> tuple[Ratio, ...]:
    import toktok  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    ascii_texts = [text for text in texts if text.isascii()]
    return (
        Ratio(
            "first count with toktok, ASCII / bare batch_count",
            ours=lambda: _cold(ascii_texts, fast=True),
            baseline=lambda: sum(toktok.batch_count(ascii_texts, ENCODING, threads=1)),
            bound=1 / 0.9,
        ),
        Ratio(
            "first count with toktok, 200,000 tokens / bare batch_count",
            ours=lambda: _cold(texts, fast=True),
            baseline=lambda: sum(toktok.batch_count(texts, ENCODING, threads=1)),
        ),
        Ratio(
            "first count with toktok / with tiktoken",
            ours=lambda: _cold(texts, fast=True),
            baseline=lambda: _cold(texts, fast=False),
        ),
        Ratio(
            "first count with toktok one by one / bare batch_count",
            ours=lambda: _one_by_one(texts),
            baseline=lambda: sum(toktok.batch_count(texts, ENCODING, threads=1)),
            bound=2,
        ),
    )


def _cold(texts: Sequence[str], *, fast: bool) -> int:
    """Count with a counter that remembers nothing yet."""
    return sum(new_counter(ENCODING, fast=fast).count_many(texts))


def _one_by_one(texts: Sequence[str]) -> int:
    """Count each text by itself with toktok, with a counter that remembers nothing yet."""
    return sum(map(new_counter(ENCODING, fast=True).count, texts))


def _bare_encoding() -> tiktoken.Encoding:
    packed = importlib.resources.files("policyctx.tokens") / "vocabularies"
    lines = gzip.decompress((packed / f"{ENCODING}.tiktoken.gz").read_bytes()).splitlines()
    ranks = {binascii.a2b_base64(token): int(rank) for token, rank in map(bytes.split, lines)}
    return tiktoken.Encoding(
        ENCODING,
        pat_str=VOCABULARIES[ENCODING].pattern,
        mergeable_ranks=ranks,
        special_tokens={},
    )
