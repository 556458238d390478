"""`LateResults`: the results in a list whose calls a summary or a drop has taken."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby

from policyctx.definitions.items import Item, Message
from policyctx.definitions.names import RESULT_OF
from policyctx.messages.editing import Edit, edited_message
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.messages.sources import indices, joined
from policyctx.planning.identities import Identities
from policyctx.planning.ledger import ItemKey, Ledger
from policyctx.turns.replacement import Places, Replaced

# What is said of a result: a text, or messages with its media.
_Left = str | list[Message]


class LateResults:
    """The results in a list whose call a summary or a drop has taken.

    That is so behind one of the `summaries`, or if the call was dropped; `gone` are the items that
    compactions replaced. In the caller's own list, it is the second result of the call.
    """

    def __init__(
        self,
        given: Replaced,
        reading: Reading,
        ledger: Ledger,
        gone: frozenset[ItemKey],
        summaries: Collection[str],
    ) -> None:
        self._given, self._in, self._beside = given, reading, (ledger, gone, summaries)
        answers = [
            (i, item.tool_use_id, reading.partners.get(i))
            for i, item in enumerate(reading.items)
            if item.kind == "tool_result" and item.tool_use_id
        ]
        lone = [i for i, _, call in answers if call is None]
        if lone and not any(reading.shapes.text(m) in summaries for m in given.messages):
            lone = [i for i in lone if reading.items[i].tool_use_id in ledger.dropped_calls]
        second = {
            i: {*reading.bound_to(i), *reading.bound_to(call)}
            for i, call_id, call in answers
            if call is not None and reading.partners[call] != i and call_id in ledger.dropped_calls
        }
        left = {i for i in second if not self._is_dropped(i)}
        parted = (i for i in left if all(map(self._is_dropped, second[i] - left)))
        self._found = sorted([*lone, *parted])

    @cached_property
    def _keys(self) -> Identities:
        ledger, gone, _ = self._beside
        return Identities([*map(ledger.as_decided, self._in.items)], ledger, gone)

    def _is_dropped(self, position: int) -> bool:
        return self._beside[0].is_dropped(self._keys.key(position))

    def told(self) -> tuple[Replaced, bool]:
        """Return the list with them as messages of the user, and whether one is at its end.

        A provider rejects the result alone, and with its call both would be back. Such a message
        follows the results beside it, which belong to calls. What an earlier decision left of a
        result is its text, and nothing if it was dropped. A result with media stays where its shape
        cannot write them. While a call behind such a result waits for its own, the message waits.

        Nothing waits, and what was dropped is back, where the list would begin or end with a
        message of the assistant otherwise, and did not before. The same object comes back if
        nothing changes.
        """
        if not self._found:
            return self._given, False
        late, shapes = self, self._in.shapes
        if edits := self._edits_inside():
            messages = list(self._given.messages)
            for i, found in edits.items():
                messages[i] = edited_message(messages[i], found, shapes)
            left = self._given._replace(messages=messages)
            late = LateResults(left, Reading(shapes, messages), *self._beside)
        before = _edges(self._given.messages, shapes)
        for is_whole in (False, True):
            told, is_open = late._told(is_whole=is_whole)
            edges = zip(_edges(told.messages, shapes), before, strict=True)
            if not any(now and not earlier for now, earlier in edges):
                break
        return told, is_open

    def _edits_inside(self) -> dict[int, list[Edit]]:
        """Return what earlier decisions leave of the media in them, by message."""
        edits, items = defaultdict[int, list[Edit]](list), self._in.items
        for result in self._found:
            for i in self._in.items_of(items[result].message):
                entry = self._keys.entry(i) if items[i].inside == result else None
                if entry is not None and self._keys.replaced(i) is None:
                    edits[items[i].message].append(Edit(items[i], entry.placeholder))
        return edits

    def _told(self, *, is_whole: bool) -> tuple[Replaced, bool]:
        """Return the list with what is said of them; nothing waits if it `is_whole`."""
        late, reading = self._said(is_whole=is_whole), self._in
        found: list[tuple[range | None, Message]] = []
        places, said, beside, first = dict[int, Places](), list[_Left](), None, 0
        for i, source in enumerate(indices(self._given.sources)):
            message, items = self._given.messages[i], reading.items_of(i)
            if said and not any(reading.partners.get(k, first) < first for k in items):
                found += ((None, one) for one in self._written(said, beside))
                said = []
            if i in late:
                first = first if said else items.start
                beside, edits = message, [Edit(one, None) for one, _ in late[i]]
                said += (left for _, left in late[i] if left)
                message = edited_message(message, edits, reading.shapes)
            if message is not None:
                found.append((None if source is None else range(source, source + 1), message))
                if i in late or i in self._given.places:
                    places[len(found) - 1] = {} if i in late else self._given.places[i]
        if said and (is_whole or reading.pending is None):
            found += ((None, one) for one in self._written(said, beside))
        sources = joined(one for one, _ in found)
        return Replaced([one for _, one in found], sources, places), bool(said)

    def _said(self, *, is_whole: bool) -> dict[int, list[tuple[Item, _Left]]]:
        """Return the results by message, each with what is said of it.

        That is nothing of one that was dropped, unless it `is_whole`.
        """
        late = defaultdict[int, list[tuple[Item, _Left]]](list)
        for i in self._found:
            item, entry = self._in.items[i], self._keys.entry(i)
            head, left = f"{RESULT_OF}{item.tool_use_id}:", entry and entry.placeholder
            said: _Left | None
            if entry is not None and not (is_whole and left is None):
                said = "" if left is None else f"{head}\n{left}"
            elif item.takes_text and not item.media:
                said = f"{head}\n{item.text}"
            else:
                shapes, messages = self._in.shapes, self._given.messages
                shape, message = shapes.shaped(messages[item.message])
                new = shape.written_with(head, message, item.path)
                said = None if new is None else [new]
            if said is not None:
                late[item.message].append((item, said))
        return late

    def _written(self, said: Sequence[_Left], beside: Message) -> Iterator[Message]:
        """Yield the messages of the user that say this: texts that follow each other are one."""
        shape = self._in.shapes.writing([beside])
        for is_text, group in groupby(said, key=lambda one: isinstance(one, str)):
            if is_text:
                yield shape.written("user", "\n\n".join(map(str, group)))
            else:
                yield from chain.from_iterable(group)


def _edges(messages: Sequence[Message], shapes: Shapes) -> tuple[bool, bool]:
    """Return whether a provider rejects the first and the last message for its role."""
    shaped = [*map(shapes.shaped, messages)]
    said = [one for one in shaped if one.shape.role(one.message) not in SYSTEM_ROLES]
    if not said:
        return True, True
    first, last = (one.shape.role(one.message) == "assistant" for one in (said[0], said[-1]))
    last = last and not said[-1].shape.stays(said[-1].message)
    opens = said[0].shape.splits_replies or said[0].shape.stays(said[0].message)
    return first and not opens, last
