"""`Part`: a list that grew call by call, with when each item came, and when it was out."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.messages.items import Item


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which an item was not in the context as it was.

    Calls are numbered from 1 on, over the whole session.
    """

    since: int
    """The first call that was made without it."""
    until: float = float("inf")
    """The first call that had it again."""
    left: str = ""
    """What stood in its place."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a session: the list that it kept until the recording began another one."""

    items: Sequence[Item]
    """As they were recorded, in the order in which a model reads them."""
    partners: Mapping[int, int]
    """By position: of a call that of its result, of a result that of its call."""
    first_call: int
    """The number of the call that the list was begun for."""
    known: Sequence[int]
    """How many items each call had, from the first on; the last number is of those after it."""
    absences: Mapping[int, Sequence[Absence]] = field(default_factory=dict)
    """By position, in the order of time; an item without is there all the time."""
    beside: Sequence[str] = ()
    """What was sent along with the messages: system prompts and schemas of tools, as JSON."""

    @property
    def last_call(self) -> int:
        """The number of the last call that was made with the list."""
        return self.first_call + len(self.known) - 2

    def arrived(self, position: int) -> int:
        """Return the number of the first call that had the item; one more than any, after them."""
        return self.first_call + bisect_right(self.known, position)

    def had(self, call: int) -> int:
        """Return how many items a call had; those from there on arrived later."""
        return self.known[call - self.first_call]

    def absence(self, position: int, call: int) -> Absence | None:
        """Return how the item was absent at a call, None where it was there."""
        for absence in self.absences.get(position, ()):
            if absence.since <= call < absence.until:
                return absence
        return None

    def replies(self, since: int) -> Iterator[tuple[int, int]]:
        """Yield each item that a model wrote in reply to a call from this one on, and the call.

        What the part began with is no reply: who wrote it did not see this list.
        """
        for i, count in enumerate(self.known[:-1]):
            call = self.first_call + i
            if call < since:
                continue
            for position in range(count, self.known[i + 1]):
                item = self.items[position]
                if item.role == "assistant" and item.kind in {"assistant_message", "tool_call"}:
                    yield position, call
