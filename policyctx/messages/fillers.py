"""`Fillers`: what parts two messages of one role, which some APIs refuse in a row.

An edit may take what was between them. A filler, a short text of the other role, is sent there, and
leaves again when the list comes back, so nothing else has to know of it. Joining the two instead
would put thinking behind a text, and what the user says into the message of a result.
"""

from collections.abc import Sequence
from operator import is_
from typing import NamedTuple, TypeAlias

from policyctx.definitions.items import Message
from policyctx.messages.reading import listed
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Shape
from policyctx.messages.sources import Sources, joined

FILLER = "[Messages removed]"
"""The text of a filler; no edit leaves a message with it."""

_OTHER = {"user": "assistant", "assistant": "user"}


class _Seam(NamedTuple):
    """Two messages that an edit brought together, and the filler between them if they need one."""

    one: Message
    other: Message
    filler: Message | None


_Messages: TypeAlias = Sequence[Message]
_Seams: TypeAlias = dict[tuple[int, int], _Seam]


class Fillers:
    """Puts fillers into the lists of a session, and takes them out again."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._all: list[Message] = []
        self._needing: list[Shape] = []
        for shape in shapes.host:
            self._need(shape)
        self._others: dict[int, Message] = {}
        """All other messages of the last list, by identity."""
        self._seams: _Seams = {}
        """Those of the last list, by the identities of the two messages."""
        self._last: tuple[_Messages, _Messages] = (), ()
        """The list with fillers that was returned last, and what it was without them."""

    @property
    def are_needed(self) -> bool:
        """Whether a shape of the lists alternates the roles."""
        return bool(self._needing)

    def _need(self, shape: Shape) -> None:
        if shape.alternates and shape not in self._needing:
            self._needing.append(shape)
            self._all += (shape.written(role, FILLER) for role in _OTHER)

    def taken_out(self, messages: _Messages) -> tuple[_Messages, Sequence[int] | None]:
        """Return a list without its fillers, and the place of each message; None without fillers.

        For the list object that was returned last, it is the object that this was made of.
        """
        for first in listed(messages)[:1]:
            self._need(self._shapes.checked(first, 0).shape)
        if not self.are_needed:
            return messages, None
        every, known = listed(messages), self._others
        alike = {i for i, m in enumerate(every) if id(m) not in known and self._is_like_any(m)}
        self._others = {id(m): m for i, m in enumerate(every) if i not in alike}
        # A session sends no two fillers in a row.
        alone = (i for i in alike if not alike & {i - 1, i + 1})
        fillers = {i for i in alone if self._is_between_two(messages, i)}
        if not fillers:
            return messages, None
        places = [i for i in range(len(messages)) if i not in fillers]
        left = [messages[i] for i in places]
        sent, own = self._last
        if sent is messages and isinstance(own, list):
            own[:] = left
            left = own
        return left, places

    def _is_like_any(self, message: Message) -> bool:
        return any(_is_like(message, one) for one in self._all)

    def _is_between_two(self, messages: _Messages, i: int) -> bool:
        """Whether a message parts two messages of the other role."""
        if not 0 < i < len(messages) - 1:
            return False
        seam = self._seams.get((id(messages[i - 1]), id(messages[i + 1])))
        if seam is not None and seam.filler is messages[i]:
            return True
        if self._shapes.text(messages[i]) != FILLER:
            return False
        around = (self._shapes.checked(messages[at], at) for at in (i - 1, i, i + 1))
        before, own, after = (shape.role(message) for shape, message in around)
        return before == after == _OTHER[own]

    def put_in(
        self, messages: _Messages, sources: Sources, given: _Messages
    ) -> tuple[_Messages, Sources]:
        """Return a list with fillers, and its sources; these are those in the `given` list.

        Messages that follow each other in the given list stay as they are. Its fillers are used
        again, and it comes back itself where nothing changes.
        """
        if not self.are_needed:
            return messages, sources
        found: list[Message] = []
        seams: _Seams = {}
        places: list[range | None] = []
        last: range | None = None
        at = 0
        for one in sources:
            if found and (filler := self._between(found[-1], messages[at], seams)) is not None:
                behind = range(last.stop, one.start)[:1] if last and one else range(0)
                back = [given[i] for i in behind if _is_like(given[i], filler)]
                found += back or [filler]
                places.append(behind if back else None)
            places.append(one)
            end = at + (1 if one is None else len(one))
            found += messages[at:end]
            at, last = end, one
        self._seams = seams
        if len(found) == len(messages):
            return messages, sources
        is_given = len(found) == len(given) and all(map(is_, found, given))
        sent = given if is_given else found
        self._last = sent, messages
        return sent, joined(places)

    def _between(self, one: Message, other: Message, seams: _Seams) -> Message | None:
        """Return the filler between two messages, None if they need none; note it in `seams`."""
        key = id(one), id(other)
        seam = self._seams.get(key)
        if seam is None or (seam.filler is not None and not self._is_like_any(seam.filler)):
            shape, message = self._shapes.shaped(one)
            role = shape.role(message)
            needs = shape.alternates and role in _OTHER and self._shapes.role(other) == role
            seam = _Seam(one, other, shape.written(_OTHER[role], FILLER) if needs else None)
        seams[key] = seam
        return seam.filler


def _is_like(message: Message, filler: Message) -> bool:
    """Whether a message is equal to a filler, except for the keys that a host gave it."""
    if isinstance(message, dict) and isinstance(filler, dict):
        return filler.items() <= message.items()
    return bool(message == filler)
