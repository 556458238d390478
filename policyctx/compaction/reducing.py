"""A conversation that is larger than a summariser's window, shortened until it fits.

What yields first: the results of tools, the oldest first, then what the agent said and called, then
earlier summaries. The user's words are the last resort: they yield only when they alone are too
much, the oldest first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.compaction.prompt import Part, Speaker
    from policyctx.tokens.counter import TokenCounter

# For each round: whose parts are shortened, and to how many tokens; to none is to leave them out.
_ROUNDS: tuple[tuple[frozenset[Speaker], int], ...] = (
    (frozenset({"result"}), 400),
    (frozenset({"result"}), 80),
    (frozenset({"assistant", "call", "other"}), 400),
    (frozenset({"result"}), 0),
    (frozenset({"assistant", "call", "other"}), 0),
    (frozenset({"earlier"}), 2000),
    (frozenset({"earlier"}), 400),
    (frozenset({"user"}), 1000),
    (frozenset({"user", "earlier"}), 100),
    (frozenset({"user", "earlier"}), 0),
)
# Tokens around a part's text: its label and the lines between; and of the mark where text is cut.
_AROUND = 8
_MARK_TOKENS = 12


def reduced(parts: Sequence[Part], room: int, counter: TokenCounter) -> list[Part]:
    """Return the parts with at most `room` tokens, or so; as they are when they have no more.

    A part that is shortened keeps its beginning and its end, and says between them what is left
    out; the last that has to yield keeps as much as there is room for.
    """
    tokens = [count + _AROUND for count in counter.count_many([part.text for part in parts])]
    kept: list[Part | None] = list(parts)
    excess = sum(tokens) - room
    for speakers, allowed in _ROUNDS:
        for at, part in enumerate(parts):
            if excess <= 0:
                return [one for one in kept if one is not None]
            if part.speaker not in speakers or tokens[at] <= (allowed and allowed + _AROUND):
                continue
            target = max(allowed, tokens[at] - _AROUND - excess)
            kept[at] = _shortened(part, target, tokens[at] - _AROUND, counter)
            now = 0 if kept[at] is None else target + _AROUND
            excess -= tokens[at] - now
            tokens[at] = now
    return [one for one in kept if one is not None]


def _shortened(part: Part, target: int, tokens: int, counter: TokenCounter) -> Part | None:
    """The part in `target` tokens; None when that is no more than the mark takes."""
    half = (target - _MARK_TOKENS) // 2
    if half <= 0:
        return None
    head = counter.truncate(part.text, half)
    tail = counter.truncate(part.text, half, end=True)
    return replace(part, text=f"{head}\n[… about {tokens - 2 * half} tokens left out …]\n{tail}")
