"""The replacements that compactions made, to apply them again to a list that was not replaced.

A caller may keep sending the full list. The messages that a compaction replaced are recognised by
their position behind the head and by their hash, also after a restart. They are replaced by the
same messages again, byte for byte and without another model call.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from policyctx.compaction.assembly import WrittenMessage
from policyctx.messages.json_text import compact_json
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.planning.ledger import ItemKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.definitions.items import Message
    from policyctx.messages.shapes.built_in import Shapes


@dataclass(frozen=True, slots=True)
class Replacement:
    """One compaction: the messages that it replaced, and the messages that it wrote instead."""

    skipped: int
    """The number of messages between the head and the first replaced one."""
    count: int
    """The number of replaced messages, including one among them that was carried over."""
    sha256: str
    """Of the replaced messages, by `digest`."""
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
    """The 0-based indices of the replaced messages that stay before those written."""
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
        )

    def applied(self, messages: list[Message], shapes: Shapes) -> list[Message] | None:
        """Return the list with the messages replaced; None if it does not contain them.

        If the list ends with them, and did not when it was compacted, the reply at the end of the
        written messages is left out: a provider rejects an assistant message at the end.
        """
        roles = map(shapes.role, messages)
        head = next((i for i, role in enumerate(roles) if role not in SYSTEM_ROLES), len(messages))
        start = head + self.skipped
        replaced = messages[start : start + self.count]
        if len(replaced) < self.count or not self._is_of(replaced, shapes):
            return None
        shape = shapes.writing(replaced)
        kept = [replaced[i] for i in self.kept]
        stays = [] if self.carried is None else [replaced[self.carried]]
        behind = [*stays, *messages[start + self.count :]]
        written = self.written if behind or self.ends_list else self.unanswered
        new = (shape.written(one.role, one.text) for one in written)
        return [*messages[:start], *kept, *new, *behind]

    @property
    def unanswered(self) -> tuple[WrittenMessage, ...]:
        """The written messages without a reply at the end."""
        last = max(i for i, message in enumerate(self.written) if message.role == "user")
        return self.written[: last + 1]

    def _is_of(self, replaced: Sequence[Message], shapes: Shapes) -> bool:
        """Whether these are the replaced messages, as SDK objects or as dicts saved of them."""
        return self.sha256 in {digest(replaced, shapes), loose_digest(replaced, shapes)}


# The keys of a message in a record, which is written alike for all shapes.
_MESSAGE_KEYS = ("role", "content")


def digest(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> str:
    """Return the SHA-256, in hex, of messages as compact JSON.

    If an SDK's message object is among them, it is the hash that `loose_digest` returns.
    """
    if not all(isinstance(message, dict) for message in messages):
        return loose_digest(messages, shapes)
    return _digest(messages)


def loose_digest(messages: Sequence[Message], shapes: Shapes = BUILT_IN) -> str:
    """Return the SHA-256, in hex, of messages without the fields that are None.

    It is equal for an SDK's message object and for the dict that was saved of it.
    """
    return _digest([shapes.comparable(message) for message in messages])


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
    shapes: Shapes = BUILT_IN
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
        return {message.text: message.item_type for message in self._messages()}

    @property
    def summaries(self) -> dict[str, str]:
        """The summaries without their wording, by the text of the message."""
        return {
            message.text: one.summary
            for one in self.made
            for message in one.written
            if message.item_type == "compaction_summary"
        }

    @property
    def restored(self) -> dict[str, str]:
        """The paths of restored files, by the text of the message."""
        return {message.text: message.path for message in self._messages() if message.path}

    def _messages(self) -> Iterator[WrittenMessage]:
        return (message for one in self.made for message in one.written)

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
            if (found := one.applied(messages, self.shapes)) is not None:
                messages = found
                last = self.shapes.text(messages[-1])
                self._lacks_reply = not one.ends_list and last == one.unanswered[-1].text
        return messages
