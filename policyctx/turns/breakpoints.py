"""The cache breakpoints of a turn: which block each stands on.

Two of them are those of the request before. After a restart they follow from where that request
ended and from what was decided before this one.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

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
from policyctx.planning.anchors import (
    Anchors,
    Breakpoint,
    BreakpointPlace,
    Breakpoints,
    Part,
    Removable,
    anchors,
    breakpoints,
)
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import Decision
from policyctx.planning.facts import Request, takes_markers_of
from policyctx.turns.known_list import KnownList

_HOUR = 3600
# The kinds of items that may have no marker, and those that may have one without any text.
_NEVER = frozenset({"thinking", "unknown"})
_ALWAYS = frozenset({"tool_call", "tool_result"})


class Marked(NamedTuple):
    """What is sent, with its markers: these fields of a `Result`."""

    messages: Sequence[Message]
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

    def marked(
        self, messages: Sequence[Message], request: Request, write_ttl: int | None
    ) -> Marked:
        """Return the messages of a turn, and its request, with markers at the breakpoints alone.

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
        return Marked(self._with_markers(messages, parts["messages"]), system, tools, chosen)

    def _with_markers(
        self, messages: Sequence[Message], places: Mapping[int, Ttl]
    ) -> Sequence[Message]:
        """Return the list, as it is returned, with markers at these items alone."""
        known = self.known
        ttls: dict[int, dict[Path, Ttl]] = {}
        for position, ttl in places.items():
            message = self._in.items[position].message
            ttls.setdefault(message, {})[known.path_left(position)] = ttl
        new: list[Message] = []
        for message in sorted(known.marked | ttls.keys()):
            marked = known.with_markers(message, ttls.get(message, {}))
            if marked is None or marked is known.left[message]:
                continue
            if (at := known.place(message)) is not None:
                new = new or list(messages)
                new[at] = marked
        return new or messages

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
        return replace(one, item=f"{item.kind} {item.item_id}")

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
