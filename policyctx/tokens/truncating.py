"""Cutting a text to a number of tokens, between characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.tokens.bounds import LONGEST_TOKEN
from policyctx.tokens.splitting import pieces

if TYPE_CHECKING:
    from policyctx.tokens.encoders import Measure

# Small, because the piece that does not fit is measured a dozen times.
_PIECE_CHARS = 4_096


def truncated(text: str, tokens: int, measure: Measure, *, end: bool = False) -> str:
    """Return as much of the start of `text`, or of its end, as has at most so many tokens.

    It never has more, and is `text` itself where that fits. Where a further character would close
    a token again, a little more can fit; that is not looked for.
    """
    tokens = max(tokens, 0)
    # A text that cannot fit is not counted as a whole.
    if len(text) <= tokens * LONGEST_TOKEN and measure([text])[0] <= tokens:
        return text
    allowed = tokens
    while True:
        cut = _cut(text, allowed, measure, end=end)
        excess = measure([cut])[0] - tokens
        if excess <= 0:
            return cut
        # A long run without a break is parted elsewhere when it begins elsewhere.
        allowed -= excess


def _cut(text: str, tokens: int, measure: Measure, *, end: bool) -> str:
    """Take whole pieces while they fit, and of the next one what still does."""
    parts = list(pieces(text, _PIECE_CHARS))
    taken = 0
    for part in reversed(parts) if end else parts:
        used = measure([part])[0]
        if used > tokens:
            taken += _fitting(part, tokens, measure, end=end)
            break
        tokens -= used
        taken += len(part)
    return _part(text, taken, end=end)


def _fitting(piece: str, tokens: int, measure: Measure, *, end: bool) -> int:
    """Find, by halving, how many characters of a piece fit that is too large as a whole."""
    fits, too_many = 0, len(piece)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if measure([_part(piece, middle, end=end)])[0] <= tokens:
            fits = middle
        else:
            too_many = middle
    return fits


def _part(text: str, chars: int, *, end: bool) -> str:
    return text[len(text) - chars :] if end else text[:chars]
