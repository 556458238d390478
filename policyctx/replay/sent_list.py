"""`SentList`: the list that a model is sent, call after call: its size, and its blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from policyctx.definitions.items import Item, Message
from policyctx.messages import markers
from policyctx.messages.reading import items_of
from policyctx.planning.facts import Facts
from policyctx.replay.cache import Block
from policyctx.replay.recording import MarkedPlace

# By the identity of a message, which is kept so that no other object can have it.
_KnownBlocks: TypeAlias = "dict[int, tuple[Message, tuple[Block, ...]]]"


class Prompt(NamedTuple):
    """What one call was sent, in tokens as the policy counts them, system prompt and tools too."""

    tokens: int
    messages: int
    """How many messages it has."""
    head: int
    """How many blocks come before the first message. The first of them is what nobody shows."""
    kept: int
    """How many blocks at its beginning are those of the list sent before."""
    blocks: tuple[Block, ...]
    """The blocks behind those."""
    marks: tuple[markers.MarkedBlock, ...] | None = None
    """Where the client's breakpoints are; None where the recording does not say."""
    removable: int | None = None
    """The first block behind the newest edit that the policy could still change."""

    @property
    def end(self) -> int:
        """How many blocks it has."""
        return self.kept + len(self.blocks)


class MessageBlocks:
    """The blocks of messages, each counted once; a message is known as the object that it is."""

    def __init__(self) -> None:
        self._known: _KnownBlocks = {}
        self._of_base: _KnownBlocks = {}
        self._identities: dict[bytes, int] = {}

    def branched(self) -> MessageBlocks:
        """Return other blocks that know what these know; what they learn is theirs alone."""
        other = MessageBlocks()
        other._of_base, other._identities = self._known, {**self._identities}
        return other

    def measure(self, messages: Iterable[Message], facts: Facts) -> None:
        """Count messages together, which is quicker than one by one."""
        items = [(message, _items(message)) for message in messages]
        sizes = iter(facts.tokens_of([item for _, found in items for item in found]))
        for message, found in items:
            self._know(message, found, [next(sizes) for _ in found])

    def tokens(self, message: Message, facts: Facts) -> int:
        """Return what a message takes, in tokens."""
        return sum(block.tokens for block in self.of(message, facts))

    def of(self, message: Message, facts: Facts) -> tuple[Block, ...]:
        """Return the blocks of a message."""
        known = self._of_base.get(id(message)) or self._known.get(id(message))
        if known is not None:
            return known[1]
        found = _items(message)
        return self._know(message, found, facts.tokens_of(found))

    def beside(self, facts: Facts) -> tuple[Block, ...]:
        """Return the blocks before the first message: what nobody shows, tools, system prompt."""
        found = [block for part in reversed(facts.beside) for block in markers.blocks_beside(part)]
        sizes = [facts.length(block.text, "tokens") for block in found]
        if sizes:
            sizes[-1] = max(0, facts.tokens_beside - sum(sizes[:-1]))
        pairs = zip(found, sizes, strict=True)
        return (Block(0, 0), *(self._block(block, size) for block, size in pairs))

    def _know(
        self, message: Message, items: Sequence[Item], sizes: Sequence[int]
    ) -> tuple[Block, ...]:
        found = markers.cache_blocks(message)
        tokens = [0] * len(found)
        for item, size in zip(items, sizes, strict=True):
            tokens[markers.block_at(message, item.path)] += size
        blocks = tuple(map(self._block, found, tokens))
        self._known[id(message)] = message, blocks
        return blocks

    def _block(self, block: markers.CacheBlock, tokens: int) -> Block:
        text = block.text.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=16).digest()
        identity = self._identities.setdefault(digest, len(self._identities) + 1)
        return Block(identity, tokens, block.kind)


def _items(message: Message) -> list[Item]:
    """Return the items of a message; what is inside of one is a part of its size."""
    return [item for item in items_of([message]) if not item.number]


class SentList:
    """The list of one session as it is sent, with the sizes of all its beginnings."""

    def __init__(self, blocks: MessageBlocks) -> None:
        self._blocks = blocks
        self._now: list[Message] = []
        self._sums = [0]
        """The tokens of the first messages, for each number of them."""
        self._starts = [0]
        """How many blocks these have."""
        self._beside: tuple[object, ...] | None = None
        self._head: tuple[Block, ...] = ()

    def branched(self) -> SentList:
        """Return another list that was sent the same so far."""
        other = SentList(self._blocks)
        other._now, other._beside, other._head = self._now, self._beside, self._head
        other._sums, other._starts = [*self._sums], [*self._starts]
        return other

    def sent(
        self,
        messages: Sequence[Message],
        facts: Facts,
        *,
        marks: Iterable[MarkedPlace] | None = None,
        removable: MarkedPlace | None = None,
    ) -> Prompt:
        """Take the list of a call, and return its figures; `marks` are the client's.

        `removable` is the first place that an edit to come could change.
        """
        now = list(messages)
        known = self._measure(now, facts)
        kept = len(self._head) + self._starts[known]
        blocks = [block for message in now[known:] for block in self._blocks.of(message, facts)]
        if self._beside != facts.beside:
            self._beside, self._head, kept = facts.beside, self._blocks.beside(facts), 0
            sent = [block for message in now for block in self._blocks.of(message, facts)]
            blocks = [*self._head, *sent]
        return Prompt(
            facts.tokens_beside + self._sums[-1],
            len(now),
            len(self._head),
            kept,
            tuple(blocks),
            None if marks is None else tuple(self._marked(marks)),
            next((one.block for one in self._marked([removable] if removable else [])), None),
        )

    def _marked(self, marks: Iterable[MarkedPlace]) -> list[markers.MarkedBlock]:
        """Return the client's breakpoints by the block of the prompt, in order."""
        found = []
        for place in marks:
            if place.message is None:
                found.append(place.mark._replace(block=place.mark.block + 1))
            elif place.message < len(self._now):
                start, end = self._starts[place.message], self._starts[place.message + 1]
                block = min(start + place.mark.block, end - 1)
                found.append(place.mark._replace(block=len(self._head) + block))
        return sorted(found, key=lambda mark: mark.block)

    def _measure(self, now: list[Message], facts: Facts) -> int:
        """Size up the list that is sent now; returns how many messages of the last it keeps."""
        known = alike(self._now, now)
        del self._sums[known + 1 :], self._starts[known + 1 :]
        new = [self._blocks.of(message, facts) for message in now[known:]]
        sizes = [sum(block.tokens for block in blocks) for blocks in new]
        self._sums += accumulate(sizes, initial=self._sums.pop())
        self._starts += accumulate(map(len, new), initial=self._starts.pop())
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
