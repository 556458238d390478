"""From a request or a message list to items: checked, in order, each result beside its call.

A JSON document is a request body with `messages`, `contents` or `input`, or a bare message list.
`Reading` checks and reads each message of a list once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, takewhile
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from policyctx.definitions.items import UNKNOWN, Author, Item, Message, author_of, call_key, key_of
from policyctx.definitions.names import RESULT_OF
from policyctx.errors import MessagesError, ShapeError
from policyctx.messages.json_text import Text
from policyctx.messages.markers import MARKER, is_anthropic
from policyctx.messages.shapes.blocks import named
from policyctx.messages.shapes.built_in import ANTHROPIC, BUILT_IN, Shaped, Shapes
from policyctx.messages.shapes.shape import Part, Shape

_KIND = attrgetter("kind")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")


class Reading:
    """The items of a message list that grows; every message is checked and read once.

    A result belongs to an earlier call with its id, wherever it is. Ids may be reused: within one
    reply a result answers the oldest unanswered call, and a later reply with a call of the same id
    replaces the earlier calls. A further result with an id belongs to the call that was answered
    last. So do the parts of tools that the provider runs. Calls with one id that wait for an answer
    at the same time are bound to each other, since a provider may take an answer for any of them.

    A reply of the model is one message. Where the shape of a message splits replies, it is that
    message and all of the assistant that follow it directly, whatever their shapes are, up to one
    of another shape that has thinking of its own.
    """

    def __init__(self, shapes: Shapes = BUILT_IN, messages: Sequence[Message] = ()) -> None:
        self.shapes = shapes
        self.items: list[Item] = []
        """In the order in which a model reads them; only ever appended to."""
        self.partners: dict[int, int] = {}
        """The position in `items` of the first answer to a call, and of the call of an answer."""
        self.turn_starts: list[int] = []
        """Positions of the messages that begin a turn, in ascending order."""
        self._turn = 0  # their number, as one object for all items of a turn
        self.roles: list[str] = []
        """The role of each message."""
        self.opening_roles: list[str] = []
        """The roles again, but empty for what may begin a list though the assistant said it."""
        self.staying: list[int] = []
        """Positions of the messages that must survive a compaction, in ascending order."""
        self.message_count = 0
        self.reply_starts: list[int] = []
        """Where messages of the assistant begin: with each model call that was made."""
        self._starts = array("l")  # the position of the first item, by message
        self.takes_markers = True
        """Whether every message is of a shape that takes `cache_control` markers."""
        self.shows_markers = False
        """Whether one of these messages has a block that only an API with markers knows."""
        self._newest_reply = range(0)  # the positions of its items
        self._begun: int | None = None  # the first message of a split reply that may go on
        self._is_newest = False  # whether that reply is the newest one with items
        self._running_from = 0  # no call before this message runs any more
        self._asked = False  # whether the newest message of the assistant has a call
        self._replies: dict[int, int] = {}  # by message of a split reply, the first one of it
        self._open_calls: dict[object, list[tuple[int, Item]]] = {}
        self._answered: dict[object, tuple[int, Item]] = {}  # the call that was answered last
        self._named: dict[object, object] = {}  # the key of a call by its second id
        self._replaced: dict[object, list[int]] = {}  # calls whose id came again before an answer
        self._bonds: dict[int, list[int]] = {}  # by item, what it is bound to beside its partner
        self._shapes: list[Shape] = []  # by message
        if messages:
            self.extend(messages)

    def shaped(self, message: int, given: Message) -> Shaped:
        """Return a message of the list, or what an edit left of it, with its shape.

        The object may be an equal one by now. Its shape stays, so that only the objects of an SDK
        or a host, of which either form may be given, are recognised again.
        """
        shape = self._shapes[message]
        is_known = type(given) is dict and shape not in self.shapes.host
        return Shaped(shape, given) if is_known else self.shapes.shaped(given)

    @property
    def pending(self) -> int | None:
        """The position where the newest reply begins if one of its calls has no result, or None.

        Messages without items are skipped.
        """
        return self._unanswered_in_newest(("tool_call",))

    @property
    def before_reply(self) -> int:
        """The number of messages before the newest reply, 0 without one: a model was sent them."""
        return self.items[self._newest_reply.start].message if self._newest_reply else 0

    @property
    def unfinished(self) -> int | None:
        """The position where the first reply begins with a call that runs, or None.

        The calls of the newest reply run until they are answered. A tool that the provider runs may
        answer in a later reply: after a pause, or after any number of rounds of calls that the
        client carries out. It runs no more once the user goes on after a reply without a call.
        Where replies are split, only calls of the newest one count.
        """
        newest = self._unanswered_in_newest(("tool_call", UNKNOWN))
        open_calls = (call for calls in self._open_calls.values() for _, call in calls)
        running = [
            call.message
            for call in open_calls
            if call.kind == UNKNOWN
            and call.message >= self._running_from
            and self.opening_roles[call.message] == "assistant"
        ]
        return min(running if newest is None else (*running, newest), default=None)

    def _unanswered_in_newest(self, kinds: Sequence[str]) -> int | None:
        for i in self._newest_reply:
            item = self.items[i]
            if item.kind in kinds and item.is_call and i not in self.partners:
                return item.call_message
        return None

    @property
    def unanswered(self) -> list[int]:
        """The positions of the calls whose answer may still come, in any order."""
        found = [position for calls in self._open_calls.values() for position, _ in calls]
        return found + [position for calls in self._replaced.values() for position in calls]

    def bound_to(self, position: int) -> Iterator[int]:
        """Yield the items without which an item may not be in the list: its call, or its answers.

        This is what a pair is, for all that removes items and for the check of the result. Where an
        id came again, other calls and answers with it may be among them.
        """
        partner, others = self.partners.get(position), self._bonds.get(position, ())
        if partner is not None:
            yield partner
        yield from (other for other in others if other != partner)

    def signed_with(self, position: int) -> Iterator[int]:
        """Yield the positions of the calls that the signature of a call stands for, too.

        They may leave the list without the call, but not stay without it.
        """
        if self.items[position].signed:
            later = range(position + 1, self.items_of(self.items[position].message).stop)
            yield from unsigned(self.items, later)

    def bound_messages(self, messages: Iterable[int]) -> set[int]:
        """Return these messages with all that stay if they stay.

        Those hold the other halves of their pairs, and the thinking that led to them.
        """
        found, todo = set[int](), list(messages)
        while todo:
            if (message := todo.pop()) not in found:
                found.add(message)
                for i in self.items_of(message):
                    thoughts = filter(self.is_bound, self.thought_of(i))
                    todo += (self.items[other].message for other in (*self.bound_to(i), *thoughts))
        return found

    def call_of(self, answer: Item) -> int | None:
        """Return the position of the call that the next answer with this id belongs to, if any."""
        key = self._asked_by(call_key(answer))
        calls = self._open_calls.get(key)
        found = calls[0] if calls else self._answered.get(key)
        return None if found is None else found[0]

    def open_call(self, key: object) -> Item | None:
        """Return the call that the next result with this key answers, None if there is none."""
        calls = self._open_calls.get(self._asked_by(key))
        return calls[0][1] if calls else None

    def _asked_by(self, key: object) -> object:
        """Return the key of the call that an answer with a key belongs to."""
        is_own = key in self._open_calls or key in self._answered
        return key if is_own else self._named.get(key, key)

    def reply_of(self, message: int) -> range:
        """Return the positions of the messages of the reply that a message belongs to.

        A message that is not a part of a split reply is one by itself.
        """
        first = self._replies.get(message)
        if first is None:
            return range(message, message + 1)
        end = message + 1
        while self._replies.get(end) == first:
            end += 1
        return range(first, end)

    def thought_of(self, position: int) -> range:
        """Return the positions of the items that one stretch of thinking led to, and of itself.

        Those are all items of a message, unless its reply is split.
        """
        message = self.items[position].message
        if message not in self._replies:
            return self.items_of(message)
        reply = self.reply_of(message)
        first, end = self.items_of(reply[0]).start, self.items_of(reply[-1]).stop
        start = position
        while start > first and not self._begins_thought(start):
            start -= 1
        stop = position + 1
        while stop < end and not self._begins_thought(stop):
            stop += 1
        return range(start, stop)

    def is_bound(self, position: int) -> bool:
        """Return whether an item is thinking that may not leave without what it led to."""
        item = self.items[position]
        return item.kind == "thinking" and item.message in self._replies

    def _begins_thought(self, position: int) -> bool:
        kinds = [item.kind == "thinking" for item in self.items[position - 1 : position + 1]]
        return kinds == [False, True]

    def begins_turn(self, message: int) -> bool:
        """Return whether a message began a turn."""
        found = bisect_left(self.turn_starts, message)
        return self.turn_starts[found : found + 1] == [message]

    def items_of(self, message: int) -> range:
        """Return the positions of a message's items."""
        starts, after = self._starts, message + 1
        if not 0 <= message < len(starts):
            return range(len(self.items), len(self.items))
        return range(starts[message], starts[after] if after < len(starts) else len(self.items))

    def extend(self, messages: Sequence[Message]) -> None:
        """Read the messages that follow those read so far.

        Raises `MessagesError` with the position of the first wrong message in the whole list; the
        reading is then unchanged.
        """
        self.add(self.checked(messages))

    def add(self, checked: deque[CheckedMessage]) -> None:
        """Add the messages of a queue of `checked`, which is empty then."""
        while checked:  # so that the parts and the items of a long list do not all exist at once
            self._add(checked.popleft())

    def checked(self, messages: Sequence[Message]) -> deque[CheckedMessage]:
        """Return the messages that follow, checked for `add`; raises `MessagesError`."""
        return deque(map(self._checked, listed(messages), count(self.message_count)))

    def _checked(self, given: Message, index: int) -> CheckedMessage:
        try:
            shape, message = self.shapes.checked(given, index)
            role, parts = shape.role(message), shape.parts(message)
            parts = parts if type(parts) is list else list(parts)
            return CheckedMessage(shape, message, role, parts, shape.stays(message))
        except ShapeError as error:
            raise error.at(index) from error.__cause__
        except RecursionError as error:
            raise MessagesError(f"message {index}: nested too deeply", index=index) from error
        except (TypeError, ValueError) as error:
            raise MessagesError(f"message {index}: not JSON: {error}", index=index) from error

    def _add(self, read: CheckedMessage) -> None:
        """Note the next message, and add its items."""
        shape, message, role, parts, stays = read
        index, first = self.message_count, len(self.items)
        self.message_count += 1
        self._starts.append(first)
        self._shapes.append(shape)
        self.takes_markers = self.takes_markers and shape.takes_markers
        if not self.shows_markers and shape is ANTHROPIC:
            self.shows_markers = is_anthropic(message)
        if role == "assistant" and (not index or self.roles[-1] != role):
            self.reply_starts.append(index)
        self.roles.append(role)
        may_open = role == "assistant" and (shape.splits_replies or stays)
        self.opening_roles.append("" if may_open else role)
        if role == "user" and _begins_turn(parts):
            self.turn_starts.append(index)
            self._turn = len(self.turn_starts)
            if not self._asked:
                self._running_from = index
        if stays:
            self.staying.append(index)
        if role == "assistant" or self._begun is not None:
            # A message with thinking of its own is a whole reply, whatever comes before it.
            thinks = not shape.splits_replies and "thinking" in map(_KIND, parts)
            positions = range(first, first + len(parts))
            self._reply(index, positions, role, splits=shape.splits_replies, is_whole=thinks)
        by = "" if type(message) is dict else author_of(message)
        asks = self._add_items(index, parts, role, by)
        if role == "assistant" and parts:
            self._asked = asks

    def _add_items(
        self, message: int, parts: Sequence[Part], role: str, by: Author | Literal[""]
    ) -> bool:
        """Add the items of the newest message, and return whether one is a call.

        Results and the items inside them get the tool of their call.
        """
        items, turn = self.items, self._turn
        asks, result = False, -1
        for position, part in enumerate(parts, len(items)):
            path, kind, text, counted, media, tool, call_id, error, media_type, number = part[:10]
            author, takes_text, blocks, signed, other_id = part[10:]
            call_message = inside = None
            if kind == "tool_result":
                result, key = position, key_of(call_id, tool, role, path)
                if call := self._answered_by(key, position):
                    tool, call_message = call.tool, call.call_message
                    other_id = call.tool_use_id if call_id == call.other_id else None
            elif number:
                inside, tool, call_message = result, items[result].tool, items[result].call_message
            elif kind == "tool_call" or (kind == UNKNOWN and tool is not None):
                asks, call_message = True, message if self._begun is None else self._begun
            texts: Text | tuple[Text, ...] = text
            if blocks is not None and len(blocks.texts) > 1:
                texts = blocks.texts
                counted = None if counted == text else counted
            item = Item(
                message, path, kind, kind, role, texts, texts if counted is None else counted,
                media, turn, tool, call_id, call_message, error, media_type, inside, number,
                author or by, takes_text, blocks, other_id, signed,
            )  # fmt: skip
            items.append(item)
            if kind == "tool_call" or (kind == UNKNOWN and not number and item.is_call):
                self._open(item, key_of(call_id, tool, role, path), position)
            elif kind == UNKNOWN and not number and item.is_answer:
                self._answered_by(call_id, position)
        return asks

    def _reply(
        self, index: int, positions: range, role: str, *, splits: bool, is_whole: bool
    ) -> None:
        """Note where the reply begins that a message belongs to, if it belongs to one."""
        continues = self._begun is not None and role == "assistant" and not is_whole
        if not continues:
            self._begun = index if role == "assistant" and splits else None
            self._is_newest = False
        if self._begun is not None:
            self._replies[index] = self._begun
        if positions and role == "assistant":
            start = self._newest_reply.start if self._is_newest else positions.start
            self._newest_reply = range(start, positions.stop)
            self._is_newest = True

    def _open(self, call: Item, key: object, position: int) -> None:
        if key is None:
            return
        if call.other_id is not None:
            self._named[call.other_id] = key
        calls = self._open_calls.setdefault(key, [])
        if calls:  # which are bound to each other
            self._bind(calls[-1][0], position)
        if calls and calls[0][1].call_message != call.call_message:
            self._replaced.setdefault(key, []).extend(replaced for replaced, _ in calls)
            calls.clear()
        calls.append((position, call))

    def _bind(self, item: int, other: int) -> None:
        self._bonds.setdefault(item, []).append(other)
        self._bonds.setdefault(other, []).append(item)

    def _answered_by(self, key: object, position: int) -> Item | None:
        """Note an answer with a key, and return the call that it belongs to, if any."""
        if not (calls := self._open_calls.get(key)):
            key = self._asked_by(key)
            calls = self._open_calls.get(key)
        if calls:
            answered, call = self._answered[key] = calls.pop(0)
            if not calls:
                del self._open_calls[key]
            self.partners[answered] = position
        elif key in self._answered:
            answered, call = self._answered[key]
            for other in (answered, *self._replaced.pop(key, ())):
                self._bind(other, position)
        else:
            return None
        self.partners[position] = answered
        return call


