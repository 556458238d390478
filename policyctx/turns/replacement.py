"""`Replacement`: one compaction as it is recorded, recognised in a list, and applied to it again.

The messages that it replaced are recognised by their position behind the head and by what is left
of each. What earlier decisions left of a message counts as the message, and `cache_control` markers
are no part of what is recognised. They are replaced by the same messages again, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import is_, is_not, itemgetter
from typing import Any, NamedTuple, TypeAlias

from policyctx.compaction.assembly import WrittenMessage
from policyctx.definitions.items import Message, Path
from policyctx.messages.json_text import json_pieces
from policyctx.messages.markers import bare
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.messages.shapes.shape import SYSTEM_ROLES, head_of
from policyctx.messages.sources import Sources, joined, part, without_markers
from policyctx.planning.compact import Around
from policyctx.planning.ledger import ItemKey, Trace

# By the path of a marker in a message: its path in the edited message.
Places: TypeAlias = "Mapping[Path, Path]"
_NO_PLACES: Mapping[int, Places] = {}  # a read-only view of it could not be pickled
# The keys of a message in a record, which is written alike for all shapes.
_MESSAGE_KEYS = ("role", "content")


class Replaced(NamedTuple):
    """A list in which compactions replaced messages."""

    messages: list[Message]
    sources: Sources
    """Of the messages in the list that the caller gave."""
    places: Mapping[int, Places] = _NO_PLACES
    """For each kept message that was edited, by its position: where its markers are left."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One compaction: the messages that it replaced, and the messages that it wrote instead."""

    skipped: int
    """The number of messages between the head and the first replaced one."""
    count: int
    """The number of replaced messages, including one among them that was carried over."""
    sha256: str
    """Of the replaced messages, by `digest_of_traces`."""
    written: tuple[WrittenMessage, ...]
    summary: str
    """The summary without the wording around it."""
    pinned: tuple[str, ...] = ()
    """Texts that the summary contains verbatim."""
    gone: tuple[ItemKey, ...] = ()
    """The ledger's keys of the replaced items."""
    step: str = ""
    archive: str | None = None
    """The path of the archive below the store's root."""
    carried: int | None = None
    """The 0-based index of the replaced message that follows those written unchanged, if any."""
    kept: tuple[int, ...] = ()
    """The 0-based indices of the replaced messages that stay; see `Around`."""
    ends_list: bool = True
    """Whether nothing followed the replaced messages, so that the list may end with a reply."""
    drops: int | None = None
    """The number of items that had been dropped in the session; messages of which nothing was left
    do not count. None for a record of earlier versions: all messages count there, and `sha256` is
    that of the messages as they were given."""
    held: tuple[ItemKey, ...] = ()
    """The dropped items that were in the list all the same, up to the end of what was replaced."""

    def record(self) -> dict[str, Any]:
        """Return the replacement as a record for the store."""
        return {
            "record": "compaction",
            "step": self.step,
            "skipped": self.skipped,
            "count": self.count,
            "sha256": self.sha256,
            "messages": [{"role": one.role, "content": one.text} for one in self.written],
            "types": [one.item_type for one in self.written],
            "paths": [one.path for one in self.written],
            "summary": self.summary,
            "pinned": list(self.pinned),
            "gone": [list(key) for key in self.gone],
            "archive": self.archive,
            "carried": self.carried,
            "ends_list": self.ends_list,
            **({"kept": list(self.kept)} if self.kept else {}),
            **({} if self.drops is None else {"drops": self.drops}),
            **({"held": [list(key) for key in self.held]} if self.held else {}),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Replacement | None:
        """Return the replacement of a record, None for a record of another kind."""
        if record.get("record") != "compaction":
            return None
        texts = map(itemgetter(*_MESSAGE_KEYS), record["messages"])
        columns = record["types"], record["paths"]
        return cls(
            skipped=record["skipped"],
            count=record["count"],
            sha256=record["sha256"],
            written=tuple(
                WrittenMessage(role, text, item_type, path)
                for (role, text), item_type, path in zip(texts, *columns, strict=True)
            ),
            summary=record["summary"],
            pinned=tuple(record["pinned"]),
            gone=tuple(ItemKey(*key) for key in record["gone"]),
            step=record["step"],
            archive=record["archive"],
            carried=record.get("carried"),
            ends_list=record.get("ends_list", True),
            kept=tuple(record.get("kept", ())),
            drops=record.get("drops"),
            held=tuple(ItemKey(*key) for key in record.get("held", ())),
        )

    def applied(self, given: Replaced, traces: Sequence[Trace], shapes: Shapes) -> Replaced | None:
        """Return the list with the messages replaced; None if it does not contain them.

        `traces` are those of its messages.

        If the list ends with them, and did not when it was compacted, the reply at the end of the
        written messages is left out: a provider rejects an assistant message at the end.
        """
        messages, sources, edits = given.messages, given.sources, given.places
        places = self._places(messages, traces, shapes)
        replaced = [messages[i] for i in places]
        if not replaced or not self._is_of(replaced, [traces[i] for i in places], shapes):
            return None
        start, end = places[0], places[-1] + 1
        while start and self._is_gone(traces[start - 1]):
            start -= 1
        while end < len(messages) and self._is_gone(traces[end]):
            end += 1
        systems = [i for i in self.kept if shapes.role(replaced[i]) in SYSTEM_ROLES]
        kept, after, carried = (
            [range(places[i], places[i] + 1) for i in indexes]
            for indexes in Around.of(self.kept, self.carried, systems)
        )
        before, behind = (range(start), *kept), (*carried, range(end, len(messages)))
        written = self.written if any(behind) or self.ends_list else self.unanswered
        shape = shapes.writing(replaced)
        first, *more = (shape.written(one.role, one.text) for one in written)
        new = [
            *(messages[i] for i in chain(*before)),
            first,
            *(messages[i] for i in chain(*after)),
            *more,
            *(messages[i] for i in chain(*behind)),
        ]
        if end == len(messages) and any(behind):
            last, message = shapes.shaped(new[-1])
            if last.role(message) == "assistant" and not last.stays(message):
                return None  # a call that waits for its output, and nothing behind it any more
        groups = (before, after, behind)
        earlier, middle, later = ([part(sources, one) for one in places] for places in groups)
        origins = [*chain(*before), None, *chain(*after), *repeat(None, len(more)), *chain(*behind)]
        return Replaced(
            new,
            joined(chain(*earlier, [None], *middle, repeat(None, len(more)), *later)),
            {at: edits[i] for at, i in enumerate(origins) if i is not None and i in edits},
        )

    @property
    def summaries(self) -> list[str]:
        """The texts of the messages with the summary."""
        return [one.text for one in self.written if one.item_type == "compaction_summary"]

    @property
    def unanswered(self) -> tuple[WrittenMessage, ...]:
        """The written messages without a reply at the end."""
        last = max(i for i, message in enumerate(self.written) if message.role == "user")
        return self.written[: last + 1]

    def _places(
        self, messages: Sequence[Message], traces: Sequence[Trace], shapes: Shapes
    ) -> Sequence[int]:
        """Return where the replaced messages would be in a list, empty if it is too short."""
        there: Sequence[int] = range(len(messages))
        if self.drops is not None:
            drops, held = self.drops, self.held
            there = [i for i in there if not traces[i] or left_of(traces[i], drops, held)]
        start = head_of(shapes.role(messages[i]) for i in there) + self.skipped
        found = there[start : start + self.count]
        return found if len(found) == self.count else ()

    def _is_gone(self, trace: Trace) -> bool:
        """Whether nothing was left of a message beside the others that were replaced."""
        return bool(trace) and all(drop is not None and key in self.gone for key, drop in trace)

    def _is_of(self, replaced: Sequence[Message], traces: Sequence[Trace], shapes: Shapes) -> bool:
        """Whether these are the replaced messages, as SDK objects or as dicts saved of them."""
        if self.drops is not None:
            return self.sha256 == digest_of_traces(traces, self.drops, self.held)
        if self.sha256 in (digest(replaced, shapes), loose_digest(replaced, shapes)):
            return True
        # Earlier versions hashed a lone text block as it was, and before that the markers too.
        as_given = [without_markers(message, shapes) for message in replaced]
        if any(map(is_not, as_given, map(bare, as_given))):
            earlier = _digest(as_given), _digest([*map(shapes.comparable, as_given)])
            if self.sha256 in earlier:
                return True
        if all(map(is_, as_given, replaced)):
            return False
        return self.sha256 in (_digest(replaced), _digest([*map(shapes.comparable, replaced)]))


def left_of(trace: Trace, drops: int, held: Collection[ItemKey]) -> list[list[str | int | None]]:
    """Return what tells the items of a message from others, without those that were dropped.

    The first so many `drops` of the session count, except for those `held` in the list.
    """
    there = (key for key, drop in trace if drop is None or drop >= drops or key in held)
    return [list(key[:3]) for key in there]


def digest_of_traces(traces: Iterable[Trace], drops: int, held: Collection[ItemKey]) -> str:
    """Return the SHA-256, in hex, of what `left_of` returns for each message."""
    return _digest([left_of(trace, drops, held) for trace in traces])


def digest(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> str:
    """Return the hash of messages without their markers as compact JSON, for earlier versions.

    A lone text block counts as its text, since a marker makes a block of a text.
    If an SDK's message object is among them, it is the hash that `loose_digest` returns.
    """
    if not all(isinstance(message, dict) for message in messages):
        return loose_digest(messages, shapes)
    return _digest([bare(message) for message in messages])


def loose_digest(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> str:
    """Return the SHA-256, in hex, of messages without their markers and fields that are None.

    It is equal for an SDK's message object and for the dict that was saved of it.
    """
    found = (shapes.comparable(without_markers(message, shapes)) for message in messages)
    return _digest([*map(bare, found)])


def _digest(values: Sequence[object]) -> str:
    found = hashlib.sha256()
    for value in values:
        for piece in json_pieces(value):
            found.update(piece.encode("utf-8", "surrogatepass"))
        found.update(b"\n")
    return found.hexdigest()
