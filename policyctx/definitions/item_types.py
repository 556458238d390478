"""The built-in item types: what each means, what it refines, and which of them no step takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

BuiltInType: TypeAlias = Literal[
    "system_prompt",
    "user_message",
    "assistant_message",
    "thinking",
    "tool_call",
    "tool_result",
    "image",
    "document",
    "compaction_summary",
    "restored_file",
    "recalled",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemType:
    """One built-in item type.

    `has_tool` is None where an item may have a tool or not. `never_taken` says why no step takes
    an item, `never_on_arrival` why no step on arrival does, `never_replaced` why no text can stand
    in its place. `keep_recent` holds where a policy gives none.
    """

    meaning: str
    has_tool: bool | None = None
    refines: BuiltInType | None = None
    keep_recent: int | None = None
    never_taken: str = ""
    never_on_arrival: str = ""
    never_replaced: str = ""


ITEM_TYPES: dict[str, ItemType] = {
    "system_prompt": ItemType(
        meaning="What is in the system prompt.",
        has_tool=False,
        never_taken="the system prompt stays",
    ),
    "user_message": ItemType(meaning="What the user wrote.", has_tool=False),
    "assistant_message": ItemType(meaning="What the model wrote.", has_tool=False),
    "thinking": ItemType(
        meaning="What the model thought; its bytes are signed.",
        has_tool=False,
        never_replaced="the bytes of thinking are signed",
    ),
    "tool_call": ItemType(meaning="A call of a tool, with its input.", has_tool=True),
    "tool_result": ItemType(meaning="What a tool answered.", has_tool=True),
    "image": ItemType(meaning="An image."),
    "document": ItemType(meaning="A document such as a PDF."),
    "compaction_summary": ItemType(
        meaning="The summary that a compaction left.",
        has_tool=False,
        never_taken="the summary stays until the next compaction",
    ),
    "restored_file": ItemType(meaning="A file that came back after a compaction."),
    # What an agent read back it still needs.
    "recalled": ItemType(
        meaning="A result that read something back from the store; it refines `tool_result`.",
        refines="tool_result",
        keep_recent=3,
        never_on_arrival="what was read back is not taken on arrival",
    ),
}
BUILT_IN_TYPES: tuple[BuiltInType, ...] = get_args(BuiltInType)

# The kinds of items that never have a tool, and those that always have one.
WITHOUT_TOOL = frozenset(name for name, it in ITEM_TYPES.items() if it.has_tool is False)
WITH_TOOL = frozenset(name for name, it in ITEM_TYPES.items() if it.has_tool)
# What no step takes, with the reason; `unknown` is the kind of a block that is not understood.
NEVER_TAKEN: dict[str, str] = {
    name: it.never_taken for name, it in ITEM_TYPES.items() if it.never_taken
} | {"unknown": "a block of a kind not known here stays"}
# What no text can stand in the place of, with the reason.
NEVER_REPLACED: dict[str, str] = NEVER_TAKEN | {
    name: it.never_replaced for name, it in ITEM_TYPES.items() if it.never_replaced
}
