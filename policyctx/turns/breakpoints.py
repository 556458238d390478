"""Where the cache breakpoints of a turn go, so that an edit is billed for its tail alone.

A provider keeps an entry of its prompt cache for each breakpoint of a request. A client marks the
end of each request; behind that end are items that a policy edits later, so no entry ends before an
edit. Two anchors close the gap. `anchor` is the block before the first item that the policy could
still remove: it is written now, and read when that item is removed. `old` is the anchor of the
request before: on a request that edits, the cache is read up to it. After a restart it follows from
where that request ended and from what was decided before this one.

Blocks are named by integers that ascend in the order of the list as it is sent, such as the
positions of items. Only `Placing` reads a message.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, Self, TypeAlias

from policyctx.definitions.items import Message, Path, Ttl
from policyctx.messages.markers import (
    blocks_of_system,
    blocks_of_tools,
    has_functions,
    has_schemas,
    places_for_text,
    places_for_tools,
    ttls_of,
    with_ttls,
)
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import Decision
from policyctx.planning.facts import Request, takes_markers_of
from policyctx.planning.select import Candidates
from policyctx.turns.known_list import KnownList

Part: TypeAlias = Literal["tools", "system", "messages"]
"""The parts of a request, in the order in which a provider reads them."""
Why: TypeAlias = Literal["given", "system", "old", "anchor", "before", "last", "tools"]
"""Why a breakpoint is there: the caller `given` it, or it ends the `system` prompt, the `old`
anchor, the `anchor`, the request `before`, the list (`last`) or the `tools`."""

MOST_BREAKPOINTS = 4
_PARTS: tuple[Part, ...] = ("tools", "system", "messages")
_SECONDS: dict[Ttl, int] = {"5m": 300, "1h": 3600}
_NOTHING_GIVEN: Mapping[int, Ttl] = {}  # a read-only view of it could not be pickled


class Anchors(NamedTuple):
    """The blocks of a list after which the cache should be kept; None for none."""

    anchor: int | None
    last: int | None
    old: int | None = None
    """The anchor of the request before, None if the list does not begin with what ended there."""
    before: int | None = None
    """The last block of the request before, as far as the list begins with it."""


def anchors(end: int, removable: int | None, back: Callable[[int], int | None]) -> Anchors:
    """Return the anchors of a list that ends before block `end`, those of the request before apart.

    `removable` is the first block behind the newest edit that the policy could still change, None
    if there is none; the anchor is then the last block. `back` returns the last block at or before
    a block that may have a marker: none of thinking, and no empty text.
    """
    last = back(end - 1)
    return Anchors(last if removable is None else back(removable - 1), last)


class BreakpointPlace(NamedTuple):
    """A part of a request beside its messages, or the end of the messages, as the caller gave it.

    `end` is the last place in it that may have a marker, and `given` has the markers of the caller
    by place.
    """

    end: int | None = None
    given: Mapping[int, Ttl] = _NOTHING_GIVEN


class Breakpoint(NamedTuple):
    """One breakpoint of a request."""

    part: Part
    place: int
    """The index of a tool or of a block of the system prompt, or a block of the messages."""
    ttl: Ttl
    why: tuple[Why, ...]
    item: str = ""
    """The kind and the id of the item that the block is, such as `tool_call toolu_1`; empty beside
    the messages, and where nobody filled it in."""


class Breakpoints(tuple[Breakpoint, ...]):  # noqa: SLOT001 - it has an attribute
    """The breakpoints of one request, in its order."""

    why_none = ""
    """Why a policy that places breakpoints places none in this request; empty if it may."""

    @classmethod
    def none(cls, why: str) -> Self:
        """Return no breakpoints, and why."""
        made = cls()
        made.why_none = why
        return made


def breakpoints(
    found: Anchors,
    ttl: Ttl,
    *,
    system: BreakpointPlace | None = None,
    tools: BreakpointPlace | None = None,
    last: Ttl | None = None,
) -> tuple[Breakpoint, ...]:
    """Return the breakpoints of a request, in its order; never more than four.

    They are, from the most important on: the end of the system prompt, the anchor, the last block,
    the old anchor, the other markers that the caller set in the system prompt, the end of the
    request before, and the end of the tools if there is none. What has no slot left is left out.

    `ttl` is that of new markers. It is changed where an entry of an hour would follow one of five
    minutes, which a provider rejects. The caller's markers in the system prompt keep theirs, and so
    does the one that the caller set on the last block: `last`. A `system` of None is a prompt that
    is not known, for which one slot is left free.
    """
    slots: dict[tuple[int, int], list[Why]] = {}
    fixed: dict[tuple[int, int], Ttl] = {}
    most = MOST_BREAKPOINTS - (system is None)
    if last is not None and found.last is not None:
        fixed[_PARTS.index("messages"), found.last] = last
    if system is not None:
        fixed |= {(_PARTS.index("system"), place): each for place, each in system.given.items()}
    for part, place, why in _wanted(found, system, tools):
        key = _PARTS.index(part), place
        if key in slots:
            slots[key].append(why)
        elif len(slots) < most:
            slots[key] = [why]
    ordered, chosen = sorted(slots), list[Breakpoint]()
    for i, key in enumerate(ordered):
        after = [fixed[one] for one in ordered[i:] if one in fixed]
        wanted = max([ttl, *after], key=_SECONDS.__getitem__)
        new = min([wanted, *(each.ttl for each in chosen)], key=_SECONDS.__getitem__)
        chosen.append(Breakpoint(_PARTS[key[0]], key[1], fixed.get(key, new), tuple(slots[key])))
    return tuple(chosen)


def _wanted(
    found: Anchors, system: BreakpointPlace | None, tools: BreakpointPlace | None
) -> Iterator[tuple[Part, int, Why]]:
    """Yield the breakpoints, the most important first."""
    given = sorted(system.given, reverse=True) if system is not None else []
    if given:
        yield "system", given[0], "given"
    elif system is not None and system.end is not None:
        yield "system", system.end, "system"
    named: list[tuple[int | None, Why]] = [(found.anchor, "anchor"), (found.last, "last")]
    named.append((found.old, "old"))
    for block, why in named:
        if block is not None:
            yield "messages", block, why
    for place in given[1:]:
        yield "system", place, "given"
    if found.before is not None:
        yield "messages", found.before, "before"
    elif tools is not None and tools.end is not None:
        yield "tools", tools.end, "tools"


class Removable:
    """The first item behind the newest edit that a policy could still remove, as a list grows.

    That is an item that a step before a model call selects and that nothing holds for good: not its
    type, a pin, its size by the policy's own count, or a placeholder that would be no smaller.
    `keep_recent`, other passing reasons and gates do not count, since they end. Edits on arrival
    are no edits of what was sent. Items before the newest edit do not count. A turn visits
    what is new since the one before.
    """

    def __init__(self, conversation: Conversation, candidates: Iterable[Candidates]) -> None:
        self._in = conversation
        self._candidates = [
            each
            for each in candidates
            if each.step.on == "model_call" and not each.step.action.takes_messages
        ]
        self._arrival = {step.name for step in conversation.policy.steps("arrival")}
        self._changes_seen = 0
        self._next = 0
        self.newest = -1
        """The position of the newest item that was edited after it was sent, -1 without one."""

    def first(self, new: Sequence[Decision] = ()) -> int | None:
        """Return the position of the first item that an edit to come could change, or None.

        It may be that of a call or of thinking, if the result is removed together with it. `new`
        are decisions of a plan that is not carried out yet.
        """
        for position, _ in self._in.history[self._changes_seen :]:
            if self._in.fates[position].step not in self._arrival:
                self.newest = max(self.newest, position)
        self._changes_seen = len(self._in.history)
        self._next = max(self._next, self.newest + 1)
        if new:
            return self._behind(new)
        while self._next < len(self._in.items):
            if (changed := self._changed(self._next)) is not None:
                return changed
            self._next += 1
        return None

    def _behind(self, new: Sequence[Decision]) -> int | None:
        out = {decision.position for decision in new}
        edited = (each.position + 1 for each in new if each.step not in self._arrival)
        for position in range(max([self._next, *edited]), len(self._in.items)):
            if position in out or self._in.items[position].inside in out:
                continue
            if (changed := self._changed(position)) is not None:
                return changed
        return None

    def _changed(self, position: int) -> int | None:
        """Return the first item that changes when this one is removed, None if it stays."""
        first: int | None = None
        for each in self._candidates:
            changed = self._changed_by(each, position)
            if changed is not None and (first is None or changed < first):
                first = changed
        return first

    def _changed_by(self, candidates: Candidates, position: int) -> int | None:
        item, reading = self._in.items[position], self._in.reading
        if candidates.may_take_later(position):
            return self._first_with(candidates, position)
        if item.kind == "tool_call" and self._in.is_there(position):
            result = reading.partners.get(position)
            if result is None:
                # Only the result shows whether the call goes with it.
                is_pending = item.message >= self._in.checkpoint().pending
                return position if is_pending else None
            if candidates.may_take_later(result):
                first = self._first_with(candidates, result)
                return first if first <= position else None
        if item.kind == "thinking" and candidates.step.action.leaves_nothing:
            after = (i for i in reading.thought_of(position) if i > position)
            calls = [i for i in after if self._in.items[i].kind == "tool_call"]
            return position if any(self._changed_by(candidates, i) for i in calls) else None
        return None

    def _first_with(self, candidates: Candidates, position: int) -> int:
        """Return the first of the items that change when the step takes this one."""
        item = self._in.items[position]
        if item.inside is not None:
            position = item.inside
        if item.kind != "tool_result":
            first = position
        elif candidates.step.action.leaves_nothing or candidates.treatment(position).with_input:
            first = self._in.reading.partners.get(position, position)
        else:
            return position
        if candidates.step.action.leaves_nothing:
            first = self._in.reading.thought_of(first).start
        return min(first, position)


_HOUR = 3600
# The kinds of items that may have no marker, and those that may have one without any text.
_NEVER = frozenset({"thinking", "unknown"})
_ALWAYS = frozenset({"tool_call", "tool_result"})


class Marked(NamedTuple):
    """What is sent, with its markers."""

    changed: Mapping[int, Message]
    """The messages that get or lose a marker, by their places in the list that is returned."""
    system: object
    tools: object
    breakpoints: Breakpoints


class Placing:
    """Places the breakpoints of one list that grows; a turn costs what is new in it.

    It is made before the first decisions on the list are carried out: the request before had an
    anchor that they may move.
    """

    def __init__(self, known: KnownList, earlier: Placing | None = None) -> None:
        self.known = known
        self._in = known.conversation
        self._removable = Removable(self._in, known.planner.candidates.values())
        self._changes = len(self._in.history)
        self._sent = self._anchors_before() if earlier is None else self._same(earlier)
        """Those of the request before."""
        self._ahead = self._sent
        """Those of the next request, as they were found last."""

    def placed(
        self, request: Request, write_ttl: int | None, new: Sequence[Decision] = ()
    ) -> Breakpoints:
        """Return the breakpoints of the list that is sent with this request.

        `new` are decisions that are not carried out yet. `write_ttl` is the TTL of the last write
        that the provider billed, in seconds.
        """
        ahead = {decision.position: decision for decision in new}
        fates = ChainMap(ahead, self._in.fates)
        found = anchors(len(self._in.items), self._removable.first(new), partial(self._back, fates))
        changed = [*ahead, *(position for position, _ in self._in.history[self._changes :])]
        # The same list again is another attempt at the same request.
        is_again = not changed and found[:2] == self._sent[:2]
        earlier = self._sent[2:] if is_again else self._sent[:2]
        first = min(changed, default=len(self._in.items))
        old, before = (None if end is None or end >= first else end for end in earlier)
        found = found._replace(old=old, before=before)
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
        self._ahead = found
        return Breakpoints(map(self._named, chosen))

    def marked(self, request: Request, write_ttl: int | None) -> Marked:
        """Return the request of a turn with markers at the breakpoints alone.

        A message that gets or loses a marker is a copy, and so are the system prompt and the tools;
        a text that gets one becomes a block. What does not change is the same object.
        """
        chosen = self.placed(request, write_ttl)
        self._sent, self._changes = self._ahead, len(self._in.history)
        parts: dict[Part, dict[int, Ttl]] = {"tools": {}, "system": {}, "messages": {}}
        for each in chosen:
            parts[each.part][each.place] = each.ttl
        system, tools = request.system, request.tools
        if (blocks := blocks_of_system(system)) is not None:
            system = with_ttls(system, blocks, parts["system"])
        if (blocks := blocks_of_tools(tools)) is not None:
            tools = with_ttls(tools, blocks, parts["tools"])
        return Marked(self._changed(parts["messages"]), system, tools, chosen)

    def _changed(self, places: Mapping[int, Ttl]) -> Mapping[int, Message]:
        """Return the messages that change where these items alone have markers."""
        known = self.known
        ttls: dict[int, dict[Path, Ttl]] = {}
        for position, ttl in places.items():
            message = self._in.items[position].message
            ttls.setdefault(message, {})[known.path_left(position)] = ttl
        new: dict[int, Message] = {}
        for message in sorted(known.marked | ttls.keys()):
            marked = known.with_markers(message, ttls.get(message, {}))
            if marked is None or marked is known.left[message]:
                continue
            if (at := known.place(message)) is not None:
                new[at] = marked
        return new

    def _anchors_before(self) -> Anchors:
        """Return the anchors of the request before from where it ended."""
        end, first = self._in.items_of(self._in.sent).start, self._removable.first()
        first = None if first is None or first >= end else first
        return anchors(end, first, partial(self._back, self._in.fates))

    def _same(self, earlier: Placing) -> Anchors:
        """Return the anchors of another list as far as they are the same items of this one."""
        there = (filter(one.is_there, range(len(one.items))) for one in (earlier._in, self._in))
        before, now = earlier._in.identities, self._in.identities
        same: dict[int | None, int] = {
            one: other
            for one, other in zip(*there, strict=False)
            if one in earlier._sent and now.has_key(other, *before.key_and_chars(one))
        }
        return Anchors(*map(same.get, earlier._sent))

    def _named(self, one: Breakpoint) -> Breakpoint:
        if one.part != "messages":
            return one
        item = self._in.items[one.place]
        return one._replace(item=f"{item.kind} {item.item_id}")

    def _back(self, fates: Mapping[int, Decision], position: int) -> int | None:
        """Return the last item at or before a position that may have a marker after these fates."""
        while position >= 0:
            item, fate = self._in.items[position], fates.get(position)
            text = item.text if fate is None else fate.placeholder
            may_have = item.inside is None and item.kind not in _NEVER
            if may_have and text is not None and (item.kind in _ALWAYS or text.strip()):
                return position
            if item.message in self._in.removed:
                position = self._in.items_of(self._last_staying(item.message) + 1).start
            position -= 1
        return None

    def _last_staying(self, message: int) -> int:
        """Return the last message before this one that was not removed, -1 without one."""
        ranges = (one for one in self.known.sources if one is not None and one.start < message)
        return max((min(one.stop, message) - 1 for one in ranges), default=-1)


def why_unmarked(
    request: Request, conversation: Conversation, given: Sequence[Message], *, is_marked: bool
) -> str:
    """Return why no marker is set in a list that is sent with this request; empty if any may.

    No message may be of an API without markers. Of dicts, only OpenAI's lists begin with the
    system, and only OpenAI's tools are functions. `is_marked` says whether the caller has set
    markers in the list.
    """
    reading, tools = conversation.reading, blocks_of_tools(request.tools)
    name = request.model or conversation.policy.model.name
    why = ""
    if request.takes_markers is False:
        why = "the API of the request takes none"
    elif not given:
        why = "the list is empty"
    elif not reading.takes_markers:
        why = "a message is of an API that takes none"
    elif not isinstance(given[0], dict):
        pass  # the shape of a framework says it
    elif reading.roles[0] in SYSTEM_ROLES:
        why = "the list begins with the system prompt, as only OpenAI's lists do"
    elif has_functions(request.tools):
        why = "the tools are functions, as only OpenAI's are"
    elif (said := request.takes_markers or takes_markers_of(name)) is False:
        why = f"the API of {name} takes none"
    # A text beside the list proves nothing: it may be the `instructions` of the Responses API.
    elif not (
        said
        or reading.shows_markers
        or is_marked
        or isinstance(request.system, list | tuple)
        or has_schemas(tools or ())
    ):
        why = f"the model {name} is not in the table of models" if name else "no model is named"
        why += ", and nothing in the request shows that its API takes them"
    return why
