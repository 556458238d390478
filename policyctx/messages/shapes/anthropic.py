"""Messages of the Anthropic API: a role, and a text or content blocks.

A message that has nothing particular to the chat API is one of these too, since both APIs write it
alike.
"""

from collections.abc import Mapping

from policyctx.definitions.items import Message, Path, Ttl
from policyctx.messages.json_text import as_mapping
from policyctx.messages.markers import (
    MARKER,
    field_of,
    marker_of,
    markers_of,
    new_marker,
    ttl_of,
    with_markers,
)
from policyctx.messages.shapes import blocks
from policyctx.messages.shapes.shape import Part

_SUMMARY = "compaction"


class AnthropicShape(blocks.DictShape):
    """Reads and edits messages whose parts are all in their content."""

    takes_markers = True

    def recognises(self, message: object) -> bool:
        """Return whether this is a dict with a role."""
        return isinstance(message, dict) and "role" in message

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with the role or the content."""
        return blocks.wrong_with_message(message)

    def role(self, message: Message) -> str:
        """Return the role, as it is in the message."""
        role: str = message["role"]
        return role

    def parts(self, message: Message) -> list[Part]:
        """Return the parts in the content."""
        return blocks.content_parts(message.get("content"), message["role"])

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a deep copy with the blocks at these paths edited; None if it is empty then."""
        new = blocks.copied(message)
        for path in sorted(texts, reverse=True):  # so that a removal moves no later block
            edit_content(new, path, texts[path])
        return new if new.get("content") else None

    def stays(self, message: Message) -> bool:
        """Return whether the message has the block of a compaction that the server made.

        The server reads it in place of all that comes before. A block without content does nothing.
        """
        content = message.get("content")
        if message["role"] != "assistant" or not isinstance(content, list):
            return False
        for block in content:
            may_be = type(block) is not dict or block.get("type") == _SUMMARY  # the quick test
            if may_be and _is_summary(block):
                return True
        return False

    def written(self, role: str, text: str) -> Message:
        """Return a message whose content is the text."""
        return {"role": role, "content": text}

    def written_with(self, text: str, message: Message, path: Path) -> Message | None:
        """Return a message with a text and the blocks of the result; None if it has no blocks."""
        held = blocks.at(blocks.copied(message), path)
        if not isinstance(held, list):
            return None
        return {**self.written("user", ""), "content": [{"type": "text", "text": text}, *held]}

    def marked(self, message: Message, ttls: Mapping[Path, Ttl]) -> Message:
        """Return the message with these markers; a content that is a text becomes a block."""
        if ttls and isinstance(content := message.get("content"), str):
            [ttl] = ttls.values()
            block = {"type": "text", "text": content, MARKER: new_marker(ttl)}
            return {**with_markers(message, {}), "content": [block]}
        markers = {}
        for path, ttl in ttls.items():
            there = marker_of(blocks.at(message, path[:2]))
            is_same = there is not None and ttl_of(there) == ttl
            markers[path[:2]] = there if is_same else new_marker(ttl)
        return with_markers(message, markers)

    def ttls(self, message: Message) -> Mapping[Path, Ttl]:
        """Return the lifetimes of the markers on blocks."""
        if not (markers := markers_of(message)):
            return {}
        there = ((part.path, markers.get(part.path[:2])) for part in self.parts(message))
        return {path: ttl_of(marker) for path, marker in there if marker is not None}

    def is_empty(self, message: Message) -> bool:
        """Return whether the content is empty or missing."""
        return not message.get("content")


def edit_content(
    message: Message, path: Path, text: str | None, *, is_result: bool = False
) -> None:
    """Replace the part at `path` of the content by a text, or remove it.

    `is_result` says that the content as a whole is the result of a call.
    """
    path = blocks.fitting(message, path)
    last = path[-1]
    if text is None:
        if len(path) == 1:
            del message["content"]
        else:
            blocks.remove_block(message, path, is_result=is_result)
    elif isinstance(last, int):
        blocks.put_block_text(message, path, text)
    elif last == "input":
        blocks.put(message, path, blocks.new_input(blocks.at(message, path), text))
    else:
        blocks.put(message, path, text)


def has_result_blocks(message: Message) -> bool:
    """Return whether the content has `tool_result` blocks."""
    content = message.get("content")
    return not isinstance(content, str) and any(
        as_mapping(block).get("type") == "tool_result" for block in content or ()
    )


def _is_summary(block: object) -> bool:
    if field_of(block, "type") != _SUMMARY:
        return False
    held = as_mapping(block)
    return bool(held.get("content") or held.get("encrypted_content"))
