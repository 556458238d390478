"""`Facts`: what a plan may know of the world outside the messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.tokens.media import TOKENS_PER_MEDIUM

if TYPE_CHECKING:
    from policyctx.messages.items import Item
    from policyctx.tokens.counter import TokenCounter


@dataclass(frozen=True, slots=True)
class Facts:
    """Where this session's files go and how its tokens are counted.

    `root` is an absolute path; `beside` holds the texts that are sent along with the messages,
    such as the request's system prompt and its tool schemas.
    """

    session_id: str
    root: str
    counter: TokenCounter
    beside: tuple[str, ...] = ()

    def tokens(self, item: Item) -> int:
        """Return what the item costs in the context, in tokens."""
        return self.counter.count(item.counted) + item.media * TOKENS_PER_MEDIUM

    def size(self, item: Item, unit: str) -> int:
        """Return the item's size in `tokens` or `chars`."""
        return self.tokens(item) if unit == "tokens" else len(item.text)

    def length(self, text: str, unit: str) -> int:
        """Return the size of a bare text in `tokens` or `chars`."""
        return self.counter.count(text) if unit == "tokens" else len(text)
