"""The replacements that compactions made, to apply them again to a list that was not replaced.

A caller may keep sending the full list. The messages that a compaction replaced are recognised by
their position behind the head and by their hash, also after a restart. They are replaced by the
same messages again, byte for byte and without another model call. `cache_control` markers are no
part of what is recognised: the kept messages have those of the list that is given.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from policyctx.messages.blocks import SYSTEM_ROLES, as_message, comparable, role_of
from policyctx.messages.json_text import compact_json
from policyctx.messages.markers import markers_of
from policyctx.planning.ledger import ItemKey
from policyctx.turns.comparison import differences, moved, without_markers
from policyctx.turns.sources import indices, joined, part, position_of, through, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policyctx.definitions.items import Message, Path
    from policyctx.turns.sources import Sources

# By the path of a marker in a message: its path in the edited message.
Places: TypeAlias = "Mapping[Path, Path]"


@dataclass(frozen=True, slots=True)
class Replaced:
    """A list in which compactions replaced messages."""

    messages: list[Message]
    sources: Sources
    """Of the messages in the list that the caller gave."""
    places: Mapping[int, Places] = field(default_factory=dict)
    """For each kept message that was edited, by its position: where its markers are left."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """One compaction: the messages that it replaced, and the messages that it wrote instead."""

    skipped: int
    """The number of messages between the head and the first replaced one."""
    count: int
    """The number of replaced messages, including one among them that was carried over."""
    sha256: str
    """Of the replaced messages, by `digest`."""
    messages: tuple[Message, ...]
    types: tuple[str, ...]
    """The item type of each of `messages`; empty for a reply."""
    paths: tuple[str, ...]
    """The path of the file that each of `messages` restores; empty for others."""
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
    """The 0-based index of the replaced message that follows `messages` unchanged, if any."""
    ends_list: bool = True
    """Whether nothing followed the replaced messages, so that the list may end with a reply."""

    def record(self) -> dict[str, Any]:
        """Return the replacement as a record for the store."""
        return {
            "record": "compaction",
            "step": self.step,
            "skipped": self.skipped,
            "count": self.count,
            "sha256": self.sha256,
            "messages": list(self.messages),
            "types": list(self.types),
            "paths": list(self.paths),
            "summary": self.summary,
            "pinned": list(self.pinned),
            "gone": [list(key) for key in self.gone],
            "archive": self.archive,
            "carried": self.carried,
            "ends_list": self.ends_list,
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Replacement | None:
        """Return the replacement of a record, None for a record of another kind."""
        if record.get("record") != "compaction":
            return None
        return cls(
            skipped=record["skipped"],
            count=record["count"],
            sha256=record["sha256"],
            messages=tuple(record["messages"]),
            types=tuple(record["types"]),
            paths=tuple(record["paths"]),
            summary=record["summary"],
            pinned=tuple(record["pinned"]),
            gone=tuple(ItemKey(*key) for key in record["gone"]),
            step=record["step"],
            archive=record["archive"],
            carried=record.get("carried"),
            ends_list=record.get("ends_list", True),
        )

    def applied(self, given: Replaced) -> Replaced | None:
        """Return the list with the messages replaced; None if it does not contain them.

        If the list ends with them, and did not when it was compacted, the reply at the end of the
        written messages is left out: a provider rejects an assistant message at the end.
        """
        messages, sources = given.messages, given.sources
        roles = map(role_of, messages)
        head = next((i for i, role in enumerate(roles) if role not in SYSTEM_ROLES), len(messages))
        start = head + self.skipped
        end = start + self.count
        replaced = messages[start:end]
        if len(replaced) < self.count or not self._is_of(replaced):
            return None
        first = end if self.carried is None else start + self.carried
        stays = slice(first, first + (self.carried is not None))
        behind = [*messages[stays], *messages[end:]]
        written = self.messages if behind or self.ends_list else self.unanswered
        places = (range(start), range(stays.start, stays.stop), range(end, len(messages)))
        before, *after = (part(sources, one) for one in places)
        found = chain(before, repeat(None, len(written)), *after)
        return Replaced([*messages[:start], *written, *behind], joined(found))

    @property
    def unanswered(self) -> tuple[Message, ...]:
        """The written messages without a reply at the end."""
        last = max(i for i, message in enumerate(self.messages) if message["role"] == "user")
        return self.messages[: last + 1]

    def _is_of(self, replaced: Sequence[Message]) -> bool:
        """Whether these are the replaced messages, as SDK objects or as dicts saved of them."""
        if self.sha256 in (digest(replaced), loose_digest(replaced)):
            return True
        if all(without_markers(message) is message for message in replaced):
            return False
        # Earlier versions hashed the markers too.
        return self.sha256 in (_digest(replaced), _digest([comparable(m) for m in replaced]))


def digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256, in hex, of messages without their markers as compact JSON.

    If an SDK's message object is among them, it is the hash that `loose_digest` returns.
    """
    if not all(isinstance(message, dict) for message in messages):
        return loose_digest(messages)
    return _digest([without_markers(message) for message in messages])


