"""What compactions have replaced, so that a list that still has it gets the same beginning again.

A caller may go on sending the full list. The messages that a compaction replaced are known by
their place behind the head and the hash of what they were, also after a restart, and what stood in
their place stands there again, byte for byte and without another call of a model.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from policyctx.messages.blocks import SYSTEM_ROLES, comparable, role_of
from policyctx.messages.items import compact_json
from policyctx.planning.ledger import ItemKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.messages.items import Message


@dataclass(frozen=True, slots=True)
class Replacement:
    """One compaction: what it replaced, and what it wrote instead."""

    skipped: int
    """Messages between the head and the first that was replaced."""
    count: int
    """Messages that were replaced, with one among them that was carried over."""
    sha256: str
    """Of them, as `digest` finds it; as `loose_digest` does where one is an SDK's object."""
    messages: tuple[Message, ...]
    types: tuple[str, ...]
    """The item type of each of `messages`; empty for a reply."""
    paths: tuple[str, ...]
    """The path of the file that each of `messages` brings back; empty for others."""
    summary: str
    """Without its wording."""
    pinned: tuple[str, ...] = ()
    """Texts that it carries over to the letter."""
    gone: tuple[ItemKey, ...] = ()
    """What the ledger knew of the replaced items."""
    step: str = ""
    archive: str | None = None
    """Below the store's root."""
    carried: int | None = None
    """Which of them, from 0, stands behind `messages` as it was; None for none."""
    ends_list: bool = True
    """Did nothing stand behind it, so that the list may end with its reply."""

    def record(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
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
        """Return what `record` was made of, None for a record of another kind."""
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
        """Return the list with what was replaced replaced again; None where it is not there.

        A list that ends there, and did not when it was compacted, ends without the reply to what
        the compaction wrote: a provider refuses an assistant message at the end.
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
        """What it wrote, without a reply at the end."""
        last = max(i for i, message in enumerate(self.messages) if message["role"] == "user")
        return self.messages[: last + 1]

    def _is_of(self, replaced: Sequence[Message]) -> bool:
        """Whether these are the messages that were replaced, as objects or as saved from them."""
        return digest(replaced) == self.sha256 or loose_digest(replaced) == self.sha256


def digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256, in hex, of messages as compact JSON.

    With an SDK's message object among them it is that of `loose_digest`.
    """
    if not all(isinstance(message, dict) for message in messages):
        return loose_digest(messages)
    return _digest(messages)


def loose_digest(messages: Sequence[Message]) -> str:
    """Return the SHA-256, in hex, of messages without the fields that are None.

    It is the same for an SDK's message object and for the dict that was saved of it.
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
    """The compactions of a session, in order, and the list that they were last applied to."""

    made: list[Replacement] = field(default_factory=list)
    _given: list[Message] = field(default_factory=list)
    _seen: list[Message] = field(default_factory=list)
    _lacks_reply: bool = False
    """Does the list end where a compaction's reply stands once more follows."""

    def add(
        self, replacement: Replacement, given: Sequence[Message], seen: Sequence[Message]
    ) -> None:
        """Remember a compaction, by which `given` is from now on seen as another list."""
        self.made.append(replacement)
        self._given, self._seen, self._lacks_reply = list(given), list(seen), False

    @property
    def gone(self) -> frozenset[ItemKey]:
        """The keys of what the ledger knew of the replaced items."""
        return frozenset(key for one in self.made for key in one.gone)

    @property
    def pinned(self) -> tuple[str, ...]:
        """The texts that the last summary carries over to the letter."""
        return self.made[-1].pinned if self.made else ()

    @property
    def written(self) -> dict[str, str]:
        """The texts that compactions wrote, with their item types."""
        return {
            message["content"]: item_type
            for one in self.made
            for message, item_type in zip(one.messages, one.types, strict=True)
        }

    @property
    def summaries(self) -> dict[str, str]:
        """By the text of a message with a summary: the summary without its wording."""
        return {
            message["content"]: one.summary
            for one in self.made
            for message, item_type in zip(one.messages, one.types, strict=True)
            if item_type == "compaction_summary"
        }

    @property
    def restored(self) -> dict[str, str]:
        """By the text of a message that brought a file back: the file's path."""
        return {
            message["content"]: path
            for one in self.made
            for message, path in zip(one.messages, one.paths, strict=True)
            if path
        }

    def forget(self) -> None:
        """Look at the next list whole, since a message of the last one was changed in place."""
        self._given, self._seen = [], []

    def seen(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the list as the compactions leave it; the very list where they leave it alone.

        For a list that goes on where the last one ended, only what is new is looked at.
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
