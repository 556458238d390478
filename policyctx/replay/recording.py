"""`Recording`: one agent's recorded session, as the model calls that it was made of."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from policyctx.definitions.items import Item, Message
from policyctx.messages.markers import MarkedBlock
from policyctx.planning.compact import Partition
from policyctx.planning.conversation import Conversation
from policyctx.tokens.usage import Summable, Usage

Anew: TypeAlias = Literal["compaction", "rewind", "change"]
"""Why a recording has a new list: it summarised, it went back, or it changed what it had sent."""


class MarkedPlace(NamedTuple):
    """Where a request has a `cache_control` marker."""

    message: int | None
    """The index of the message; None for the tools and the system prompt, counted together."""
    mark: MarkedBlock


class ClientLayout(NamedTuple):
    """Where a client puts its breakpoints, if its recordings do not show them."""

    head: bool = True
    """At the end of the system prompt, behind the tools."""
    newest: bool = True
    """At the end of the newest message, and so another one in each request."""


SYSTEM_AND_NEWEST = ClientLayout()


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a recording shows of one request to a model, seen against the request before it."""

    new: tuple[Message, ...]
    """What was put into the context since the call before, that call's reply included."""
    anew: bool = False
    """`new` is the whole context: the first call, or the recording's own compaction or rewind."""
    usage: Usage | None = None
    """What was billed for it, None where the recording does not tell."""
    language_model: str | None = None
    """The name that the recording gives."""
    at: float | None = None
    """When its reply was recorded, in seconds since 1970."""
    system: object = None
    """The request's own system prompt, where the recording has it apart from the messages."""
    tools: object = None
    """The schemas of the tools on offer, where the recording has them."""
    marks: tuple[MarkedPlace, ...] | None = None
    """Where the request had `cache_control` markers; None where the recording does not say."""
    why_anew: Anew | None = None
    """Why the context is another one; None for the first call and where it only grew."""
    window: int | None = None
    """The context window that the client counted on, in tokens, where the recording tells."""
    id: str = ""
    """By which another file that repeats the call is known; empty where it is not."""
    left: tuple[Message, ...] = ()
    """What came after the call before, such as its reply, and was compacted without a call."""


@dataclass(frozen=True, slots=True)
class SummedBill:
    """What several calls were billed together, where a recording knows no more than the sum."""

    usage: Usage
    """Of all these calls; without a prompt where nobody knows."""
    calls: int
    """How many, from the first of the session on."""
    beside: int = 0
    """Tokens of each prompt that no message shows, such as the schemas of tools."""


@dataclass(frozen=True, slots=True)
class Unread(Summable):
    """How much of a file is not understood."""

    records: int = 0
    bytes: int = 0


NOTHING_UNREAD = Unread()


@dataclass(frozen=True, slots=True)
class Recording:
    """A session of one agent. A message is the same object from call to call.

    Each record is in the messages, in `not_prompt`, or in `not_understood`.
    """

    name: str
    """The file's, with `#` and the id or number of the conversation where a file holds several."""
    format: str
    """Its reader's name, such as `claude-code`."""
    calls: tuple[ModelCall, ...]
    after: tuple[Message, ...] = ()
    """What came after the last call: its reply, and results that no call was made with."""
    after_anew: bool = False
    """`after` is the whole context: a compaction or rewind was the last that happened."""
    bill: SummedBill | None = None
    """What calls without a usage of their own were billed together."""
    layout: ClientLayout = SYSTEM_AND_NEWEST
    """Where the client's breakpoints are in calls that do not say."""
    records: int = 0
    """How many it was read from."""
    not_prompt: Mapping[str, int] = field(default_factory=dict)
    """Records that are known to be no part of a prompt: how many, by what they are."""
    not_understood: Mapping[str, int] = field(default_factory=dict)
    """What was skipped because no reader knows what it means: how often, by what it is."""
    unread: Unread = NOTHING_UNREAD
    """How many records those are, and how much they and such parts of messages hold."""
    repeated: int = 0
    """How many calls `counted_once` took out."""
    project: str = ""
    """What it was recorded in, such as the working directory; empty where it does not say."""

    def counted_once(self, seen: set[str]) -> Recording:
        """Return the recording without the calls that were `seen`, and add its own to them.

        A resumed or forked session repeats the calls of its parent. Their messages stay.
        """
        kept: list[ModelCall] = []
        before: list[Message] = []
        anew, why = False, None
        again = repeats((call.id for call in self.calls), seen)
        for call, is_again in zip(self.calls, again, strict=True):
            if call.anew:
                before, anew, why = [], True, call.why_anew
            before += call.new
            if not is_again:
                why = why if kept else None
                kept.append(replace(call, new=tuple(before), anew=anew, why_anew=why))
                before, anew, why = [], False, None
        if len(kept) == len(self.calls):
            return self
        after = self.after if self.after_anew else (*before, *self.after)
        return replace(
            self,
            calls=tuple(kept),
            after=after,
            after_anew=self.after_anew or anew,
            repeated=len(self.calls) - len(kept),
        )

    @property
    def last(self) -> float | None:
        """When its last call was made, in seconds since 1970; None where it does not say."""
        return max((call.at for call in self.calls if call.at is not None), default=None)

    def until(self, call: int) -> Recording:
        """Return the recording as it was when a call, counted from 1, was made.

        Its `messages()` are what the call was made with.
        """
        return replace(self, calls=self.calls[:call], after=(), after_anew=False)

    def messages(self) -> list[Message]:
        """Return the context at the end of the recording."""
        last = () if self.after_anew else deque(self.contexts(), maxlen=1)
        return [*chain.from_iterable(last), *self.after]

    def contexts(self) -> Iterator[list[Message]]:
        """Yield the context at each call.

        One list grows from call to call, and another one takes its place where the context begins
        anew: copy what is to be kept.
        """
        context: list[Message] = []
        for call in self.calls:
            if call.anew:
                context = []
            context.extend(call.new)
            yield context


