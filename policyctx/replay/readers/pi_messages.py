"""What Pi's entries put into the context, as messages in the form of Anthropic's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.fields import Record, mapping, number, objects, word
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from policyctx.messages.items import Message

ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom")


def message_of(record: Record) -> Message | None:
    """Return the message that an entry is; None for what is no message, or an empty one."""
    kind = record.get("type")
    if kind == "custom_message":
        return _said("user", record.get("content"))
    if kind == "branch_summary":
        return _said("user", record.get("summary"))
    message = mapping(record.get("message"))
    role = message.get("role")
    if kind != "message" or role not in ROLES:
        return None
    if role == "toolResult":
        return {"role": "user", "content": [_result(message)]}
    if role == "bashExecution":
        return None if message.get("excludeFromContext") else _said("user", _ran(message))
    return _said("assistant" if role == "assistant" else "user", message.get("content"))


def billed(reply: Record) -> Usage | None:
    """Return the usage of a reply, None where nothing was billed."""
    fields = mapping(reply.get("usage"))
    usage = Usage(*(number(fields.get(key)) for key in ("input", "cacheRead", "cacheWrite")))
    if not usage.prompt:
        return None
    return Usage(usage.input, usage.cache_read, usage.cache_write, number(fields.get("output")))


def is_result(message: Message) -> bool:
    """Whether a message holds results of calls and nothing else."""
    content = message["content"]
    return isinstance(content, list) and content[0].get("type") == "tool_result"


def _said(role: str, content: object) -> Message | None:
    blocks = [_block(block) for block in objects(content)] if isinstance(content, list) else content
    return {"role": role, "content": blocks} if blocks and isinstance(blocks, str | list) else None


def _block(block: Record) -> Record:
    kind = block.get("type")
    if kind == "toolCall":
        return {
            "type": "tool_use",
            "id": word(block.get("id")),
            "name": word(block.get("name")),
            "input": block.get("arguments"),
        }
    if kind == "thinking":
        signature = word(block.get("thinkingSignature"))
        return {"type": "thinking", "thinking": block.get("thinking"), "signature": signature}
    if kind == "image":
        data, media_type = block.get("data"), block.get("mimeType")
        source: dict[str, Any] = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source}
    return block


def _result(message: Record) -> Record:
    content = message.get("content")
    blocks = content if isinstance(content, str) else [_block(one) for one in objects(content)]
    result = {
        "type": "tool_result",
        "tool_use_id": word(message.get("toolCallId")),
        "content": blocks,
    }
    return result | ({"is_error": True} if message.get("isError") is True else {})


def _ran(message: Record) -> str:
    """Show a command that the user ran, with its output."""
    output = word(message.get("output"))
    lines = [f"`{word(message.get('command'))}` was run.", output or "It printed nothing."]
    code = message.get("exitCode")
    if code:
        lines.append(f"Its exit code was {code}.")
    return "\n".join(lines)