class CheckedMessage(NamedTuple):
    """A message that was checked: what its shape says of it.

    No plain tuple: Python keeps the memory of up to 2,000 of those.
    """

    shape: Shape
    message: Message
    role: str
    parts: Sequence[Part]
    stays: bool


def unsigned(items: Sequence[Item], places: range) -> Iterator[int]:
    """Yield the places in a message of the calls that no signed call at these places leads."""
    calls = (i for i in places if items[i].kind == "tool_call")
    return takewhile(lambda i: not items[i].signed, calls)


def _begins_turn(parts: Sequence[Part]) -> bool:
    """Whether a user message with these parts starts a turn: it is more than tool results."""
    for part in parts:
        if part.kind != "tool_result" and not part.number:
            return not (isinstance(part.text, str) and part.text.startswith(RESULT_OF))
    return not parts


def items_of(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> tuple[Item, ...]:
    """Return the items of a message list, in the order in which a model reads them.

    Raises `MessagesError` like `checked_messages`. `Reading` says how results and calls are paired.
    """
    return tuple(Reading(shapes, messages).items)


def checked_messages(messages: object, first: int = 0) -> Sequence[Message]:
    """Return `messages` unchanged; raises `MessagesError` with the first wrong message.

    `first` is the position of the first message in the whole list.
    """
    found = listed(messages)
    for index, message in enumerate(found, first):
        BUILT_IN.checked(message, index)
    return found


def is_message(message: object) -> bool:
    """Return whether `checked_messages` accepts a message that is a dict."""
    try:
        BUILT_IN.checked(message, 0)
    except MessagesError:
        return False
    return isinstance(message, dict)


def listed(messages: object) -> Sequence[Message]:
    """Return `messages` unchanged; raises `MessagesError` if the value is not a list."""
    if type(messages) is list:  # the quick test
        return messages
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise MessagesError(f"expected a list of messages, got {named(messages)}")
    return messages


class RequestBody(NamedTuple):
    """A model call: the messages, and the request body around them if there is one."""

    messages: Sequence[Message]
    body: Mapping[str, Any] | None = None

    @property
    def system(self) -> object:
        """The system prompt of the request: a string, a list of blocks, or None.

        Anthropic's API takes it as `system`, the Responses API as `instructions`, Gemini's as a
        content.
        """
        body = self.body or {}
        found = next((body[name] for name in _SYSTEM if name in body), None)
        return found.get("parts") if isinstance(found, Mapping) and "parts" in found else found

    @property
    def tools(self) -> object:
        """The schemas of the available tools, or None."""
        return self.body and self.body.get("tools")

    @property
    def takes_markers(self) -> bool | None:
        """Whether the fields are of an API with `cache_control` markers, None if they are not."""
        body = self.body or {}
        if "messages" not in body:
            return False if "input" in body or "contents" in body else None
        return True if "system" in body or MARKER in body else None

    @property
    def notes(self) -> list[str]:
        """What a user should know of a request body that holds more than is read, or less."""
        body, notes = self.body or {}, []
        if "messages" in body and "input" in body:
            notes.append('the request body has both "messages" and "input"; "messages" is read')
        elif "input" in body:
            held = (key for key in ("previous_response_id", "conversation") if body.get(key))
            notes += (
                f'"{key}" continues a history that the provider holds; only "input" is read'
                for key in held
            )
        return notes

    def marked(self, system: object, tools: object) -> RequestBody:
        """Return the request with cache breakpoints in its system prompt and its tools.

        A marker of the whole request would be one breakpoint more, so it is left out.
        """
        if self.body is None:
            return self
        body = {name: value for name, value in self.body.items() if name != MARKER}
        given = {"system": system, "tools": tools}
        return self._replace(body={**body, **{n: v for n, v in given.items() if n in body}})

    def document_with(self, messages: Sequence[Message]) -> object:
        """Return the document with its messages replaced by these."""
        if self.body is None:
            return list(messages)
        for name in ("messages", "contents"):
            if name in self.body:
                return {**self.body, name: list(messages)}
        given = self.body["input"]
        is_same = isinstance(given, str) and list(messages) == list(self.messages)
        return {**self.body, "input": given if is_same else list(messages)}


def request_of(document: object) -> RequestBody:
    """Return the request in a JSON document: an array of messages, or an object that holds them.

    The object has `messages`, `contents` as in Gemini's API, or `input` as in OpenAI's Responses
    API, where a text stands for one message of the user. Raises `MessagesError` for any other
    document, with the first wrong message.
    """
    if not isinstance(document, Mapping):
        return RequestBody(checked_messages(document))
    for name in ("messages", "contents"):
        if name in document:
            return RequestBody(checked_messages(document[name]), document)
    if "input" not in document:
        raise MessagesError(
            'expected a list of messages or a request body, got an object without "messages",'
            ' "contents" or "input"'
        )
    given = document["input"]
    if isinstance(given, str):
        return RequestBody([user_message(given)], document)
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        raise MessagesError(f'expected "input" to be a string or a list, got {named(given)}')
    return RequestBody(checked_messages(given), document)


def user_message(text: str) -> Message:
    """Return a message of the user, in the form that all APIs take."""
    return {"role": "user", "content": text}
