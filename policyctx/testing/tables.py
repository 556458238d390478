"""Messages written as a table, one row for each message or block."""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from policyctx.testing.contents import Message, MessageBuilder, Pieces, Shape, ToolResult, filler
from policyctx.testing.failures import WordingError
from policyctx.testing.kinds import KINDS, Size, size, unquoted

COLUMNS = {
    "type": "`result`, `result in blocks`, `call`, `text`, `thinking`, `image`, `document`, or an"
    " item type such as `user_message`; a string message where there is none",
    "role": "`user`, `assistant`, `system`; `and` puts a block into the message of the row above;"
    " where there is none, that of the type",
    "id": "of a call and its result",
    "tool": "of a call or result; a result whose call is not in the table gets one before it",
    "size": "`300 characters`, `2,000 tokens`",
    "text": "in place of a size; in double quotes where `\\n`, `\\u5b57` are meant as in JSON",
    "age": "in turns: 0 is the current turn, 2 two turns ago",
    "failed": "`yes` for a failed result",
}
# What an item type is called in the column `type`, and whose role it has.
_TYPES = {
    "tool_result": ("result", "user"),
    "tool_call": ("call", "assistant"),
    "user_message": ("string", "user"),
    "assistant_message": ("string", "assistant"),
    "system_prompt": ("string", "system"),
    "result": ("result", "user"),
    "result in blocks": ("result in blocks", "user"),
    "call": ("call", "assistant"),
    "thinking": ("thinking", "assistant"),
    "image": ("image", "user"),
    "document": ("document", "user"),
    "text": ("text", "user"),
    "string": ("string", "user"),
    "": ("string", "user"),
}
# A black picture of 800 by 600 pixels, so large that a placeholder is smaller.
_PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAyAAAAJYAQAAAACyDb/dAAAAUUlEQVR42u3BAQ0AAADCoPdPbQ8HFAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD8G+y4AAFJyw/RAAAAAElF"
    "TkSuQmCC"
)

_IMAGE_URL = f"data:image/png;base64,{_PICTURE}"
_DOCUMENT_URL = f"data:application/pdf;base64,{_PICTURE}"
_MEDIA: Mapping[Shape, Mapping[str, dict[str, Any]]] = {
    "Anthropic": {
        kind: {
            "type": kind,
            "source": {"type": "base64", "media_type": media_type, "data": _PICTURE},
        }
        for kind, media_type in (("image", "image/png"), ("document", "application/pdf"))
    },
    "OpenAI": {
        "image": {"type": "image_url", "image_url": {"url": _IMAGE_URL}},
        "document": {"type": "file", "file": {"file_data": _DOCUMENT_URL}},
    },
    "OpenAI Responses": {
        "image": {"type": "input_image", "image_url": _IMAGE_URL},
        "document": {"type": "input_file", "file_data": _DOCUMENT_URL},
    },
}

Table: TypeAlias = Sequence[Sequence[object]]
"""The rows of a data table as pytest-bdd gives them."""


def pairs_in(table: Table) -> list[tuple[str, str]]:
    """Return the first two cells of each row, such as a name and its value."""
    return [(str(row[0]), str(row[1])) for row in table]


