"""Repairs of a list that a provider would refuse as it was given.

A call without a result leaves. A result without a call becomes a message of the user, so nothing
that a tool said is lost. What some provider takes counts as broken here only if the API of the
message refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from operator import is_
from typing import NamedTuple

from policyctx.definitions.items import Item, Message
from policyctx.definitions.names import RESULT_OF
from policyctx.messages.editing import Edit, edited_message
from policyctx.messages.reading import Reading, listed
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import RESULT_ROLES, SYSTEM_ROLES, Shape, call_key

BEGINNING = "[The beginning of the conversation is missing.]"
INTERRUPTED = "[The last call was interrupted before it had a result.]"


class Fault(NamedTuple):
    """What a provider would refuse, and what a repair makes of it."""

    problem: str
    repair: str


# A message, and its place in the list that was given; None for a new one.
_Placed = tuple[int | None, Message]


@dataclass(frozen=True, slots=True)
class Repaired:
    """A list that a provider takes, and what was wrong with the one that was given."""

    placed: tuple[_Placed, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def messages(self) -> list[Message]:
        """The list."""
        return [message for _, message in self.placed]

    def __add__(self, other: Repaired) -> Repaired:
        return Repaired((*self.placed, *other.placed), (*self.faults, *other.faults))


class Repairing:
    """Repairs a list that grows: what no later message can change is repaired once.

    That part is known by its objects.
    """

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._known: Sequence[Message] = ()
        self._before = Repaired()
        self._has_begun = False
        """Whether there is a message in it that is not the system's."""

    def repaired(self, messages: Sequence[Message], *, changed: bool = False) -> Repaired:
        """Return the list as a provider takes it; raises `MessagesError` like `Reading`.

        With `changed` an object may be another message than before.
        """
        given, known = listed(messages), len(self._known)
        if changed or len(given) < known or not all(map(is_, given, self._known)):
            self._known, self._before, self._has_begun, known = (), Repaired(), False, 0
        placed: list[_Placed] = list(zip(count(known), given[known:], strict=False))
        border = next((i for i in range(len(given) - 1, known, -1) if self._parts(given, i)), 0)
        if border:
            head = self._all_repaired(placed[: border - known])
            # Where replies are split, the result of a call may come behind the border.
            if not (head.faults and self._shape(given, border).splits_replies):
                self._before += head
                self._has_begun |= any(
                    self._shapes.shaped(message).shape.role(message) not in SYSTEM_ROLES
                    for message in head.messages
                )
                self._known, placed = given[:border], placed[border - known :]
        return self._before + self._all_repaired(placed, is_last=True)

    def _parts(self, given: Sequence[Message], place: int) -> bool:
        """Whether no pair reaches over the beginning of a message."""
        shape, message = self._shapes.checked(given[place], place)
        match shape.role(message):
            case "user":
                return "tool_result" not in {part.kind for part in shape.parts(message)}
            case "assistant" if not shape.splits_replies:
                before = self._shapes.checked(given[place - 1], place - 1)
                return before.shape.role(before.message) != "assistant"
        return False

    def _shape(self, given: Sequence[Message], place: int) -> Shape:
        return self._shapes.checked(given[place], place).shape

    def _all_repaired(self, placed: list[_Placed], *, is_last: bool = False) -> Repaired:
        faults: list[Fault] = []
        ends = {"begins_list": not self._has_begun, "ends_list": is_last}
        while (found := _Round(placed, self._shapes, **ends).run()).faults:
            placed = [*found.placed]
            faults += found.faults
        return Repaired(tuple(placed), tuple(faults))


