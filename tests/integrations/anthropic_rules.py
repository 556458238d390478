"""The rules by which Anthropic's Messages API refuses a request, as far as a client can break them.

`refusal` returns the first rule that a request body breaks. The texts are like those of the API.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

Body = dict[str, Any]
Block = dict[str, Any]

# The fields of a request, those of the beta endpoint included.
FIELDS = frozenset(
    {"max_tokens", "messages", "model", "cache_control", "compaction", "container"}
    | {"context_management", "inference_geo", "mcp_servers", "metadata", "output_config"}
    | {"output_format", "previous_message_id", "service_tier", "speed", "stop_sequences", "stream"}
    | {"system", "temperature", "thinking", "thread", "tool_choice", "tools", "top_k", "top_p"}
)
# What `count_tokens` does not take.
_NOT_COUNTED = frozenset({"max_tokens", "stream", "temperature", "top_k", "top_p", "metadata"})

# The fields of each block, without `type`: those that it must have, and those that it may have.
_BLOCKS: dict[str, tuple[str, str]] = {
    "text": ("text", "cache_control citations"),
    "image": ("source", "cache_control"),
    "document": ("source", "cache_control citations context title"),
    "tool_use": ("id name input", "cache_control caller"),
    "tool_result": ("tool_use_id", "cache_control content is_error"),
    "thinking": ("thinking signature", ""),
    "redacted_thinking": ("data", ""),
    "server_tool_use": ("id name input", "cache_control caller"),
    "web_search_tool_result": ("tool_use_id content", "cache_control caller"),
}
_OF_ASSISTANT = frozenset(
    {"thinking", "redacted_thinking", "tool_use", "text"}
    | {"server_tool_use", "web_search_tool_result"}
)
_OF_USER = frozenset({"text", "image", "document", "tool_result"})
_IN_RESULT = frozenset({"text", "image", "document"})
_TOOL = frozenset(
    {"name", "description", "input_schema", "cache_control", "strict", "type"}
    | {"eager_input_streaming"}
)
_TTLS = ("5m", "1h")
_MOST_MARKERS = 4


def signed(thinking: str) -> str:
    """Return the signature that the API gives a thinking text."""
    return hashlib.sha256(thinking.encode()).hexdigest()


def refusal(body: Body, *, is_count: bool = False) -> str | None:
    """Return why the API refuses this body, None if it accepts it."""
    return next(_problems(body, is_count=is_count), None)


def _problems(body: Body, *, is_count: bool) -> Iterator[str]:
    for name in body.keys() - FIELDS | (body.keys() & _NOT_COUNTED if is_count else set()):
        yield f"{name}: Extra inputs are not permitted"
    for name in ("model", "messages", *(() if is_count else ("max_tokens",))):
        if name not in body:
            yield f"{name}: Field required"
    yield from _tool_problems(body.get("tools", []))
    yield from _system_problems(body.get("system", "x"))
    yield from _message_problems(body["messages"])
    yield from _pair_problems(_merged(body["messages"]))
    if body.get("thinking", {}).get("type") == "enabled":
        yield from _thinking_problems(_merged(body["messages"]))
    yield from _marker_problems(body)


def _tool_problems(tools: list[Block]) -> Iterator[str]:
    for i, tool in enumerate(tools):
        for name in tool.keys() - _TOOL:
            yield f"tools.{i}.{name}: Extra inputs are not permitted"
    names = Counter(tool["name"] for tool in tools)
    if any(count > 1 for count in names.values()):
        yield "tools: Tool names must be unique."


def _system_problems(system: str | list[Block]) -> Iterator[str]:
    if isinstance(system, list):
        for i, block in enumerate(system):
            yield from _block_problems(f"system.{i}", block, frozenset({"text"}))


def _message_problems(messages: Sequence[Body]) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
        return
    for i, message in enumerate(messages):
        yield from _one_message_problems(f"messages.{i}", message)
    if messages[0].get("role") != "user":
        yield "messages: first message must use the `user` role"
    if messages[-1].get("role") != "user":
        yield "This model does not support assistant message prefill."


def _one_message_problems(at: str, message: Body) -> Iterator[str]:
    for name in message.keys() - {"role", "content"}:
        yield f"{at}.{name}: Extra inputs are not permitted"
    role, content = message.get("role"), message.get("content")
    if role not in {"user", "assistant"}:
        yield f"{at}.role: Input should be 'user' or 'assistant'"
    if not content:
        yield f"{at}: all messages must have non-empty content"
    elif isinstance(content, list):
        kinds = _OF_USER if role == "user" else _OF_ASSISTANT
        for j, block in enumerate(content):
            yield from _block_problems(f"{at}.content.{j}", block, kinds)
    elif not isinstance(content, str) or not content.strip():
        yield f"{at}.content: text content blocks must contain non-whitespace text"


def _block_problems(at: str, block: Block, kinds: frozenset[str]) -> Iterator[str]:
    kind = block.get("type")
    if kind not in kinds:
        yield f"{at}: Input tag {kind!r} does not match any of the expected tags"
        return
    required, optional = (set(names.split()) for names in _BLOCKS[kind])
    for name in block.keys() - required - optional - {"type"}:
        yield f"{at}.{kind}.{name}: Extra inputs are not permitted"
    for name in required - block.keys():
        yield f"{at}.{kind}.{name}: Field required"
    if kind == "text" and not str(block.get("text")).strip():
        yield f"{at}: text content blocks must contain non-whitespace text"
    if kind in {"tool_use", "server_tool_use"} and not isinstance(block.get("input"), dict):
        yield f"{at}.{kind}.input: Input should be a valid dictionary"
    if kind == "thinking" and block.get("signature") != signed(str(block.get("thinking"))):
        yield f"{at}: Invalid `signature` in `thinking` block"
    if kind == "tool_result" and isinstance(content := block.get("content"), list):
        for i, inner in enumerate(content):
            yield from _block_problems(f"{at}.content.{i}", inner, _IN_RESULT)


def _merged(messages: Sequence[Body]) -> list[tuple[str, list[Block]]]:
    """Return the turns: messages of one role in a row count as one."""
    turns = []
    for role, group in groupby(messages, itemgetter("role")):
        blocks: list[Block] = []
        for message in group:
            content = message["content"]
            texts = [{"type": "text", "text": content}]
            blocks += texts if isinstance(content, str) else content
        turns.append((role, blocks))
    return turns


def _pair_problems(turns: list[tuple[str, list[Block]]]) -> Iterator[str]:
    used: set[str] = set()
    open_calls: set[str] = set()
    for i, (role, blocks) in enumerate(turns):
        if role == "user":
            kinds = [block["type"] == "tool_result" for block in blocks]
            answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if open_calls and kinds != sorted(kinds, reverse=True):
                yield f"turn {i}: tool_result blocks must come first in the content"
            if missing := open_calls - set(answers):
                yield (
                    f"turn {i}: `tool_use` ids were found without `tool_result` blocks immediately"
                    f" after: {', '.join(sorted(missing))}"
                )
            if surplus := set(answers) - open_calls:
                yield f"turn {i}: unexpected `tool_use_id` in `tool_result`: {sorted(surplus)}"
            if len(answers) != len(set(answers)):
                yield f"turn {i}: each tool_use must have a single result"
            open_calls = set()
        else:
            open_calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
            if open_calls & used:
                yield f"turn {i}: `tool_use` ids must be unique"
            used |= open_calls
            yield from _server_tool_problems(i, blocks)
    if open_calls:
        yield "`tool_use` ids were found without `tool_result` blocks at the end"


def _server_tool_problems(i: int, blocks: list[Block]) -> Iterator[str]:
    calls = {block["id"] for block in blocks if block["type"] == "server_tool_use"}
    answers = {b["tool_use_id"] for b in blocks if b["type"] == "web_search_tool_result"}
    if calls != answers:
        yield f"turn {i}: `server_tool_use` without its result, or a result without its use"


def _thinking_problems(turns: list[tuple[str, list[Block]]]) -> Iterator[str]:
    last = [blocks for role, blocks in turns if role == "assistant"][-1:]
    for blocks in last:
        calls = any(block["type"] == "tool_use" for block in blocks)
        if calls and blocks[0]["type"] not in {"thinking", "redacted_thinking"}:
            yield "when `thinking` is enabled, a final assistant message must start with thinking"


def _marker_problems(body: Body) -> Iterator[str]:
    found = [block["cache_control"] for block in marked_blocks(body)]
    ttls = [marker.get("ttl", "5m") for marker in found if isinstance(marker, dict)]
    if any(
        marker.get("type") != "ephemeral" or marker.keys() - {"type", "ttl"} for marker in found
    ):
        yield "cache_control: unknown marker"
    if len(found) > _MOST_MARKERS:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}."
    if not set(ttls) <= set(_TTLS):
        yield "cache_control.ttl: Input should be '5m' or '1h'"
    if ttls != sorted(ttls):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"


def marked_blocks(body: Body) -> list[Block]:
    """Return the blocks with a `cache_control`, in the order of the prompt."""
    system = body.get("system", "")
    blocks: list[Block] = [*body.get("tools", [])]
    blocks += system if isinstance(system, list) else []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            inner = block.get("content")
            blocks += [*inner, block] if isinstance(inner, list) else [block]
    # A top-level marker stands for one on the last block.
    whole = [body] if body.get("cache_control") else []
    return [block for block in [*blocks, *whole] if block.get("cache_control")]


def prompt_bytes(body: Body) -> int:
    """Return the UTF-8 bytes of the prompt as compact JSON: tools, system and messages."""
    parts = {name: body[name] for name in ("tools", "system", "messages") if name in body}
    return len(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())
