"""`Arrivals`: the items that the steps on arrival judge next, and those that wait for it again."""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from policyctx.definitions.items import Item
from policyctx.planning.decisions import Awaited, Decision, Ending, Reason
from policyctx.planning.placeholders import content_hash

# What identifies an item that arrives: its kind, its tool-use id and the hash of its text.
Arrived: TypeAlias = tuple[str, str | None, str]
# A step that leaves an item, the position of that, and why.
Refused: TypeAlias = tuple[str, int, Reason]


class Arrivals:
    """The arrival of the `items` of a list that grows.

    `fates` are what became of them, by position. With `are_judged` a step judges them. `judged` are
    those that were judged in any list of the session, and how often each occurred in one.
    """

    def __init__(
        self,
        items: Sequence[Item],
        fates: Mapping[int, Decision],
        judged: Counter[Arrived] | None,
        *,
        are_judged: bool,
    ) -> None:
        self._items, self._fates, self._are_judged = items, fates, are_judged
        self._judged = Counter[Arrived]() if judged is None else judged
        self._met = Counter[Arrived]()
        self.due: list[int] = []
        """Positions of the items that are judged next, in order."""
        self.waiting: defaultdict[int, dict[str, Reason]] = defaultdict(dict)
        """Why an item waits that steps would take, by position, and there by step."""
        self._waits: defaultdict[Awaited, list[int]] = defaultdict(list)

    def extend(self, positions: Iterable[int], partners: Mapping[int, int]) -> None:
        """Add new items, except those that were judged in another list.

        `partners` are the answers to calls and the calls of answers, by position.
        """
        for position in positions if self._are_judged else ():
            item = self._items[position]
            if item.kind == "user_message":
                self.happened(Ending.USER_SPEAKS)
            elif position in partners:
                self.happened(Ending.ANSWER_COMES, partners[position])
            arrived = _arrived(item, item.text)
            self._met[arrived] += 1
            if self._met[arrived] > self._judged[arrived]:
                self.due.append(position)

    def settle(self, judged: int, refused: Iterable[Refused]) -> None:
        """Note that so many items were judged, some of which wait for what their reasons say."""
        del self.due[:judged]
        for step, position, reason in refused:
            for wait in reason.until:
                self.waiting[position][step] = reason
                self._waits[wait].append(position)

    def happened(self, event: Ending, about: int = 0) -> None:
        """Let the items arrive again that wait for this."""
        for position in self._waits.pop(Awaited(event, about), ()):
            if self.waiting.pop(position, None) is not None:
                insort(self.due, position)

    def report(self) -> None:
        """Note what was judged, also what is left of it, so that it is not new in another list."""
        if not self._are_judged:
            return
        unjudged, seen = {*self.due, *self.waiting}, Counter[Arrived]()
        for position, item in enumerate(self._items):
            if position not in unjudged:
                fate = self._fates.get(position)
                left = None if fate is None else fate.placeholder
                for text in {item.text, item.text if left is None else left}:
                    seen[_arrived(item, text)] += 1
        self._judged |= seen


def _arrived(item: Item, text: str) -> Arrived:
    return item.kind, item.tool_use_id, content_hash(text)
