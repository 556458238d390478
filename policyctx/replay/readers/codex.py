"""Sessions of Codex: rollouts of JSON lines under `~/.codex/sessions/`.

A `response_item` holds an item of OpenAI's Responses API as it was sent to the model, and is kept
unchanged; only an output that is an object becomes the text or list that the API takes. An
`event_msg` repeats items for the screen, and reports what was billed, after the results of the
calls in the reply; versions 0.57 and 0.58 report it before the reply, and 0.171 also in a
`token_usage_record` right behind it. An answer of a sub-agent is an `agent_message`, which is read
as a message of the user's role that the program wrote.
"""

from collections.abc import Iterator
from dataclasses import replace

from policyctx.definitions.items import Authored, Message, PlainValue, written_by
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import is_message
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, number, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage, tier_of

FORMAT = "codex"
HOMES = (
    Home("~/.codex/sessions", "**/*.jsonl", "CODEX_HOME", "~/.codex"),
    Home("~/.codex/archived_sessions", "**/*.jsonl", "CODEX_HOME", "~/.codex"),
)

_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
# Items that a model writes, messages apart, and what the provider does while it replies.
_IN_REPLY = frozenset({
    "function_call", "custom_tool_call", "local_shell_call", "reasoning",
    "compaction", "compaction_summary", "context_compaction", "image_generation_call",
    "tool_search_call", "tool_search_output", "web_search_call",
})  # fmt: skip
# A snapshot of the files for the program itself, which stands among the items.
_NOT_SENT = frozenset({"ghost_snapshot"})

# What a session is run with, and snapshots of what the items hold.
_NOT_PROMPT = frozenset({
    "event_msg", "inter_agent_communication_metadata", "session_meta", "token_usage_record",
    "turn_context", "world_state",
})  # fmt: skip
# A shorter text that was typed may well be a part of another one by chance.
_LONG = 40
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
    rollout.end()
    yield from rollout.builder.found(source.name, FORMAT)


