"""`Result`: the outcome of a turn, and what is in the context after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policyctx.compaction.assembly import CompactStats, SummaryUsage
from policyctx.definitions.items import Message
from policyctx.messages.sources import Sources, indices, joined, through
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import Reason
from policyctx.planning.facts import Added
from policyctx.planning.ledger import LedgerEntry
from policyctx.planning.plan import Plan
from policyctx.turns.breakpoints import Breakpoints
from policyctx.turns.memory import Memory
from policyctx.turns.replacement import Replaced, Replacement


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction that was made."""

    replaced: Replaced
    """The list; its sources and places are those in the list before, as it was given."""
    replacement: Replacement
    summary: str
    stats: CompactStats
    archive_path: str | None
    """Absolute; None where nothing was archived."""
    warnings: tuple[str, ...] = ()
    added: Added = field(default_factory=Added)
    """The sizes of what it wrote."""

    @property
    def messages(self) -> list[Message]:
        """The list in which the messages are replaced."""
        return self.replaced.messages


class NotCompacted(NamedTuple):
    """A compaction that was not made: why, and the usage of the attempts at its summary."""

    warnings: tuple[str, ...]
    usage: SummaryUsage
    reason: Reason = Reason("not_summarised")
    refused: int = 0
    """Tokens of a summary that was refused as too large for what it replaces; 0 for none."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a turn: the messages to send, and the plan that was carried out.

    `messages` is the list object that was given if it can be sent unchanged. `warnings` says what
    could not be done and was left as it was.
    """

    messages: Sequence[Message]
    plan: Plan
    warnings: tuple[str, ...] = ()
    compaction: Compacted | None = None
    """The compaction that was made; None for none, and then `warnings` may say why."""
    summary_usage: SummaryUsage = field(default_factory=SummaryUsage)
    """The usage of the model calls for a summary, also if no summary was accepted."""
    system: object = None
    """The system prompt to send: with markers if the policy places breakpoints, else as given."""
    tools: object = None
    """The tools to send, like `system`."""
    breakpoints: Breakpoints = field(default_factory=Breakpoints)
    """The cache breakpoints that the policy placed, in the order of the request."""
    source_ranges: Sources = ()
    """`sources` as ranges of consecutive indices, with None for one inserted message."""

    @property
    def sources(self) -> tuple[int | None, ...]:
        """For each message its index in the list given to this call; None for an inserted one.

        A message with a source is the object that was given, or the edit of it. Messages are
        inserted by a compaction, made now or in an earlier turn, and between two of one role for an
        API that refuses these. The indices ascend. Of
        `on_tool_result`, 0 is `call` if it was given, and `message` follows. The tuple is made
        anew at each access.
        """
        return indices(self.source_ranges)

    def without_first(self) -> Result:
        """Return the result without the message that was given first; the plan still has it."""
        kept = [i for i, source in enumerate(self.sources) if source != 0]
        return replace(
            self,
            messages=[self.messages[i] for i in kept],
            source_ranges=joined(range(s - 1, s) for s in self.sources if s),
        )

    def in_places(self, places: Sequence[int | None]) -> Result:
        """Return the result of a list whose messages were at these places of the given one."""
        ranges = joined(None if place is None else range(place, place + 1) for place in places)
        return replace(self, source_ranges=through(self.source_ranges, ranges))

    @property
    def compacted(self) -> bool:
        """Whether history was replaced by a summary."""
        return self.compaction is not None

    @property
    def offloaded_count(self) -> int:
        """The number of items that this turn moved from the context to a file."""
        return len(self.plan.to_save)

    @property
    def freed_chars(self) -> int:
        """Characters of the newly saved items; placeholders are not deducted."""
        return self.plan.freed_chars

    @property
    def net_freed_chars(self) -> int:
        """Characters of the newly saved items less their placeholders; may be negative."""
        return self.plan.net_freed_chars

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of the newly saved items, in the order of the items."""
        return tuple(d.file.path for d in self.plan.to_save if d.file)


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One item of a context: its identity, and whether it is still in the context."""

    item_id: str
    type: str
    """The item type of the policy."""
    tool: str | None = None
    tool_use_id: str | None = None
    offloaded: bool = False
    """Whether a step moved its content to a file of the store."""
    offload_path: str | None = None
    """Absolute path of that file."""
    destroyed: bool = False
    """Whether its content is no longer in the context, replaced by a placeholder or removed."""


def context_items(memory: Memory, root: str) -> tuple[ContextItem, ...]:
    """Return the items that left the session and are not in the list, then those of the list.

    The list is the one that was given last; `root` is the absolute path of the store's folder.
    """
    conversation = None if memory.known is None else memory.known.conversation
    ledger = memory.ledger
    known = {} if conversation is None else conversation.entries()
    here = {entry.key for entry in known.values()}
    away = [_left(entry, root) for key, entry in ledger.entries.items() if key not in here]
    there = () if conversation is None else _in_list(conversation, known, root)
    return (*away, *there)


def _in_list(
    conversation: Conversation, known: dict[int, LedgerEntry], root: str
) -> Iterator[ContextItem]:
    for position, item in enumerate(conversation.items):
        if position in known:
            yield _left(known[position], root)
            continue
        seen = ContextItem(item.item_id, item.type, item.tool, item.tool_use_id)
        yield _taken(seen, known[item.inside], root) if item.inside in known else seen


def _left(entry: LedgerEntry, root: str) -> ContextItem:
    call_id = entry.key.tool_use_id
    return _taken(ContextItem(entry.item_id, entry.item_type, entry.tool, call_id), entry, root)


def _taken(seen: ContextItem, entry: LedgerEntry, root: str) -> ContextItem:
    """Return an item that left with the decision of an entry."""
    path = None if entry.relative_path is None else f"{root}/{entry.relative_path}"
    return replace(seen, offloaded=path is not None, offload_path=path, destroyed=True)
