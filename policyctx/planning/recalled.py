"""Where the content of a `recalled` item still is, so that no second copy of it is made.

The file that an item was read from holds its content as long as no later content replaces it. What
the tools of `definitions.recalling` return, their calls return again.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from policyctx.definitions.items import Item
from policyctx.definitions.recalling import READ_TOOL, recall_tool
from policyctx.planning.conversation import Conversation, words_of
from policyctx.planning.paths import File
from policyctx.planning.placeholders import content_hash


class RecallSource(NamedTuple):
    """The place of an item's content: a file of the store, or a call that can be made again."""

    file: File | None
    """None for a call that can be made again, such as a search."""


def source_of(conversation: Conversation, position: int) -> RecallSource | None:
    """Return the source of an item that was read back; None if the item has to be saved.

    A result of another tool than those of the library has a source if it is the very text of a
    file, or if `reads_file` says that the tool returns nothing but the file.
    """
    item, policy = conversation.items[position], conversation.policy
    if item.type == item.kind or "recalled" not in policy.types.lineage(item.type):
        return None
    call = conversation.reading.partners.get(position)
    is_whole = call is not None and call not in conversation.fates
    replaces = policy.store.on_conflict == "overwrite"  # a file may hold another content by now
    if call is None or not is_whole or replaces or item.error or item.media:
        return None
    given = conversation.reading.items[call].text
    if (tool := recall_tool(item.tool)) is not None:
        path = _input(given).get("path") if tool == READ_TOOL else None
        return RecallSource(_file_of(path, conversation, by_id=True))
    file = _read_whole(item, given, conversation) or _read_by_rule(item, given, conversation)
    return None if file is None else RecallSource(file)


def _read_by_rule(item: Item, given: str, conversation: Conversation) -> File | None:
    """Return the file that a tool with `reads_file` was called with."""
    values = _input(given)
    paths = (values.get(field) for field in conversation.policy.path_fields(item.tool or ""))
    path = next((path for path in paths if path is not None), None)
    return _file_of(path, conversation)


def _read_whole(item: Item, given: str, conversation: Conversation) -> File | None:
    """Return the file that the call names and that holds exactly the text of the result."""
    found = (_file_of(word, conversation) for word in words_of(given))
    for file in found:
        if file is not None:
            known = conversation.ledger.saved_hash(file.relative_path)
            return file if known == content_hash(item.text) else None
    return None


def _file_of(path: object, conversation: Conversation, *, by_id: bool = False) -> File | None:
    """Return the file of the store that a path means: absolute, or below the root or `cwd`.

    A path may begin with the root's own name, where a tool reads the files of several roots.
    """
    if not isinstance(path, str):
        return None
    ledger, facts = conversation.ledger, conversation.facts
    plain = path.removeprefix("./")
    inner = plain.removeprefix(f"{facts.root.rpartition('/')[2]}/")
    for full in (plain, f"{facts.root}/{plain}", f"{facts.root}/{inner}", f"{facts.cwd}/{plain}"):
        below = full.removeprefix(f"{facts.root}/")
        if below != full and below in ledger.paths:
            return File(below, full)
    known = ledger.path_of(inner) if by_id else None
    return None if known is None else File(known, f"{facts.root}/{known}")


def _input(given: str) -> dict[str, Any]:
    """Return the input of a call, empty if it is not a JSON object."""
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
