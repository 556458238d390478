"""Sessions of Codex: rollouts of JSON lines under `~/.codex/sessions/`.

Only `response_item`s are sent to a model. `event_msg`s repeat them for the screen and report what
was billed, after the results of the calls in the reply. Items become chat messages: the text,
reasoning and calls of one reply are one message, as parallel calls must be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import is_message
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.fields import Record, mapping, number, objects, seconds, word
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.definitions.items import Message
    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_ANSWERS = ("function_call_output", "custom_tool_call_output")
# What the provider did by itself while it replied, and the summary that it made.
_CARRIED = (
    "compaction", "compaction_summary", "context_compaction", "image_generation_call",
    "tool_search_call", "tool_search_output", "web_search_call",
)  # fmt: skip
IN_REPLY = frozenset(_CALLS + _CARRIED + ("reasoning",))
"""Types of items that a model writes, messages apart."""


def is_item(record: Record) -> bool:
    """Whether a record is an item without an envelope, as the oldest rollouts have them."""
    kind = word(record.get("type"))
    return kind in IN_REPLY or kind in _ANSWERS or (kind == "message" and "role" in record)


def message_of(item: Record) -> Message | None:
    """Return the message that an item is; None for calls and whatever is no message."""
    if item.get("type") != "message":
        return None
    return {"role": item.get("role"), "content": item.get("content")}


def tool_call(item: Record) -> dict[str, Any] | None:
    """Return the call that an item is, None when it is none."""
    kind, call_id = item.get("type"), word(item.get("call_id") or item.get("id"))
    if kind == "custom_tool_call":
        custom = {"name": item.get("name"), "input": item.get("input")}
        return {"id": call_id, "type": "custom", "custom": custom}
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
    elif kind == "local_shell_call":
        function = {"name": "local_shell", "arguments": compact_json(item.get("action"))}
    else:
        return None
    return {"id": call_id, "type": "function", "function": function}


def answer(item: Record) -> Message | None:
    """Return the result that an item is: its output is a text, a list of parts, or holds either."""
    if item.get("type") not in _ANSWERS:
        return None
    output = item.get("output")
    if isinstance(output, dict):
        output = output.get("content", compact_json(output))
    return {"role": "tool", "tool_call_id": word(item.get("call_id")), "content": output}


def part_of(item: Record) -> list[Record]:
    """Return what an item of a reply adds to the message's content.

    Reasoning shows its summary, or nothing where it has none.
    """
    kind = item.get("type")
    if kind == "message":
        content = item.get("content")
        return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    if kind == "reasoning":
        shown = objects(item.get("summary")) + objects(item.get("content"))
        text = "\n".join(word(part.get("text")) for part in shown)
        signature = word(item.get("encrypted_content"))
        return [{"type": "thinking", "thinking": text, "signature": signature}]
    return [item]


FORMAT = "codex"

# What a session is run with, and snapshots of what the items hold.
_NOT_PROMPT = frozenset({"session_meta", "turn_context", "event_msg", "world_state"})
_ENVELOPES = _NOT_PROMPT | {"response_item", "compacted"}


def recognises(record: object) -> bool:
    """Is this a record in its envelope, or the header of a rollout from before there were any."""
    if not isinstance(record, dict):
        return False
    enveloped = word(record.get("type")) in _ENVELOPES and isinstance(record.get("payload"), dict)
    return enveloped or {"id", "timestamp", "instructions"} <= record.keys()


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session."""
    rollout = _Rollout()
    for record in source.objects():
        rollout.read(record)
    if not rollout.builder.is_empty:
        yield rollout.builder.recording(source.name, FORMAT)


class _Rollout:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._model: str | None = None
        self._system: str | None = None
        self._reply: Message | None = None
        """The message that further items of the reply go into, until a result or a prompt."""
        self._call: int | None = None
        """The newest call, until it is known what was billed for it."""
        self._billed: object = None

    def read(self, record: Record) -> None:
        self.builder.records += 1
        kind, payload = word(record.get("type")), mapping(record.get("payload"))
        if kind == "response_item":
            self._read_item(payload, record)
        elif is_item(record):
            self._read_item(record, record)
        elif kind == "compacted":
            self._compact(payload)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            self._roll_back(number(payload.get("num_turns")))
        else:
            self._learn(kind, payload or record)
            known = kind in _NOT_PROMPT or "instructions" in record or "record_type" in record
            self.builder.pass_over(kind or "header", known=known)

    def _learn(self, kind: str, payload: Record) -> None:
        """Take from a record beside the prompt what says something of the calls."""
        if kind == "turn_context":
            self._model = word(payload.get("model")) or self._model
        elif payload.get("type") == "token_count":
            self._bill(mapping(payload.get("info")))
        elif kind in ("session_meta", ""):
            instructions = mapping(payload.get("base_instructions")).get("text")
            self._system = word(instructions or payload.get("instructions")) or self._system

    def _bill(self, info: Record) -> None:
        """Note what the newest call cost; the same sum again tells of no call."""
        total = info.get("total_token_usage")
        if total is None or total == self._billed:
            return
        self._billed = total
        last = mapping(info.get("last_token_usage"))
        prompt, cached = number(last.get("input_tokens")), number(last.get("cached_input_tokens"))
        if self._call is not None and prompt:
            cached = min(prompt, cached)
            output = number(last.get("output_tokens"))
            self.builder.bill(self._call, Usage(prompt - cached, cached, output=output))
        self._call = self._reply = None

    def _read_item(self, item: Record, record: Record) -> None:
        kind = word(item.get("type"))
        if kind in IN_REPLY or (kind == "message" and item.get("role") == "assistant"):
            self._add_to_reply(item, seconds(record.get("timestamp")))
        elif message := message_of(item) or answer(item):
            self.builder.add(message)
            self._reply = None
        else:
            self.builder.pass_over(f"response_item {kind}", known=kind == "ghost_snapshot")

    def _add_to_reply(self, item: Record, at: float | None) -> None:
        call = tool_call(item)
        parts = [] if call else part_of(item)
        calls = {"tool_calls": [call]} if call else {}
        if not is_message({"role": "assistant", "content": parts, **calls}):
            self.builder.pass_over(f"response_item {word(item.get('type'))}", known=False)
            return
        if self._reply is None:
            self._call = self.builder.called(None, self._model, at, self._system)
            self._reply = {"role": "assistant", "content": []}
            self.builder.add(self._reply)
        if call:
            self._reply.setdefault("tool_calls", []).append(call)
        self._reply["content"] += parts

    def _compact(self, payload: Record) -> None:
        history = payload.get("replacement_history")
        if isinstance(history, list):
            context = list(_messages(history))
        else:
            context = [m for m in self.builder.context if m["role"] in ("user", "developer")]
            context.append({"role": "user", "content": word(payload.get("message"))})
        self.builder.begin_anew(context)
        self._reply = self._call = None

    def _roll_back(self, turns: int) -> None:
        """Take back the last turns, each from its user message on."""
        context = self.builder.context
        starts = [i for i, message in enumerate(context) if message["role"] == "user"]
        if turns and starts:
            self.builder.begin_anew(context[: starts[max(0, len(starts) - turns)]])
        self._reply = self._call = None


def _messages(history: list[Any]) -> Iterator[Message]:
    """Turn the items that a compaction left into messages, each its own."""
    for item in map(mapping, history):
        if message := message_of(item) or answer(item):
            yield message
        elif call := tool_call(item):
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
        else:
            yield {"role": "assistant", "content": part_of(item)}