def repeats(ids: Iterable[str], seen: set[str]) -> Iterator[bool]:
    """Yield of each id of a call whether it was `seen`, and add it; an empty one never was."""
    for one in ids:
        is_again = bool(one) and one in seen
        seen.add(one)
        yield is_again


def is_used_since(last: float | None, since: float | None) -> bool:
    """Return whether a session with its last call at a time is not left out by `--since`."""
    return since is None or last is None or last >= since


_message = attrgetter("message")


class RecordedItems:
    """What a session's list was recorded as, beside the list that the session sees.

    They are the same until a compaction puts messages of its own in the place of others.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._partners: dict[int, int] = {}
        self._origins: list[int | None] = []
        """Where each message of the session's list was recorded; None for what was written."""
        self._before: tuple[Conversation, list[int | None]] | None = None
        """The list that was compacted last, and where its messages were recorded."""
        self._messages = 0
        """How many were recorded so far."""
        self.differs = False

    def items(self, conversation: Conversation) -> Sequence[Item]:
        """Return the items as they were recorded."""
        return self._items if self.differs else conversation.items

    def take(self, conversation: Conversation) -> None:
        """Take what is new in the session's list; a compaction writes nothing behind its end."""
        if not self.differs:
            return
        origins = self._origins_of(conversation)
        for message in range(len(origins), conversation.reading.message_count):
            for position in conversation.items_of(message):
                item, first = conversation.items[position], len(self._items)
                inside = None if item.inside is None else first - (position - item.inside)
                self._items.append(item._replace(message=self._messages, inside=inside))
            origins.append(self._messages)
            self._messages += 1

    def compacted(self, conversation: Conversation, parts: Partition, written: int) -> None:
        """Know that messages of the list gave way to as many as were `written`."""
        if not self.differs:
            self._items = list(conversation.items)
            self._messages = conversation.reading.message_count
            self._origins = list(range(self._messages))
            self.differs = True
        self._partners |= self.partners(conversation)
        origins = self._origins
        kept = [i for i in range(len(origins)) if i not in conversation.removed]
        around = parts.around
        before = [origins[i] for i in kept if i < parts.start or i in around.before]
        after = [origins[i] for i in kept if i in around.after]
        behind = [origins[i] for i in kept if i in around.behind]
        behind += [origins[i] for i in kept if i >= parts.end]
        self._before = conversation, origins
        self._origins = [*before, None, *after, *[None] * (written - 1), *behind]

    def position(self, conversation: Conversation, position: int) -> int | None:
        """Return where an item of the session's list was recorded, None for what was written."""
        if not self.differs:
            return position
        message = conversation.items[position].message
        origins = self._origins_of(conversation)
        if message >= len(origins) or (origin := origins[message]) is None:
            return None
        first = bisect_left(self._items, origin, key=_message)
        return first + position - conversation.items_of(message).start

    def partners(self, conversation: Conversation) -> dict[int, int]:
        """Return calls by their results and results by their calls, as they were recorded."""
        if not self.differs:
            return conversation.reading.partners
        return self._partners | dict(self._mapped(conversation))

    def _origins_of(self, conversation: Conversation) -> list[int | None]:
        is_before = self._before is not None and self._before[0] is conversation
        return self._before[1] if self._before is not None and is_before else self._origins

    def _mapped(self, conversation: Conversation) -> Iterator[tuple[int, int]]:
        for one, other in conversation.reading.partners.items():
            pair = self.position(conversation, one), self.position(conversation, other)
            if pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]
