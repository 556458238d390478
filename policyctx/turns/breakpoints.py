"""The cache breakpoints of a turn: which block each stands on, and what the next turn must know.

A prefix is recognised by the characters before its last block and by the hash of that block as it
was sent, also after a restart and in a list that is read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from policyctx.definitions.items import Message, Path, Ttl
from policyctx.messages.markers import (
    blocks_of_system,
    blocks_of_tools,
    places_for_text,
    places_for_tools,
    ttls_of,
    with_ttls,
)
from policyctx.planning.anchors import (
    Anchors,
    Breakpoint,
    BreakpointPlace,
    Part,
    Removable,
    anchors,
    breakpoints,
)
from policyctx.planning.decisions import Decision
from policyctx.turns.known_list import KnownList
from policyctx.turns.request import Request
from policyctx.turns.sources import position_of

_HOUR = 3600
# The kinds of items that may have no marker, and those that may have one without any text.
_NEVER = frozenset({"thinking", "unknown"})
_ALWAYS = frozenset({"tool_call", "tool_result"})


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a list up to and with one block, as it was sent."""

    chars: int
    """Characters of the items before the block."""
    sha256: str
    """Of the text of the block, in hex."""


@dataclass(frozen=True, slots=True)
class SentAnchors:
    """The prefixes that a request ended with a breakpoint; None for none. See `Anchors`."""

    anchor: Prefix | None = None
    last: Prefix | None = None
    old: Prefix | None = None
    before: Prefix | None = None

    def record(self) -> dict[str, Any]:
        """Return the prefixes as a record for the store."""
        return {"record": "breakpoints", **asdict(self)}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> SentAnchors:
        """Return the prefixes of a record."""
        given = {name: record[name] for name in cls.__slots__ if record[name] is not None}
        return cls(**{name: Prefix(**prefix) for name, prefix in given.items()})

    def __iter__(self) -> Iterator[Prefix]:
        found = (self.anchor, self.last, self.old, self.before)
        return (prefix for prefix in found if prefix is not None)


@dataclass(frozen=True, slots=True)
class Placed:
    """The breakpoints of one request, of which those in the messages are on items."""

    breakpoints: tuple[Breakpoint, ...]
    sent: SentAnchors

    def ttls(self, part: Part) -> dict[int, Ttl]:
        """Return the lifetimes in one part of the request, by place."""
        return {each.place: each.ttl for each in self.breakpoints if each.part == part}

    def beside(self, given: Request) -> tuple[object, object]:
        """Return the system prompt and the tools with markers at the breakpoints alone.

        What changes is a copy, and a text that gets a marker becomes a block.
        """
        system, tools = blocks_of_system(given.system), blocks_of_tools(given.tools)
        return (
            given.system
            if system is None
            else with_ttls(given.system, system, self.ttls("system")),
            given.tools if tools is None else with_ttls(given.tools, tools, self.ttls("tools")),
        )


