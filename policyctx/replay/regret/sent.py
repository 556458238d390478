"""What a part of a session says, and what of it each call was sent."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from policyctx.replay.regret.strings import (
    HASH,
    Memo,
    bare,
    parts_of,
    plain,
    rare_strings,
    start_of,
)
from policyctx.replay.timeline import SessionPart


class TextPlace(NamedTuple):
    """Where a text stands: in an item, or in its place in an absence of it."""

    position: int
    """Of the item; below 0 for what was sent beside the messages."""
    absence: int = -1


class Texts:
    """What the items of a part say, and the placeholders in it, as a person would read them."""

    def __init__(self, part: SessionPart, memo: Memo) -> None:
        self._part = part
        self._plain, self._strings = memo.of(plain), memo.of(rare_strings)
        replies = part.replies(part.first_call)
        said = frozenset(key for reply, _ in replies for key in self.strings_written(reply))
        # One object for all policies, by which what was found is found again.
        self._said = memo.of(frozenset)(said)

    def at(self, place: TextPlace) -> str:
        """Return what is at a place."""
        text = self._raw(place)
        return text if place.absence >= 0 else self._plain(text, keys=True)

    def shown(self, position: int) -> str:
        """Return the text of an item."""
        return self._part.items[position].counted

    def written(self, position: int) -> str:
        """Return what a model wrote in an item; the names of a call's fields are its tool's."""
        item = self._part.items[position]
        return self._plain(item.counted, keys=item.kind != "tool_call")

    def held(self, place: TextPlace) -> Mapping[bytes, str]:
        """Return the rare strings at a place that any reply of the part has."""
        return self._strings(self._raw(place), wanted=self._said)

    def strings_written(self, position: int) -> Mapping[bytes, str]:
        """Return the rare strings that a model wrote in an item."""
        item = self._part.items[position]
        return self._strings(item.counted, keys=item.kind != "tool_call")

    def _raw(self, place: TextPlace) -> str:
        position, absence = place
        if absence >= 0:
            return self._part.absences[position][absence].left
        return self.shown(position) if position >= 0 else self._part.beside[-1 - position]


class SentStrings:
    """The rare strings that each call was sent, followed from call to call."""

    def __init__(self, part: SessionPart, texts: Texts) -> None:
        self._part, self._texts = part, texts
        self._counts: Counter[bytes] = Counter()
        self._of_place: dict[TextPlace, frozenset[bytes]] = {}
        self._gone: dict[bytes, set[int]] = defaultdict(set)
        """The items that are out now and hold a string."""
        self._had, self._call = 0, part.first_call - 1
        self._now: dict[int, TextPlace] = {}
        self._changes: dict[int, set[int]] = defaultdict(set)
        for position, absences in part.absences.items():
            for absence in absences:
                self._changes[absence.since].add(position)
                if absence.until != float("inf"):
                    self._changes[int(absence.until)].add(position)
        for i in range(len(part.beside)):
            self._counts.update(self._at(TextPlace(-1 - i)))

    def lost(self, reply: int, call: int) -> Iterator[tuple[set[int], str]]:
        """Yield what of a reply its call was not sent, with the removed items that held it.

        Calls are asked about in their order.
        """
        self._go_to(call)
        for key, said in self._texts.strings_written(reply).items():
            if self._counts[key] <= 0 and (gone := self._gone.get(key)):
                yield gone, said

    def _at(self, place: TextPlace) -> frozenset[bytes]:
        found = self._of_place.get(place)
        if found is None:
            found = self._of_place[place] = frozenset(self._texts.held(place))
        return found

    def _go_to(self, call: int) -> None:
        while self._call < call:
            self._call += 1
            for position in sorted(self._changes.get(self._call, ())):
                if position < self._had:
                    self._change(position)
            had = self._part.had(self._call)
            for position in range(self._had, had):
                self._change(position)
            self._had = had

    def _change(self, position: int) -> None:
        number = None
        if position in self._part.absences:
            number = self._part.absence_number(position, self._call)
            if (before := self._now.get(position)) is not None:
                self._counts.subtract(self._at(before))
        place = TextPlace(position) if number is None else TextPlace(position, number)
        self._now[position] = place
        self._counts.update(self._at(place))
        # What an agent did once it can do again: its calls are no source of strings.
        if position in self._part.absences and self._part.items[position].kind != "tool_call":
            for key in self._at(TextPlace(position)):
                (self._gone[key].discard if number is None else self._gone[key].add)(position)


# Smaller numbers are guessed, and stand everywhere but where a line is meant.
SMALL = 100
_AS_LINE = (
    r"(?:^|\n|\\n|\")[ \t]*(?:{0})(?:[\t\u2192:|-]|\\t)"
    r"|(?:[:#]|\bL|\blines?\W(?:\d+\W+)?)(?:{0})(?!\w)"
)
_WHOLE = re.compile(r"\b\d{1,6}\b")
# A call that says which lines it wants is not longer than this, in characters.
_GIVEN = 400


class SentText:
    """What each call of a part was sent, as a person reads it who ignores separators and case."""

    def __init__(self, part: SessionPart, texts: Texts, memo: Memo) -> None:
        self._part, self._texts = part, texts
        self._bare = memo.of(bare)
        self._sent: tuple[int, Sequence[bytes]] = -1, ()

    def has_parts(self, text: str, call: int) -> bool:
        """Whether a call was sent all parts of a path, or a hash of which a text is the beginning.

        Calls are asked about in their order.
        """
        if HASH.fullmatch(text):
            sent = map(self._texts.at, self._places(call))
            return any(start_of(text, one, whole=False) >= 0 for one in sent)
        parts = parts_of(text)
        if parts and self._sent[0] != call:
            places = self._places(call)
            self._sent = call, [self._bare(self._texts.at(place)) for place in places]
        return bool(parts) and all(any(one in sent for sent in self._sent[1]) for one in parts)

    def has_line(self, file: str, number: int, call: int) -> bool:
        """Whether something that a call was sent about a file has a line's number.

        It is also known from its neighbours, and as the sum of what an earlier call was given.
        """
        near = [str(number + by) for by in (-1, 0, 1)]
        as_line = re.compile(_AS_LINE.format("|".join(near)))
        for place in self._places(call):
            said = self._texts.at(place)
            asked = self._part.partners.get(place.position)
            is_about = file in said or (
                asked is not None
                and asked < place.position
                and file in self._texts.at(TextPlace(asked))
            )
            if not is_about:
                continue
            if number < SMALL:
                if as_line.search(said) is not None:
                    return True
            elif any(start_of(one, said) >= 0 for one in near):
                return True
            if asked is not None and asked > place.position and len(said) <= _GIVEN:
                given = [int(one) for one in set(_WHOLE.findall(said))]
                if any(abs(one + other - number) <= 1 for one in given for other in given):
                    return True
        return False

    def _places(self, call: int) -> Iterator[TextPlace]:
        """Yield all that a call was sent: beside the messages, items, and what took their place."""
        part = self._part
        yield from (TextPlace(-1 - i) for i in range(len(part.beside)))
        absences = part.absences
        for position in range(part.had(call)):
            number = part.absence_number(position, call) if position in absences else None
            if number is None:
                yield TextPlace(position)
            elif part.absences[position][number].left:
                yield TextPlace(position, number)
