"""The replacements that compactions made, to apply them again to a list that was not replaced.

A caller may keep sending the full list. The messages that a compaction replaced are recognised by
their position behind the head and by their hash, also after a restart. They are replaced by the
same messages again, byte for byte and without another model call.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from policyctx.messages.blocks import SYSTEM_ROLES, comparable, role_of
from policyctx.messages.json_text import compact_json
from policyctx.planning.ledger import ItemKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.definitions.items import Message


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

    def applied(self, messages: list[Message]) -> list[Message] | None:
        """Return the list with the messages replaced; None if it does not contain them.

        If the list ends with them, and did not when it was compacted, the reply at the end of the
        written messages is left out: a provider rejects an assistant message at the end.
        """
        roles = map(role_of, messages)
        head = next((i for i, role in enumerate(roles) if role not in SYSTEM_ROLES), len(messages))
        start = head + self.skipped
        replaced = messages[start : start + self.count]
        if len(replaced) < self.count or not self._is_of(replaced):
            return None
        stays = [] if self.carried is None else [replaced[self.carried]]
        behind = [*stays, *messages[start + self.count :]]
        written = self.messages if behind or self.ends_list else self.unanswered
        return [*messages[:start], *written, *behind]

    @property
    def unanswered(self) -> tuple[Message, ...]:
        """The written messages without a reply at the end."""
        last = max(i for i, message in enumerate(self.messages) if message["role"] == "user")
        return self.messages[: last + 1]

    def _is_of(self, replaced: Sequence[Message]) -> bool:
        """Whether these are the replaced messages, as SDK objects or as dicts saved of them."""
        return digest(replaced) == self.sha256 or loose_digest(replaced) == self.sha256


def digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256, in hex, of messages as compact JSON.

    If an SDK's message object is among them, it is the hash that `loose_digest` returns.
    """
    if not all(isinstance(message, dict) for message in messages):
        return loose_digest(messages)
    return _digest(messages)


def loose_digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256, in hex, of messages without the fields that are None.

    It is equal for an SDK's message object and for the dict that was saved of it.
    """
    return _digest([comparable(message) for message in messages])


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
    _seen: list[Message] = field(default_factory=list)
    _lacks_reply: bool = False
    """Whether the list ends where the reply of a compaction belongs when more messages follow."""

    def add(
        self, replacement: Replacement, given: Sequence[Message], seen: Sequence[Message]
    ) -> None:
        """Add a compaction; `seen` is the list that it makes of `given`."""
        self.made.append(replacement)
        self._given, self._seen, self._lacks_reply = list(given), list(seen), False

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
        self._given, self._seen = [], []

    def seen(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the list with all compactions applied; the same object if none applies.

        Of a list that continues the last one, only the new messages are visited.
        """
        if not self.made:
            return messages
        known = len(self._given)
        is_cut = len(messages) < known or (self._lacks_reply and len(messages) > known)
        if not known or is_cut or list(messages[:known]) != self._given:
            self._given, self._seen = list(messages), self._replaced(list(messages))
        else:
            new = list(messages[known:])
            self._given += new
            self._seen += new
        is_same = len(self._seen) == len(messages) and self._seen == self._given
        return messages if is_same else list(self._seen)

    def _replaced(self, messages: list[Message]) -> list[Message]:
        self._lacks_reply = False
        for one in self.made:
            if (found := one.applied(messages)) is not None:
                messages = found
                self._lacks_reply = not one.ends_list and messages[-1] == one.unanswered[-1]
        return messages
