"""`KnownList`: the message list of a session, as it was given and as it was handed out.

Most turns bring the list of the turn before with a few messages more, either as the caller has
kept it or as it was handed out. Both are recognised, and only what is new is read.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, cast

from policyctx.errors import InvalidResultError
from policyctx.messages.blocks import comparable
from policyctx.messages.editing import Edit, block_of, edited_message
from policyctx.messages.validity import new_problems_around
from policyctx.store.content import Content, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policyctx.messages.items import Message
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.decisions import Decision
    from policyctx.planning.ledger import Key
    from policyctx.planning.plan import Plan


_DICTS = frozenset({dict, NoneType})


class KnownList:
    """A list that grows, beside what the plans that were carried out have left of it."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._given: list[Message] = []
        self._left: list[Message | None] = []
        self._edited: set[int] = set()
        """Where the two differ."""
        self._removes = False
        """Is nothing left of any of them."""
        self.comes_back = False
        """Was the list given as it was handed out, and not as the caller has kept it."""

    def continued_by(self, messages: Sequence[Message]) -> bool:
        """Is this the list known so far, as given or as handed out, with or without more behind.

        A message counts as known when it is the same object or equal; an SDK's message object
        equals what was saved of it. A list of which messages were removed is another one when it
        comes back, and is read anew.
        """
        known = len(self._given)
        if len(messages) < known:
            return False
        beginning = _beginning(messages, known)
        for comes_back in (self.comes_back, not self.comes_back):
            other = self._left if comes_back else self._given
            if (self._edited or not comes_back) and _same(beginning, other):
                self.comes_back = comes_back
                self._take(beginning)
                return True
        return False

    @property
    def given(self) -> list[Message]:
        """The messages as the caller has kept them, by position."""
        return self._given

    @property
    def left(self) -> list[Message | None]:
        """The messages as they are handed out, by position; None for one that was removed."""
        return self._left

    def _take(self, beginning: list[Message]) -> None:
        """Know these objects instead of equal ones, so that they are the ones handed out."""
        given, left = beginning, cast("list[Message | None]", beginning[:])
        for message in self._edited:
            if self.comes_back:
                given[message] = self._given[message]
            else:
                left[message] = self._left[message]
        self._given, self._left = given, left

    def gone_from(self, messages: Sequence[Message]) -> frozenset[Key]:
        """Return what is missing from another list because this one was handed out without it.

        What was missing from this one is missing from a list that begins with it.
        """
        if _beginning(messages, len(self._given)) == self._given:
            return self.conversation.gone_before
        handed_out = [message for message in self._left if message is not None]
        comes_back = len(handed_out) < len(self._left) and (
            _beginning(messages, len(handed_out)) == handed_out
        )
        return self.conversation.gone if comes_back else frozenset()

    def sent_of(self, messages: Sequence[Message]) -> int:
        """Return with how many messages another list begins that were sent with this one."""
        sent = self.conversation.sent
        handed_out = [message for message in self._left[:sent] if message is not None]
        return max(_alike(other, messages) for other in (self._given[:sent], handed_out))

    def read(self, messages: Sequence[Message]) -> None:
        """Read what a list that continues this one has more; raises `MessagesError`."""
        known, items = len(self._given), len(self.conversation.items)
        more = list(messages[known:])
        if not more:
            return
        self.conversation.extend(more)
        self._given += more
        self._left += more
        fates = self.conversation.fates
        remembered = [fates[i] for i in range(items, len(self.conversation.items)) if i in fates]
        if remembered:
            self._put(self._changed(remembered))

    def edited(self, plan: Plan) -> Mapping[int, Message | None]:
        """Return each message that the plan changes, None for one that it removes.

        Raises `InvalidResultError` when a provider would refuse the list for it.
        """
        changes = self._changed(plan.new)
        if changes:
            after = list(self._left)
            for message, new in changes.items():
                after[message] = new
            problems = new_problems_around(self._given, after, changes, self.conversation.items)
            if problems:
                raise InvalidResultError(problems)
        return changes

    def content(self, decision: Decision) -> Content:
        """Return what the store has to save for a decision, and what it came from."""
        assert decision.file is not None  # noqa: S101 - what is saved has one
        item = decision.item
        # What went by its characters is not counted for the index alone.
        by_tokens = decision.unit == "tokens"
        origin = Origin(
            item_id=item.item_id,
            item_type=item.type,
            tool_use_id=item.tool_use_id,
            tool_name=item.tool,
            role=item.role,
            message=item.message,
            turn=item.turn,
            tokens=self.conversation.facts.tokens(item) if by_tokens else None,
            block=block_of(self._given[item.message], item),
        )
        path = decision.file.relative_path
        return Content(path, item.text, decision.wanted_path, origin)

    def handed_out(
        self, messages: Sequence[Message], changes: Mapping[int, Message | None]
    ) -> Sequence[Message]:
        """Return the list to send; the very list that was given when it is as it should be."""
        self._put(changes)
        if not self._edited or (self.comes_back and not changes):
            return messages
        if not self._removes:
            return cast("list[Message]", self._left[:])
        return [message for message in self._left if message is not None]

    def _put(self, changes: Mapping[int, Message | None]) -> None:
        for message, new in changes.items():
            self._left[message] = new
            self._removes = self._removes or new is None
            self._edited.add(message)

    def _changed(self, decisions: Iterable[Decision]) -> dict[int, Message | None]:
        new = {decision.position: decision for decision in decisions}
        changes = {}
        for message in sorted({decision.item.message for decision in new.values()}):
            edits = list(self._edits(message, new))
            if edits:
                changes[message] = edited_message(self._given[message], edits)
        return changes

    def _edits(self, message: int, new: Mapping[int, Decision]) -> Iterable[Edit]:
        """What has to be changed in a message as it was given, by these decisions and earlier."""
        conversation = self.conversation
        for position in conversation.items_of(message):
            fate = new.get(position) or conversation.fates.get(position)
            inside = conversation.items[position].inside
            if fate is None or fate.placeholder == fate.item.text:
                continue
            if inside is None or not (inside in new or inside in conversation.fates):
                yield Edit(fate.item, fate.placeholder)


def _beginning(messages: Sequence[Message], count: int) -> list[Message]:
    """Return the first messages as a list of its own; a slice of a list is one already."""
    beginning = messages[:count]
    return beginning if type(beginning) is list else list(beginning)


def _same(some: Sequence[Message], others: Sequence[Message | None]) -> bool:
    """Whether two lists of one length are equal; one may have objects where the other has dicts."""
    if some == others:
        return True
    if _DICTS.issuperset(map(type, some)) and _DICTS.issuperset(map(type, others)):
        return False
    return all(map(_same_message, some, others))


def _same_message(one: Message, other: Message | None) -> bool:
    return one == other or (other is not None and comparable(one) == comparable(other))


def _alike(some: Sequence[Message], others: Sequence[Message]) -> int:
    """Return how many messages two lists have in common at their beginning."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(some), len(others)))
