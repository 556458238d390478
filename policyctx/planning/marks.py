"""`Marks`: where a list ended when each step last took something.

A mark is the newest item that stood in the list then, so that it is found again in a list that is
read anew, whatever was cut off or taken out before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from policyctx.definitions.items import Item
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Decision
from policyctx.planning.ledger import ItemKey, Ledger, Mark


class Marked(Protocol):
    """What marks ask of a conversation."""

    policy: OffloadPolicy
    ledger: Ledger
    items: list[Item]

    def is_there(self, position: int) -> bool:
        """Return whether anything of the item is left in the list."""
        ...

    def key_and_chars(self, position: int) -> tuple[ItemKey, int]:
        """Return the key of an item, and the characters of its text."""
        ...

    def has_key(self, position: int, key: ItemKey, chars: int) -> bool:
        """Return whether an item has this key, and its text so many characters."""
        ...


class Marks:
    """The marks of the steps that count what came since, in a conversation that grows."""

    def __init__(self, conversation: Marked) -> None:
        self._in = conversation
        self._known = conversation.ledger.marks
        self._at: dict[str, int] = {}

    def message(self, step: str) -> int:
        """Return the position of the message that the list ended with; -1 if it is not known.

        That is so before the step took anything, and where the list lacks that message.
        """
        position = self._at.get(step)
        return -1 if position is None else self._in.items[position].message

    def see(self, position: int) -> None:
        """Find the marks of earlier turns in an item that is read."""
        for mark in self._known.values():
            if self._in.has_key(position, mark.key, mark.chars):
                self._at[mark.step] = position

    def after(self, decisions: Collection[Decision]) -> dict[Mark, int]:
        """Return the marks that decisions set or move, with the positions of their items.

        A step that takes something is marked at the end of the list. Where the item of another mark
        leaves, the newest item before it that still stands takes over.
        """
        counting = self._in.policy.counting_since
        if not counting:
            return {}
        gone = {d.position for d in decisions if d.action.leaves_nothing}
        starts = {step: at for step, at in self._at.items() if at in gone}
        newest = len(self._in.items) - 1
        starts |= {d.step: newest for d in decisions if d.step in counting}
        return self._marked(starts, gone)

    def at_end(self, step: str) -> dict[Mark, int]:
        """Return the mark of a step at the end of the list; none for a step that counts nothing."""
        counts = step in self._in.policy.counting_since
        return self._marked({step: len(self._in.items) - 1}, ()) if counts else {}

    def adopt(self, marks: Mapping[Mark, int]) -> None:
        """Remember the marks of decisions that are carried out."""
        for mark, position in marks.items():
            self._known[mark.step] = mark
            self._at[mark.step] = position

    def _marked(self, starts: Mapping[str, int], gone: Collection[int]) -> dict[Mark, int]:
        found = {}
        for step, start in starts.items():
            standing = (i for i in range(start, -1, -1) if self._stands(i, gone))
            if (position := next(standing, None)) is not None:
                found[Mark(step, *self._in.key_and_chars(position))] = position
        return found

    def _stands(self, position: int, gone: Collection[int]) -> bool:
        is_outermost = self._in.items[position].inside is None
        return is_outermost and position not in gone and self._in.is_there(position)
