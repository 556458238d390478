"""`Identities`: which item of the ledger each item of a list is, also after the list was edited."""

from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from operator import itemgetter

from policyctx.definitions.items import Item
from policyctx.planning.ledger import ItemKey, Ledger, LedgerEntry, RenderedKey, Trace
from policyctx.planning.placeholders import content_hash


class _Alike:
    """The positions of items of one length that may be equal, and how often each hash is there.

    Each is hashed once, when it is first asked for. Most lengths are those of one item, which
    needs no hash.
    """

    __slots__ = "counts", "hashed", "positions"

    def __init__(self) -> None:
        self.positions = array("l")
        self.hashed = 0
        """How many of them are in `counts`."""
        self.counts: dict[str, int] = {}


class _Claims:
    """The items that left one text, and that no placeholder in the list stands for yet."""

    __slots__ = "seen", "waiting"

    def __init__(self) -> None:
        self.waiting = deque[ItemKey]()
        self.seen = 0
        """The number of the ledger's entries of this text that were looked at."""


class Identities:
    """The keys of the items of a list that grows, each computed on first use.

    A placeholder counts as what it stands for, so an item has the same key in the list as it was
    and in the list as it was edited; of placeholders that are alike each stands for the next.
    `items` are as they were read. `gone` are the keys of what was taken out of the list before it
    came back: what is equal to it keeps the key that it had.
    """

    def __init__(self, items: Sequence[Item], ledger: Ledger, gone: Iterable[ItemKey] = ()) -> None:
        self._items, self._ledger = items, ledger
        self._gone: dict[tuple[str, str | None, str], list[int]] = {}
        for key in sorted(gone, key=itemgetter(3)):
            if (occurrences := self._gone.get(key[:3])) is None:
                self._gone[key[:3]] = [key.occurrence]
            else:
                occurrences.append(key.occurrence)
        self._alike: dict[tuple[str, str | None, int], _Alike] = {}
        self._groups: list[_Alike] = []
        """For each item, those that may be equal to it."""
        self._ranks = array("l")
        """For each item that is hashed, how many equal ones are before it."""
        self._hashes: list[str | None] = []
        self._replaced: dict[int, LedgerEntry] = {}
        self._looked_at = 0
        self._claims: dict[RenderedKey, _Claims] = {}
        self._whole: defaultdict[tuple[str, str | None, str], int] = defaultdict(int)
        """How many items stand whole that equal placeholders or rewritten texts may be, too."""
        self._whole_up_to = 0

    def entry(self, position: int) -> LedgerEntry | None:
        """Return the ledger's entry of an item, whether it is whole or replaced.

        That is the newest decision on it: an older placeholder may be in a list that comes
        again. A placeholder of what was taken out of other lists stands for itself.
        """
        if (replaced := self.replaced(position)) is not None:
            is_gone = self._is_gone(replaced.key)
            return replaced if is_gone else self._ledger.entries.get(replaced.key)
        item = self._items[position]
        return self._ledger.entries.get(self.key(position)) if self._ledger.may_know(item) else None

    def replaced(self, position: int) -> LedgerEntry | None:
        """Return the entry of what a placeholder stands for; None for an item that stands whole."""
        if self._looked_at < len(self._items):
            self._look_at(range(self._looked_at, len(self._items)))
        return self._replaced.get(position)

    def _look_at(self, new: range) -> None:
        rendered = [self._ledger.rendered(self._items[i]) for i in new]
        if any(len(found) > 1 for found in rendered):
            self._count_whole(new.stop)
        for i, found in zip(new, rendered, strict=True):
            item = self._items[i]
            entry = self._next_of(found) if found else None
            if entry is not None:
                self._replaced[i] = entry
            elif self._ledger.may_be_rewritten(item):
                self._whole[item.kind, item.tool_use_id, content_hash(item.identity)] += 1
        self._looked_at = new.stop

    def trace(self, positions: Iterable[int]) -> Trace:
        """Return what a message with these items is recognised by in each of its forms."""
        return tuple(self._traced(i) for i in positions if self._items[i].inside is None)

    def _traced(self, position: int) -> tuple[ItemKey, int | None]:
        item = self._items[position]
        if self.replaced(position) is None and not self._ledger.may_know(item):
            return ItemKey(item.kind, item.tool_use_id, self._hash(position), 0), None
        key = self.key(position)
        return key, self._ledger.drops.get(key)

    def key(self, position: int) -> ItemKey:
        """Return the key of the item at this position."""
        if (replaced := self.replaced(position)) is not None:
            return replaced.key
        found = self._hash(position)
        kind, call = self._items[position].kind, self._items[position].tool_use_id
        self._count_alike(position, position + 1)
        gone: Iterable[int] = self._gone.get((kind, call, found), ())
        if (result := self._items[position].inside) is not None:
            gone = sorted({*gone, *self._left_inside(result, (kind, call, found))})
        return ItemKey(kind, call, found, _not_gone(self._ranks[position], gone))

    def _left_inside(self, result: int, equal: tuple[str, str | None, str]) -> Iterator[int]:
        """Yield the occurrences of equal items for which texts inside results stand.

        Up to this result; of equal texts each stands for the next item in the order of decisions.
        """
        for text, keys in self._ledger.left_inside(equal).items():
            times = sum(
                _times(text, item)
                for item in self._items[: result + 1]
                if item.kind == "tool_result" and item.tool_use_id == equal[1]
            )
            yield from (key.occurrence for key in keys[:times] if key[:3] == equal)

    def key_and_chars(self, position: int) -> tuple[ItemKey, int]:
        """Return the key of an item, and the characters that it had before a placeholder."""
        replaced = self.replaced(position)
        chars = len(self._items[position].text) if replaced is None else replaced.chars
        return self.key(position), chars

    def has_key(self, position: int, key: ItemKey, chars: int) -> bool:
        """Return whether an item has this key; it is computed only if the characters fit."""
        if (replaced := self.replaced(position)) is not None:
            return replaced.key == key
        return self._likeness(position) == (*key[:2], chars) and self.key(position) == key

    def alike(self, position: int, key: ItemKey) -> int:
        """Return the number of items equal to the one with this key, with those taken out."""
        kind, call, found, _ = key
        gone = self._gone.get((kind, call, found), ())
        counts = self._count_alike(position, len(self._items)).counts
        return counts.get(found, 1) + len(gone)

    def _count_whole(self, end: int) -> None:
        """Count the decided items that stand whole before this position.

        A result that may stand rewritten is counted when it is looked at.
        """
        rendered, may_be_rewritten = self._ledger.rendered, self._ledger.may_be_rewritten
        for item in self._items[self._whole_up_to : end]:
            is_other = self._ledger.may_know(item) and not may_be_rewritten(item)
            if is_other and not rendered(item):
                self._whole[item.kind, item.tool_use_id, content_hash(item.identity)] += 1
        self._whole_up_to = end

    def _next_of(self, found: dict[ItemKey, LedgerEntry]) -> LedgerEntry | None:
        """Return the first of equal placeholders that is not in the list yet, else the last.

        A rewritten text is a tool's own, so one more of it is another result: None.
        """
        place = next(iter(found.values())).place
        if (claims := self._claims.get(place)) is None:
            claims = self._claims[place] = _Claims()
        if claims.seen < len(found):
            keys = islice(found, claims.seen, None)
            here = (key for key in keys if not self._is_gone(key) and not self._stands_whole(key))
            claims.waiting.extend(here)
            claims.seen = len(found)
        if claims.waiting:
            return found[claims.waiting.popleft()]
        last = next(reversed(found.values()))
        return last if last.rewritten is None else None

    def _is_gone(self, key: ItemKey) -> bool:
        kind, call, sha256, occurrence = key
        return occurrence in self._gone.get((kind, call, sha256), ())

    def _stands_whole(self, key: ItemKey) -> bool:
        """Return whether an item that a placeholder or a rewritten text may be was seen whole."""
        kind, call, sha256, occurrence = key
        gone = self._gone.get((kind, call, sha256), ())
        for before in range(self._whole.get((kind, call, sha256), 0)):
            if occurrence == _not_gone(before, gone):
                return True
        return False

    def _count_alike(self, position: int, end: int) -> _Alike:
        """Return the items that may be equal to this one, counted up to `end`."""
        for i in range(len(self._groups), len(self._items)):
            likeness = self._likeness(i)
            if (alike := self._alike.get(likeness)) is None:
                alike = self._alike[likeness] = _Alike()
            alike.positions.append(i)
            self._groups.append(alike)
            self._ranks.append(0)
        alike = self._groups[position]
        positions, counts = alike.positions, alike.counts
        if len(positions) > 1:
            while alike.hashed < len(positions) and (i := positions[alike.hashed]) < end:
                found = self._hash(i)
                self._ranks[i] = counts.get(found, 0)
                counts[found] = self._ranks[i] + 1
                alike.hashed += 1
        return alike

    def _likeness(self, position: int) -> tuple[str, str | None, int]:
        item, replaced = self._items[position], self.replaced(position)
        if replaced is not None:
            return replaced.key.kind, item.tool_use_id, replaced.chars
        return item.kind, item.tool_use_id, len(item.text)

    def _hash(self, position: int) -> str:
        if position >= len(self._hashes):
            self._hashes += repeat(None, len(self._items) - len(self._hashes))
        if (found := self._hashes[position]) is None:
            replaced = self.replaced(position)
            found = self._hashes[position] = (
                replaced.key.sha256 if replaced else content_hash(self._items[position].identity)
            )
        return found


def _times(text: str, result: Item) -> int:
    """Return how often a text is one of those in a result; by its lines if these are not known."""
    if result.blocks is not None and result.blocks.texts:
        return sum(str(one) == text for one in result.blocks.texts)
    return _lines(result.text).count(_lines(text)) if text else 0


def _lines(text: str) -> str:
    """Return a text in which each line has two line feeds of its own: neighbours share none."""
    return "\n" + text.replace("\n", "\n\n") + "\n"


def _not_gone(before: int, gone: Iterable[int]) -> int:
    """Return the occurrence of an item; `before` equal ones are there, without those of `gone`."""
    for occurrence in gone:
        before += occurrence <= before
    return before