class _Rollout:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._model: str | None = None
        self._system: str | None = None
        self._window: int | None = None
        self._tier = ""
        self._is_replying = False
        """Whether a further item of a reply belongs to the newest call."""
        self._call: int | None = None
        """The newest call, until it is known what was billed for it."""
        self._billed: object = None
        self._bills_first = False
        """Whether bills come before their replies."""
        self._next_bill: Usage | None = None
        """What was billed for a reply that is still to come."""
        self._typed: set[str] = set()
        """The texts that the user typed, as the events for the screen repeat them."""
        self._of_users: list[Authored] = []

    def end(self) -> None:
        """Mark what the user did not type; the oldest rollouts do not say it."""
        if not self._typed:
            return
        long = [text for text in self._typed if len(text) >= _LONG]
        for message in self._of_users:
            text = _text(message)
            is_typed = text.strip() in self._typed or any(one in text for one in long)
            if not message.author and not is_typed:
                message.author = "program"

    def read(self, record: Record) -> None:
        self.builder.records += 1
        kind, payload = word(record.get("type")), mapping(record.get("payload"))
        if kind == "response_item":
            self._read_item(payload, record)
        elif _is_item(record):
            self._read_item(record, record)
        elif kind == "compacted":
            self._compact(payload)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            self._roll_back(number(payload.get("num_turns")))
        else:
            self._learn(kind, payload or record)
            known = kind in _NOT_PROMPT or "instructions" in record or "record_type" in record
            self.builder.pass_over(kind or "header", known=known, record=record)

    def _learn(self, kind: str, payload: Record) -> None:
        """Take from a record beside the prompt what says something of the calls."""
        if payload.get("type") == "task_started":
            self._window = number(payload.get("model_context_window")) or None
        elif kind == "turn_context":
            self._model = word(payload.get("model")) or self._model
        elif payload.get("type") == "thread_settings_applied":
            self._tier = tier_of(mapping(payload.get("thread_settings")))
        elif payload.get("type") in ("user_message", "item_completed"):
            item = mapping(payload.get("item"))
            shown = _text(item) if item.get("type") == "UserMessage" else payload.get("message")
            self._typed |= {text} if (text := word(shown).strip()) else set()
        elif payload.get("type") == "token_count":
            info = mapping(payload.get("info"))
            self._window = number(info.get("model_context_window")) or self._window
            self._bill(info.get("total_token_usage"), mapping(info.get("last_token_usage")))
        elif kind == "token_usage_record" and self._call is not None:
            self._bill(payload.get("thread_token_usage"), mapping(payload.get("usage")))
        elif kind in ("session_meta", ""):
            instructions = mapping(payload.get("base_instructions")).get("text")
            self._system = word(instructions or payload.get("instructions")) or self._system
            self.builder.project = self.builder.project or word(payload.get("cwd"))

    def _bill(self, total: object, last: Record) -> None:
        """Note what the newest call cost; the same sum again tells of no call."""
        if total is None or total == self._billed:
            return
        self._billed = total
        names = "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"
        prompt, cached, written, output = counts(last, *names)
        if prompt:
            # Before 0.145 a bill did not speak of writes.
            is_told = names[2] in last
            bill = Usage.of_whole(prompt, cached, written, output, tells_writes=is_told)
            bill = replace(bill, tier=self._tier)
            if self._call is not None:
                self.builder.bill(self._call, bill)
            elif self._bills_first or not self.builder.calls:
                self._bills_first, self._next_bill = True, bill
        self._end_reply()

    def _read_item(self, found: Record, record: Record) -> None:
        item, kind = _sent(found), word(found.get("type"))
        if kind in _NOT_SENT or not _is_item(item) or not is_message(item):
            known = kind in _NOT_SENT
            self.builder.pass_over(f"response_item {kind}", known=known, record=record)
            return
        is_reply = kind in _IN_REPLY or (kind == "message" and item["role"] == "assistant")
        if is_reply and not self._is_replying:
            at = seconds(record.get("timestamp"))
            bill, self._next_bill = self._next_bill, None
            beside = self._model, at, self._system
            call_id = word(item.get("id"))
            call = self.builder.called(bill, *beside, window=self._window, call_id=call_id)
            self._call = call if bill is None else None
        # What an answer of a sub-agent interrupts is not billed; the reply goes on behind it.
        self._is_replying = is_reply or (self._is_replying and kind == "agent_message")
        self.builder.add(self._marked(item))

    def _marked(self, item: Message, summary: str = "") -> Message:
        """Return an item so that it can say who wrote it, if it is a message of the user."""
        if _role(item) != "user" or isinstance(item, Authored):
            return item
        is_summary = bool(summary) and summary in _text(item)
        message = Authored(item, "summary" if is_summary else "")
        self._of_users.append(message)
        return message

    def _end_reply(self) -> None:
        self._is_replying, self._call = False, None

    def _compact(self, payload: Record) -> None:
        history = payload.get("replacement_history")
        if isinstance(history, list):
            items = (_sent(mapping(item)) for item in history)
            sent = (item for item in items if word(item.get("type")) not in _NOT_SENT)
            summary = word(payload.get("message")).strip()
            context = [self._marked(item, summary) for item in sent]
        else:
            context = [one for one in self.builder.context if _role(one) in ("user", "developer")]
            summary = word(payload.get("message"))
            item: Message = {"type": "message", "role": "user", "content": summary}
            context.append(written_by("summary", item))
        self.builder.begin_anew(context, why="compaction")
        self._end_reply()

    def _roll_back(self, turns: int) -> None:
        """Take back the last turns, each from its user message on."""
        context = self.builder.context
        starts = [i for i, message in enumerate(context) if _role(message) == "user"]
        if turns and starts:
            kept = context[: starts[max(0, len(starts) - turns)]]
            self.builder.begin_anew(kept, why="rewind")
        self._end_reply()


def _is_item(record: Record) -> bool:
    """Return whether a record is an item; the oldest rollouts have them without an envelope."""
    kind = word(record.get("type"))
    return kind in _IN_REPLY or kind in _RESULTS or (kind == "message" and "role" in record)


def _sent(item: Record) -> Message:
    """Return an item as it was sent: the output of a result is a text or a list of parts."""
    if item.get("type") == "agent_message":
        message = {"type": "message", "role": "user", "content": item.get("content")}
        return written_by("program", message)
    output = item.get("output")
    if word(item.get("type")) not in _RESULTS or not isinstance(output, dict):
        return item
    return {**item, "output": output.get("content", compact_json(output))}


def _text(item: Message) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(word(part.get("text")) for part in objects(content))


def _role(item: Message) -> PlainValue:
    return item.get("role")