class Placing:
    """Places the breakpoints of one list that grows; a turn costs what is new in it."""

    def __init__(self, known: KnownList) -> None:
        self.known = known
        self._in = known.conversation
        self._removable = Removable(self._in, known.planner.candidates.values())
        self._ends: dict[Prefix, int] | None = None
        """The last items of the prefixes that the request before ended with a breakpoint."""

    def placed(
        self,
        request: Request,
        earlier: SentAnchors,
        new: Sequence[Decision] = (),
        *,
        write_ttl: int | None = None,
    ) -> Placed:
        """Return the breakpoints of the list that is sent with this request.

        `earlier` is what the request before had, and `new` are decisions that are not carried out
        yet. `write_ttl` is the TTL of the last write that the provider billed, in seconds.
        """
        sent = _AsSent(self.known, new)
        found = anchors(len(self._in.items), self._removable.first(new), sent.back)
        now = SentAnchors(*(None if end is None else sent.prefix(end) for end in found[:2]))
        # The same list again is another attempt at the same request.
        is_again = not new and (now.anchor, now.last) == (earlier.anchor, earlier.last)
        if self._ends is None:
            self._ends = dict(sent.found(earlier))
        now = replace(
            now,
            old=earlier.old if is_again else earlier.anchor,
            before=earlier.before if is_again else earlier.last,
        )
        found = Anchors(
            found.anchor, found.last, self._end(now.old, sent), self._end(now.before, sent)
        )
        system, tools = blocks_of_system(request.system), blocks_of_tools(request.tools)
        chosen = breakpoints(
            found,
            "1h" if self._in.policy.model.cache.seconds(write_ttl) >= _HOUR else "5m",
            system=None
            if system is None
            else BreakpointPlace(max(places_for_text(system), default=None), ttls_of(system)),
            tools=None
            if tools is None
            else BreakpointPlace(max(places_for_tools(tools), default=None)),
            last=None if found.last is None else self.known.ttl(found.last),
        )
        if not new:
            self._ends = {sent.prefix(end): end for end in found if end is not None}
        return Placed(tuple(map(self._named, chosen)), now)

    def marked(self, messages: Sequence[Message], placed: Placed) -> Sequence[Message]:
        """Return the list that is sent with markers at the breakpoints alone.

        `messages` is the list as it is returned; it comes back if nothing changes. A message that
        gets or loses a marker is a copy.
        """
        known = self.known
        ttls: dict[int, dict[Path, Ttl]] = {}
        for position, ttl in placed.ttls("messages").items():
            message = self._in.items[position].message
            ttls.setdefault(message, {})[known.path_left(position)] = ttl
        new: list[Message] = []
        for message in sorted(known.marked | ttls.keys()):
            marked = known.with_markers(message, ttls.get(message, {}))
            if marked is None or marked is known.left[message]:
                continue
            if (at := position_of(known.sources, message)) is not None:
                new = new or list(messages)
                new[at] = marked
        return new or messages

    def _named(self, one: Breakpoint) -> Breakpoint:
        if one.part != "messages":
            return one
        item = self._in.items[one.place]
        return replace(one, item=f"{item.kind} {item.item_id}")

    def _end(self, prefix: Prefix | None, sent: _AsSent) -> int | None:
        """Return the item with which a prefix ends, None if the list does not begin with it."""
        end = None if prefix is None or self._ends is None else self._ends.get(prefix)
        if end is None or end >= sent.first_new or sent.prefix(end) != prefix:
            return None
        return end if sent.back(end) == end else None


class _AsSent:
    """The items of a list as they are sent, by position."""

    def __init__(self, known: KnownList, new: Sequence[Decision]) -> None:
        self._known, self._in = known, known.conversation
        self._new = {decision.position: decision for decision in new} if new else {}
        self._prefixes: dict[int, Prefix] = {}
        self.first_new = min(self._new, default=len(self._in.items))
        """The first item that a new decision changes."""

    def back(self, position: int) -> int | None:
        """Return the last item at or before a position that may have a marker."""
        while position >= 0:
            if self._may_have_marker(position):
                return position
            message = self._in.items[position].message
            if message in self._in.removed:
                message = self._last_staying(message) + 1
                position = self._in.items_of(message).start
            position -= 1
        return None

    def prefix(self, end: int) -> Prefix:
        """Return the prefix that ends with an item, without the new decisions."""
        if (found := self._prefixes.get(end)) is None:
            message = self._in.items[end].message
            inside = range(self._in.items_of(message).start, end)
            chars = self._in.tally("chars").before(message) + sum(map(self._chars, inside))
            found = self._prefixes[end] = Prefix(chars, _sha256(self._text(end)))
        return found

    def found(self, wanted: Iterable[Prefix]) -> Iterator[tuple[Prefix, int]]:
        """Yield each of these prefixes with which the list begins, and the item that ends it."""
        by_chars: dict[int, list[Prefix]] = {}
        for prefix in wanted:
            by_chars.setdefault(prefix.chars, []).append(prefix)
        chars = 0
        for position in range(len(self._in.items) if by_chars else 0):
            for prefix in by_chars.get(chars, ()):
                if self.back(position) == position and prefix.sha256 == _sha256(
                    self._text(position)
                ):
                    yield prefix, position
            chars += self._chars(position)

    def _chars(self, position: int) -> int:
        return self._in.size(position, "chars") if self._in.items[position].inside is None else 0

    def _text(self, position: int) -> str | None:
        """Return the text of an item as it is sent, None if it is not."""
        fate = self._new.get(position) or self._in.fates.get(position)
        return self._in.items[position].text if fate is None else fate.placeholder

    def _may_have_marker(self, position: int) -> bool:
        item, text = self._in.items[position], self._text(position)
        if item.inside is not None or item.kind in _NEVER or text is None:
            return False
        return item.kind in _ALWAYS or bool(text.strip())

    def _last_staying(self, message: int) -> int:
        """Return the last message before this one that was not removed, -1 without one."""
        ranges = (one for one in self._known.sources if one is not None and one.start < message)
        return max((min(one.stop, message) - 1 for one in ranges), default=-1)


def _sha256(text: str | None) -> str:
    return hashlib.sha256((text or "").encode("utf-8", "surrogatepass")).hexdigest()
