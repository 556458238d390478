"""`SentList`: the list that a model is sent, call after call: its size, and what stays of it."""

from __future__ import annotations

from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from policyctx.messages.reading import items_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.definitions.items import Item, Message
    from policyctx.planning.facts import Facts


class Prompt(NamedTuple):
    """What one call was sent, in tokens as the policy counts them, system prompt and tools too."""

    tokens: int
    shared: int
    """Tokens at its beginning that the call before was sent as well, byte for byte."""
    messages: int
    """How many messages it has."""
    shared_messages: int
    """How many of them, from the first on, the call before was sent as well."""
    follows: bool
    """Was there a call before of the same language model, with the same system prompt and tools."""


class MessageSizes:
    """The tokens of messages, each counted once; a message is known as the object that it is."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, int]] = {}

    def measure(self, messages: Iterable[Message], facts: Facts) -> None:
        """Count messages together, which is quicker than one by one."""
        items = [(message, _items(message)) for message in messages]
        sizes = iter(facts.tokens_of([item for _, found in items for item in found]))
        for message, found in items:
            self._know(message, sum(islice(sizes, len(found))))

    def tokens(self, message: Message, facts: Facts) -> int:
        """Return what a message takes, in tokens."""
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        return self._know(message, sum(facts.tokens_of(_items(message))))

    def _know(self, message: Message, size: int) -> int:
        # The message itself is kept, so that no other object can have its identity.
        self._known[id(message)] = message, size
        return size


def _items(message: Message) -> list[Item]:
    """Return the items of a message; what stands inside of one is a part of its size."""
    return [item for item in items_of([message]) if not item.number]


class SentList:
    """The list of one session as it is sent, with the sizes of all its beginnings.

    A prompt cache belongs to one language model, so what is shared is asked for each by itself.
    """

    def __init__(self, sizes: MessageSizes) -> None:
        self._sizes = sizes
        self._now: list[Message] = []
        self._sums = [0]
        self._before: dict[str | None, tuple[list[Message], tuple[object, ...]]] = {}

    def branched(self) -> SentList:
        """Return another list that was sent the same so far."""
        other = SentList(self._sizes)
        other._now, other._sums, other._before = self._now, [*self._sums], {**self._before}
        return other

    def sent(
        self, messages: Sequence[Message], facts: Facts, *, language_model: str | None = None
    ) -> Prompt:
        """Take the list of a call, and return what it comes to."""
        last, now = self._now, list(messages)
        known = self._measure(now, facts)
        before, beside = self._before.get(language_model, (None, ()))
        self._before[language_model] = now, facts.beside
        aside = facts.tokens_beside
        tokens = aside + self._sums[-1]
        if before is None or beside != facts.beside:
            return Prompt(tokens, 0, len(now), 0, follows=False)
        same = known if before is last else alike(before, now)
        return Prompt(tokens, aside + self._sums[same], len(now), same, follows=True)

    def _measure(self, now: list[Message], facts: Facts) -> int:
        """Size up the list that is sent now; returns how many messages of the last it keeps."""
        known = alike(self._now, now)
        del self._sums[known + 1 :]
        new = [self._sizes.tokens(message, facts) for message in now[known:]]
        self._sums += accumulate(new, initial=self._sums.pop())
        self._now = now
        return known


def alike(some: list[Message], others: list[Message]) -> int:
    """Return how many messages two lists have in common at their beginning."""
    least, most = 0, min(len(some), len(others))
    if some == others[: len(some)]:  # most lists only grew
        return len(some)
    step = most - most // 2
    while least < most:
        # By halves, compared where lists differ in C.
        middle = least + step
        if some[least:middle] == others[least:middle]:
            least = middle
        else:
            most = middle - 1
        step = (most - least + 1) // 2
    return least