def loose_digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256, in hex, of messages without their markers and fields that are None.

    It is equal for an SDK's message object and for the dict that was saved of it.
    """
    return _digest([comparable(without_markers(message)) for message in messages])


def _digest(values: Sequence[object]) -> str:
    found = hashlib.sha256()
    for value in values:
        found.update(compact_json(value).encode("utf-8", "surrogatepass"))
        found.update(b"\n")
    return found.hexdigest()


@dataclass(slots=True)
class Replacements:
    """The compactions of a session in order, and the list to which they were applied last."""

    made: list[Replacement] = field(default_factory=list)
    _given: list[Message] = field(default_factory=list)
    _replaced: Replaced = field(default_factory=lambda: Replaced([], ()))
    _lacks_reply: bool = False
    """Whether the list ends where the reply of a compaction belongs when more messages follow."""

    def add(self, replacement: Replacement, given: Sequence[Message], made: Replaced) -> None:
        """Add a compaction of the list that was seen last, which makes this of it.

        The sources and places of `made` are those in the list seen; `given` is the caller's list.
        """
        places = {}
        for position, source in enumerate(indices(made.sources)):
            before = None if source is None else self._replaced.places.get(source)
            after = made.places.get(position)
            if before is not None or after is not None:
                places[position] = _composed(before, after)
        self._replaced = Replaced(list(made.messages), self.sources_of(made.sources), places)
        self._given, self._lacks_reply = list(given), False
        self.made.append(replacement)

    @property
    def gone(self) -> frozenset[ItemKey]:
        """The ledger's keys of all replaced items."""
        return frozenset(key for one in self.made for key in one.gone)

    @property
    def pinned(self) -> tuple[str, ...]:
        """The texts that the last summary contains verbatim."""
        return self.made[-1].pinned if self.made else ()

    @property
    def written(self) -> dict[str, str]:
        """The item types of the texts that compactions wrote, by text."""
        return {
            message["content"]: item_type
            for one in self.made
            for message, item_type in zip(one.messages, one.types, strict=True)
        }

    @property
    def summaries(self) -> dict[str, str]:
        """The summaries without their wording, by the text of the message."""
        return {
            message["content"]: one.summary
            for one in self.made
            for message, item_type in zip(one.messages, one.types, strict=True)
            if item_type == "compaction_summary"
        }

    @property
    def restored(self) -> dict[str, str]:
        """The paths of restored files, by the text of the message."""
        return {
            message["content"]: path
            for one in self.made
            for message, path in zip(one.messages, one.paths, strict=True)
            if path
        }

    def forget(self) -> None:
        """Compare the next list as a whole, since a message was changed in place."""
        self._given, self._replaced = [], Replaced([], ())

    def sources_of(self, sources: Sources) -> Sources:
        """Return the sources in the list given last; `sources` are those in the list seen last."""
        return through(sources, self._replaced.sources) if self.made else sources

    def seen(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the list with all compactions applied; the same object if none applies.

        Of a list that continues the last one, only the new messages are visited, and those in which
        a marker has moved.
        """
        if not self.made:
            return messages
        known = len(self._given)
        is_cut = len(messages) < known or (self._lacks_reply and len(messages) > known)
        given = list(messages)
        differing = None if not known or is_cut else differences(given[:known], self._given)
        if differing is None:
            self._replaced = self._applied(given)
        else:
            self._replaced = self._continued(given, differing)
        self._given = given
        is_same = self._replaced.sources == whole(len(given)) and not self._replaced.places
        return messages if is_same else list(self._replaced.messages)

    def _continued(self, given: list[Message], differing: Iterable[int]) -> Replaced:
        """Return the last list with the messages, markers and continuation of this one."""
        last, known = self._replaced, len(self._given)
        sources = joined([*last.sources, range(known, len(given))])
        messages = last.messages + given[known:]
        position = 0
        for one in sources:
            if one is not None:
                messages[position : position + len(one)] = given[one.start : one.stop]
            position += 1 if one is None else len(one)
        for position in last.places:
            messages[position] = last.messages[position]
        for source in differing:
            at = position_of(sources, source)
            if at is not None and (places := last.places.get(at)) is not None:
                markers = markers_of(as_message(given[source]))
                messages[at] = moved(messages[at], markers, places)
        return Replaced(messages, sources, last.places)

    def _applied(self, messages: list[Message]) -> Replaced:
        self._lacks_reply = False
        replaced = Replaced(messages, whole(len(messages)))
        for one in self.made:
            if (found := one.applied(replaced)) is not None:
                replaced = found
                self._lacks_reply = not one.ends_list and found.messages[-1] == one.unanswered[-1]
        return replaced


def _composed(before: Places | None, after: Places | None) -> Places:
    """Return where places are left after two edits; None stands for an edit not made."""
    if before is None or after is None:
        return before or after or {}
    return {path: after[there] for path, there in before.items() if there in after}
