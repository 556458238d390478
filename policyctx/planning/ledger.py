"""`Ledger`: a session's memory of its decisions, so that a decided item looks the same for ever."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from policyctx.planning.placeholders import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policyctx.messages.items import Item

# An item is known by its kind, its tool-use id with the hash of its text, and how many equal ones
# came before it: a beginning that is cut off moves nothing else.
Key: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """What was decided for one item, and how it was rendered."""

    step: str
    placeholder: str
    content_sha256: str
    relative_path: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The decided items of a session; a value: adding returns a new ledger.

    `placeholders` maps each placeholder that was handed out to the hash of what it stands for.
    """

    entries: Mapping[Key, Entry] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict)

    def keys(self, items: Iterable[Item]) -> tuple[Key, ...]:
        """Return the key of each item of a list.

        A placeholder counts as what it stands for, so a text that comes again has the same key in
        the list as it was and in the list as it was edited.
        """
        seen: dict[tuple[str, str], int] = defaultdict(int)
        keys: list[Key] = []
        for item in items:
            identity = self.placeholders.get(item.text) or content_hash(item.text)
            if item.tool_use_id is not None:
                identity = f"{item.tool_use_id} {identity}"
            keys.append((item.kind, identity, seen[item.kind, identity]))
            seen[item.kind, identity] += 1
        return tuple(keys)

    def entry(self, key: Key, item: Item) -> Entry | None:
        """Return what was decided for this very content, None when nothing was.

        A call id that now carries another text is another item; so is a placeholder.
        """
        found = self.entries.get(key)
        return None if found is None or item.text in self.placeholders else found

    def with_entries(self, added: Mapping[Key, Entry]) -> Ledger:
        """Return the ledger with these entries added; itself when there are none."""
        if not added:
            return self
        rendered = {entry.placeholder: entry.content_sha256 for entry in added.values()}
        return Ledger({**self.entries, **added}, {**self.placeholders, **rendered})
