"""Layouts: where the breakpoints of a request stand, and what each is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from policyctx.definitions.request_content import Ttl
from policyctx.planning.anchors import Marked, anchors, breakpoints
from policyctx.replay.cache.anthropic import HOUR
from policyctx.replay.cache.requests import Breakpoint, LayoutName, Prefixes
from policyctx.replay.recording import ClientLayout
from policyctx.replay.sent_list import Prompt
from policyctx.replay.simulated import SimulatedCall

MEANINGS: dict[LayoutName, str] = {
    "recorded": "the breakpoints of the client, which move with its newest message",
    "last": "one breakpoint at the end of the request, as automatic caching sets it",
    "auto": "the breakpoints that a policy with `breakpoints: auto` sets",
    "ideal": "a breakpoint at every block, which no provider allows",
}
_MINUTES = 300


class Ttls(NamedTuple):
    """How long a call keeps what it writes, in seconds."""

    head: int
    """Tools and system prompt."""
    rest: int
    is_assumed: bool = False
    """Whether neither the call nor one before it says so."""


def ttls_of(calls: Sequence[SimulatedCall]) -> Iterator[Ttls]:
    """Yield the TTLs of the writes of each call: those of its terms.

    Where a call was billed for writes of both TTLs, the longer one comes first, as the provider
    demands, so it is that of tools and system prompt, there and in the calls after it.
    """
    head: dict[str | None, int] = {}
    for call in calls:
        usage, terms = call.usage, call.terms
        if usage is not None and usage.cache_write and usage.cache_write_1h is not None:
            hour = usage.cache_write_1h > 0 and terms.ttl == usage.write_ttl
            head[call.language_model] = HOUR if hour else terms.ttl
        yield Ttls(
            max(terms.ttl, head.get(call.language_model, 0)), terms.ttl, terms.ttl_is_assumed
        )


def breakpoints_of(
    layout: LayoutName, prompt: Prompt, client: ClientLayout, ttls: Ttls
) -> tuple[Breakpoint, ...]:
    """Return the breakpoints of a request under any layout but `auto`, in order.

    `ideal` has the last one only, for the TTL; its cache matches everywhere.
    """
    last = Breakpoint(prompt.end - 1, ttls.rest)
    if layout != "recorded":
        return (last,)
    if prompt.marks is not None:
        return tuple(Breakpoint(mark.block, mark.ttl or _MINUTES) for mark in prompt.marks)
    found = [Breakpoint(prompt.head - 1, ttls.head)] if client.head else []
    if client.newest and last.block >= prompt.head:
        found.append(last)
    return tuple(found)


class SentPrefix(NamedTuple):
    """A prefix that ended with a breakpoint."""

    block: int
    key: int


class AnchorLayout:
    """The breakpoints that a policy with `breakpoints: auto` sets, request after request.

    See `policyctx.planning.anchors`. Tools and system prompt have one at their end.
    """

    def __init__(self) -> None:
        self._anchor: SentPrefix | None = None
        self._last: SentPrefix | None = None

    def of(self, prompt: Prompt, prefixes: Prefixes, ttls: Ttls) -> tuple[Breakpoint, ...]:
        """Return the breakpoints of the next request, whose blocks `prefixes` hold."""
        head = prompt.head - 1
        found = anchors(
            prompt.end,
            prompt.removable,
            prefixes.markable,
            old=_there(self._anchor, prefixes),
            before=_there(self._last, prefixes),
        )
        self._anchor, self._last = (_prefix(block, prefixes) for block in found[:2])
        ttl: Ttl = "1h" if ttls.rest >= HOUR else "5m"
        chosen = breakpoints(found, ttl, system=Marked(head))
        blocks = {one.place: _SECONDS[one.ttl] for one in chosen}
        return tuple(Breakpoint(block, blocks[block]) for block in sorted(blocks))


_SECONDS = {"5m": _MINUTES, "1h": HOUR}


def _prefix(block: int | None, prefixes: Prefixes) -> SentPrefix | None:
    return None if block is None else SentPrefix(block, prefixes.keys[block])


def _there(prefix: SentPrefix | None, prefixes: Prefixes) -> int | None:
    """Return the last block of a prefix, None if the list does not begin with it."""
    if prefix is None or prefix.block >= len(prefixes.keys):
        return None
    return prefix.block if prefixes.keys[prefix.block] == prefix.key else None