def rows_of(table: Table) -> list[dict[str, str]]:
    """Return each row as a map from its column; raises `WordingError` for an unknown column."""
    head, *rows = [[str(cell).strip() for cell in row] for row in table]
    unknown = [name for name in head if name not in COLUMNS]
    if unknown:
        raise WordingError(f"no column is called {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    return [dict(zip(head, row, strict=True)) for row in rows]


def messages_of(table: Table, conversation: MessageBuilder) -> list[Message]:
    """Return the messages of the rows; raises `WordingError` for what means nothing."""
    writer = _Writer(conversation)
    rows = rows_of(table)
    ages = [int(row.get("age") or 0) for row in rows]
    for i, row in enumerate(rows):
        if i:
            writer.pass_turns(ages[i - 1] - ages[i])
        writer.add(row)
    if ages:
        writer.pass_turns(ages[-1])
    return writer.messages


def results_of(table: Table, conversation: MessageBuilder) -> list[ToolResult]:
    """Return the results that the rows of a table are; their type may be left out."""
    rows = rows_of(table)
    return [_result({**row, "type": row.get("type") or "result"}, conversation) for row in rows]


@dataclass(slots=True)
class _Writer:
    conversation: MessageBuilder
    messages: list[Message] = field(default_factory=list)

    def pass_turns(self, count: int) -> None:
        """Let turns pass: each begins with a user message."""
        if count < 0:
            raise WordingError("the ages go down from row to row: the oldest comes first")
        for _ in range(count):
            self.messages.append(self.conversation.message("user", "go on"))

    def add(self, row: dict[str, str]) -> None:
        kind, own_role = _kind(row)
        role = row.get("role") or own_role
        if kind.startswith("result"):
            self._add_result(row, joined=role == "and")
        elif kind == "call":
            self._add_call(row, joined=role == "and")
        elif kind == "string":
            if role == "and":
                raise WordingError("a row with the role `and` is a block: give its type")
            self.messages.append(self.conversation.message(role, _text(row, self.conversation)))
        else:
            self._add_block(self._block(kind, row, role), role)

    def _add_block(self, block: dict[str, Any], role: str) -> None:
        if block["type"] == "reasoning":
            self.messages.append(block)  # an item of its own
        elif role == "and" and self._follows_reasoning():
            self.messages.append(self.conversation.message("assistant", [block]))
        elif role == "and":
            self._last_blocks().append(block)
        else:
            self.messages.append(self.conversation.message(role, [block]))

    def _role_of(self, role: str) -> str:
        """Return the role of the message that a block is put into."""
        if role == "and" and self.messages:
            return "assistant" if self._follows_reasoning() else str(self.messages[-1].get("role"))
        return role

    def _follows_reasoning(self) -> bool:
        return self.messages[-1:] != [] and self.messages[-1].get("type") == "reasoning"

    def _last_blocks(self) -> list[Any]:
        blocks = self.messages[-1].get("content") if self.messages else None
        if not isinstance(blocks, list):
            raise WordingError("the role `and` needs a message of blocks in the row above")
        return blocks

    def _add_result(self, row: dict[str, str], *, joined: bool) -> None:
        result = _result(row, self.conversation)
        if result.tool is not None and not joined and result.id not in self._called():
            self.messages += self.conversation.calls([result])
        [answer] = self.conversation.answers([result])
        if joined and self.conversation.shape == "Anthropic":
            self._last_blocks().extend(answer["content"])
        else:
            self.messages.append(answer)

    def _add_call(self, row: dict[str, str], *, joined: bool) -> None:
        call = self.conversation.call([(_id(row, self.conversation), _tool(row) or "Bash")])
        if not joined or self.conversation.has_items:
            self.messages.append(call)
        elif self.conversation.shape == "Anthropic":
            self._last_blocks().extend(call["content"])
        else:
            self.messages[-1].setdefault("tool_calls", []).extend(call["tool_calls"])

    def _called(self) -> set[str]:
        """The ids called by the last message; among items, by any."""
        if self.conversation.has_items:
            return {m["call_id"] for m in self.messages if m.get("type") == "function_call"}
        last = self.messages[-1] if self.messages else {}
        content = last.get("content")
        blocks = content if isinstance(content, list) else []
        ids = {block.get("id") for block in blocks if block["type"] == "tool_use"}
        return ids | {call["id"] for call in last.get("tool_calls") or ()}

    def _block(self, kind: str, row: dict[str, str], role: str) -> dict[str, Any]:
        if kind == "text":
            is_said = self.conversation.has_items and self._role_of(role) == "assistant"
            text_type = "output_text" if is_said else self.conversation.text_type
            return {"type": text_type, "text": _text(row, self.conversation)}
        if kind == "thinking" and self.conversation.shape != "OpenAI":
            return self.conversation.thinking(_text(row, self.conversation))
        media = _MEDIA[self.conversation.shape]
        if kind not in media:
            raise WordingError(f"the {self.conversation.shape} shape has no {kind} block")
        return copy.deepcopy(media[kind])


def _kind(row: dict[str, str]) -> tuple[str, str]:
    name = row.get("type", "")
    if name not in _TYPES:
        raise WordingError(f"{name!r} is no type; there are {', '.join(filter(None, _TYPES))}")
    return _TYPES[name]


def _result(row: dict[str, str], conversation: MessageBuilder) -> ToolResult:
    in_blocks, failed = _kind(row)[0] == "result in blocks", row.get("failed") in {"yes", "true"}
    if row.get("size"):
        sized = Pieces("result", size=_size(row["size"]), in_blocks=in_blocks)
        content = conversation.content(sized)
    else:
        text = unquoted(row.get("text", ""))
        content = [{"type": conversation.text_type, "text": text}] if in_blocks else text
    return ToolResult(_id(row, conversation), content, _tool(row), failed)


def _id(row: dict[str, str], conversation: MessageBuilder) -> str:
    return unquoted(row["id"]) if row.get("id") else f"call_{conversation.serial()}"


def _tool(row: dict[str, str]) -> str | None:
    return unquoted(row["tool"]) if row.get("tool") else None


def _text(row: dict[str, str], conversation: MessageBuilder) -> str:
    if row.get("size"):
        return filler(_size(row["size"]), conversation.serial())
    return unquoted(row.get("text", ""))


def _size(text: str) -> Size:
    if re.fullmatch(KINDS["size"].regex, text) is None:
        raise WordingError(f"{text!r} is no size; write `300 characters` or `2,000 tokens`")
    return size(text)
