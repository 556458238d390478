"""`RecordedItems`: the items of a list as it was recorded, also where a compaction changed it."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.messages.items import Item
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.partition import Partition

_message = attrgetter("message")


class RecordedItems:
    """What a session's list was recorded as, beside the list that the session sees.

    They are the same until a compaction puts messages of its own in the place of others.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._partners: dict[int, int] = {}
        self._origins: list[int | None] = []
        """Where each message of the session's list was recorded; None for what was written."""
        self._before: tuple[Conversation, list[int | None]] | None = None
        """The list that was compacted last, and where its messages were recorded."""
        self._messages = 0
        """How many were recorded so far."""
        self.differs = False

    def items(self, conversation: Conversation) -> Sequence[Item]:
        """Return the items as they were recorded."""
        return self._items if self.differs else conversation.items

    def take(self, conversation: Conversation) -> None:
        """Take what is new in the session's list; a compaction writes nothing behind its end."""
        if not self.differs:
            return
        origins = self._origins_of(conversation)
        for message in range(len(origins), conversation.reading.message_count):
            for position in conversation.items_of(message):
                item, first = conversation.items[position], len(self._items)
                inside = None if item.inside is None else first - (position - item.inside)
                self._items.append(item._replace(message=self._messages, inside=inside))
            origins.append(self._messages)
            self._messages += 1

    def compacted(self, conversation: Conversation, parts: Partition, written: int) -> None:
        """Know that messages of the list gave way to as many as were `written`."""
        if not self.differs:
            self._items = list(conversation.items)
            self._messages = conversation.reading.message_count
            self._origins = list(range(self._messages))
            self.differs = True
        self._partners |= self.partners(conversation)
        origins = self._origins
        kept = [i for i in range(len(origins)) if i not in conversation.removed]
        before = [origins[i] for i in kept if i < parts.start]
        behind = [origins[i] for i in kept if i == parts.carried]
        behind += [origins[i] for i in kept if i >= parts.end]
        self._before = conversation, origins
        self._origins = [*before, *[None] * written, *behind]

    def position(self, conversation: Conversation, position: int) -> int | None:
        """Return where an item of the session's list was recorded, None for what was written."""
        if not self.differs:
            return position
        message = conversation.items[position].message
        origins = self._origins_of(conversation)
        if message >= len(origins) or (origin := origins[message]) is None:
            return None
        first = bisect_left(self._items, origin, key=_message)
        return first + position - conversation.items_of(message).start

    def partners(self, conversation: Conversation) -> dict[int, int]:
        """Return calls by their results and results by their calls, as they were recorded."""
        if not self.differs:
            return conversation.reading.partners
        return self._partners | dict(self._mapped(conversation))

    def _origins_of(self, conversation: Conversation) -> list[int | None]:
        is_before = self._before is not None and self._before[0] is conversation
        return self._before[1] if self._before is not None and is_before else self._origins

    def _mapped(self, conversation: Conversation) -> Iterator[tuple[int, int]]:
        for one, other in conversation.reading.partners.items():
            pair = self.position(conversation, one), self.position(conversation, other)
            if pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]