class _Round:
    """One pass over messages; a repair may leave what the next pass repairs."""

    def __init__(
        self,
        placed: Sequence[_Placed],
        shapes: Shapes,
        *,
        begins_list: bool,
        ends_list: bool,
    ) -> None:
        self._placed, self._shapes = placed, shapes
        self._begins_list, self._ends_list = begins_list, ends_list
        self._in = Reading(shapes)
        self._in.extend([message for _, message in placed])
        self._faults: list[Fault] = []

    def run(self) -> Repaired:
        """Return the list with what this pass finds repaired."""
        left: list[_Placed] = []
        said: list[_Placed] = []  # behind the results between which it was found
        begins = self._begins_list
        for at, (place, message) in enumerate(self._placed):
            if not self._holds_only_results(at):
                left, said = [*left, *said], []
            if begins and self._in.roles[at] not in SYSTEM_ROLES:
                begins = False
                if self._in.opening_roles[at] == "assistant":
                    self._note("the list begins with an assistant message", "a prompt precedes it")
                    left.append((None, self._written(BEGINNING, message)))
            new, words = self._repaired(at, message)
            left += [(place, new)] if new is not None else []
            said += [(None, one) for one in words]
        return Repaired((*left, *said), tuple(self._faults))

    def _repaired(self, at: int, message: Message) -> tuple[Message | None, list[Message]]:
        """Return what stays of a message, and the messages of the user that say the rest."""
        items = [self._in.items[i] for i in self._in.items_of(at)]
        shape, own = self._in.shaped(at, message)
        role, thinks = self._in.roles[at], all(item.kind == "thinking" for item in items)
        if shape.is_empty(own):
            self._note(f"a message of role {role} is empty", "dropped")
            return None, []
        if role == "assistant" and thinks and items and not self._leads_on(at):
            self._note("thinking is not followed by what it led to", "dropped")
            return None, []
        halves = [i for i in self._in.items_of(at) if self._is_half(i)]
        words: list[Message] = []
        for i in halves:
            item = self._in.items[i]
            name = item.tool_use_id or item.tool
            if item.kind == "tool_call":
                self._note(f"the call {name} has no result right after it", "dropped")
            else:
                problem = f"the result {name} has no call right before it"
                self._note(problem, "now a message of the user")
                words.append(self._said(item, message))
        if not halves:
            return message, words
        edits = [Edit(self._in.items[i], None) for i in halves]
        left = edited_message(message, edits, self._shapes)
        if self._ends_list and at == len(self._placed) - 1 and role == "assistant":
            words.append(self._written(INTERRUPTED, message))
        return left, words

    def _is_half(self, position: int) -> bool:
        """Whether a call has no result, or a result no call, where the API wants it."""
        item, partner = self._in.items[position], self._in.partners.get(position)
        if item.kind not in ("tool_call", "tool_result") or item.inside is not None:
            return False
        if call_key(item) is None:
            return False
        splits = self._in.shaped(item.message, self._placed[item.message][1]).shape.splits_replies
        if splits:
            return next(self._in.bound_to(position), None) is None
        if partner is None or self._in.partners.get(partner) != position:
            return True
        first, last = sorted((item.message, self._in.items[partner].message))
        end = max(first, self._in.reply_of(first)[-1])
        return not all(map(self._holds_only_results, range(end + 1, last)))

    def _holds_only_results(self, at: int) -> bool:
        items = [self._in.items[i] for i in self._in.items_of(at)]
        only = bool(items) and all(i.kind == "tool_result" or i.inside is not None for i in items)
        return only or self._in.roles[at] in RESULT_ROLES

    def _leads_on(self, at: int) -> bool:
        """Whether thinking in a message of its own is followed by more of its reply."""
        reply = self._in.reply_of(at)
        return at < reply[-1]

    def _said(self, item: Item, beside: Message) -> Message:
        head = f"{RESULT_OF}{item.tool_use_id or item.tool}:"
        shape, message = self._shapes.shaped(beside)
        said = shape.written_with(head, message, item.path) if item.media else None
        return self._written(f"{head}\n{item.text}", beside) if said is None else said

    def _written(self, text: str, beside: Message) -> Message:
        return self._shapes.writing([beside]).written("user", text)

    def _note(self, problem: str, repair: str) -> None:
        self._faults.append(Fault(problem, repair))
