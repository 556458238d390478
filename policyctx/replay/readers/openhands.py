"""Sessions of OpenHands: events, as lines, as an array, or in the `history` of a result.

Three formats share this reader:

- Events of the agent carry the response of the model that they came from, and one response may
  have several. An observation is the result of the call that it names.
- Events of the software-agent SDK name their `kind`. Actions of one response share its id and
  become one message, as parallel calls must; only a sum of what was billed is recorded.
- The resolver of issues writes bare events without id or source: fields are beside `action` or
  `observation`, and each observation answers the oldest unanswered action, of its own kind if any.
"""

from collections.abc import Iterable, Iterator

from policyctx.definitions.items import Message, written_by
from policyctx.messages.json_text import compact_json
from policyctx.replay.readers.building import RecordingBuilder, function_call, tool_message, usage
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, number, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

# What the program keeps for itself; `recall` asks for and tells of what is woven into a prompt.
NOT_PROMPT = frozenset({
    "agent_state_changed", "change_agent_state", "condensation_request", "loop_detection", "null",
    "recall", "server_ready", "user_rejected",
})  # fmt: skip
_CUT = "\n[...]\n"
# What tells of the conversation's state, and what asks for or repeats a condensation.
_NOT_PROMPT_SDK = frozenset({
    "CondensationRequest", "CondensationSummaryEvent", "ConversationErrorEvent",
    "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "PauseEvent", "TokenEvent",
})  # fmt: skip
_RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")
_PROMPT = ("SystemPromptEvent", "MessageEvent", "ActionEvent", "Condensation")
_KINDS = _NOT_PROMPT_SDK.union(_RESULTS, _PROMPT)
# How the program carries an action out, which the model did not write.
_SETTINGS = frozenset({
    "action", "blocking", "confirmation_state", "content", "hidden", "image_urls", "is_confirmed",
    "is_input", "is_static", "keep_prompt", "message", "runnable", "security_risk", "thought",
    "timeout", "wait_for_response",
})  # fmt: skip
# What the agent says to its user in place of asking for a tool.
_SPOKEN = frozenset({"finish", "message", "reject", "summarize"})
_SAID = ("final_thought", "content", "thought", "summary")
_WRITES = frozenset({"edit", "write"})
FORMAT = "openhands"


class Events:
    """Reads events in their order into a recording."""

    def __init__(self, builder: RecordingBuilder, longest: int = 0) -> None:
        """Read into `builder`; of what was observed, `longest` characters were shown, 0 for all."""
        self._builder = builder
        self._longest = longest
        self._responses: set[str] = set()
        self._tools: object = None
        self._by_event: dict[int | str, Message] = {}

    def read(self, event: Record) -> None:
        """Read the next event."""
        self._builder.records += 1
        before = len(self._builder.context)
        if "observation" in event:
            self._observe(event)
        else:
            self._act(event)
        event_id = event.get("id")
        if len(self._builder.context) > before and isinstance(event_id, int | str):
            self._by_event[event_id] = self._builder.context[-1]

    def _act(self, event: Record) -> None:
        kind, args = word(event.get("action")), mapping(event.get("args"))
        if kind == "system":
            self._tools = args.get("tools")
            self._builder.add({"role": "system", "content": args.get("content")})
        elif kind == "condensation":
            self._condense(args)
        elif kind in NOT_PROMPT:
            self._builder.pass_over(kind)
        elif event.get("source") == "agent":
            self._reply(event, args)
        elif kind == "message":
            self._builder.add({"role": "user", "content": said(args)})
        else:
            what = f"action {kind} of the user"
            self._builder.pass_over(what, known=False, record=event)

    def _reply(self, event: Record, args: Record) -> None:
        """Add the response that an action came from, unless another action of it did so already."""
        origin = mapping(event.get("tool_call_metadata"))
        response = mapping(origin.get("model_response"))
        response_id = word(response.get("id"))
        if response_id and response_id in self._responses:
            self._builder.pass_over("further action of one response")
            return
        self._responses.add(response_id)
        model = word(response.get("model")) or None
        at = seconds(event.get("timestamp"))
        self._builder.called(usage(response.get("usage")), model, at, tools=self._tools)
        self._builder.add(_message(response) or _rebuilt(event, args, origin))

    def _observe(self, event: Record) -> None:
        kind = word(event.get("observation")) or "null"
        if origin := mapping(event.get("tool_call_metadata")):
            name, text = word(origin.get("function_name")), self._shown(event)
            call_id, failed = origin.get("tool_call_id"), kind == "error"
            self._builder.add(tool_message(call_id, text, name=name, is_error=failed))
        elif kind in NOT_PROMPT:
            self._builder.pass_over(kind)
        else:
            shown = {"role": "user", "content": self._shown(event)}
            self._builder.add(written_by("program", shown))

    def _shown(self, event: Record) -> str:
        """Return what of an observation was put into the prompt: a long one lost its middle."""
        text = observed(event)
        if not 0 < self._longest < len(text):
            return text
        half = self._longest // 2
        return f"{text[:half]}{_CUT}{text[-half:]}"

    def _condense(self, args: Record) -> None:
        """Leave out the forgotten events; a summary, if there is one, takes their place."""
        forgotten = args.get("forgotten_event_ids")
        if not isinstance(forgotten, list):
            first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
            forgotten = []
            if isinstance(first, int) and isinstance(last, int):
                numbers = (i for i in self._by_event if isinstance(i, int))
                forgotten = [i for i in numbers if first <= i <= last]
        known = [i for i in forgotten if isinstance(i, int | str) and i in self._by_event]
        _forget(self._builder, [self._by_event[i] for i in known], args.get("summary"), None)


def _forget(
    builder: RecordingBuilder, forgotten: Iterable[Message], summary: object, place: int | None
) -> None:
    """Begin anew without some messages, and with a summary at a place, if there is one.

    By default that is the place of the first of these messages.
    """
    gone, context = set(map(id, forgotten)), builder.context
    kept = [message for message in context if id(message) not in gone]
    if text := word(summary):
        if place is None:
            place = next((i for i, one in enumerate(context) if id(one) in gone), len(kept))
        kept.insert(place, written_by("summary", {"role": "user", "content": text}))
    builder.begin_anew(kept, why="compaction")


def _message(response: Record) -> Message | None:
    """Return the message of a response of the chat API; None where it was not kept."""
    choices = objects(response.get("choices"))
    said = mapping(choices[0].get("message")) if choices else {}
    if not said:
        return None
    calls = objects(said.get("tool_calls"))
    message = {"role": "assistant", "content": said.get("content")}
    return message | ({"tool_calls": calls} if calls else {})


def _rebuilt(event: Record, args: Record, origin: Record) -> Message:
    """Put a reply together from what it led to."""
    if word(event.get("action")) == "message":
        return {"role": "assistant", "content": said(args)}
    rest = {key: value for key, value in args.items() if key != "thought"}
    thought, name = word(args.get("thought")), word(origin.get("function_name"))
    if not origin:
        text = f"{thought}\n{event.get('action')} {compact_json(rest)}".lstrip()
        return {"role": "assistant", "content": text}
    call = function_call(origin.get("tool_call_id"), name, rest)
    return {"role": "assistant", "content": thought, "tool_calls": [call]}


def said(args: Record) -> object:
    """Return a message's text, with its images where it has some."""
    text, urls = word(args.get("content")), args.get("image_urls")
    if not isinstance(urls, list) or not urls:
        return text
    images = [{"type": "image_url", "image_url": {"url": word(url)}} for url in urls]
    return [{"type": "text", "text": text}, *images]


def observed(event: Record) -> str:
    """Return what an event observed, with what is said around the output of a command."""
    around = mapping(mapping(event.get("extras")).get("metadata"))
    return f"{word(around.get('prefix'))}{word(event.get('content'))}{word(around.get('suffix'))}"


def is_sdk_event(record: object) -> bool:
    """Whether a record is an event of the SDK."""
    fields = mapping(record)
    return word(fields.get("kind")) in _KINDS and "source" in fields and "timestamp" in fields


class SdkEvents:
    """Reads events in their order into a recording."""

    def __init__(self, builder: RecordingBuilder) -> None:
        self._builder = builder
        self._reply: Message | None = None
        self._response = ""
        self._tools: object = None
        self._by_event: dict[object, Message] = {}

    def read(self, event: Record) -> None:
        """Read the next event."""
        self._builder.records += 1
        kind = word(event.get("kind"))
        if kind == "SystemPromptEvent":
            self._tools = event.get("tools")
            prompt = event.get("system_prompt")
            text = word(prompt) or word(mapping(prompt).get("text"))
            self._add(event, {"role": "system", "content": text})
        elif kind == "MessageEvent":
            self._message(event)
        elif kind == "ActionEvent":
            self._action(event)
        elif kind in _RESULTS:
            self._add(event, _result(event, kind))
        elif kind == "Condensation":
            self._condense(event)
        else:
            self._builder.pass_over(kind, known=kind in _NOT_PROMPT_SDK, record=event)

    def _add(self, event: Record, message: Message) -> None:
        if self._builder.add(message):
            self._by_event[word(event.get("id"))] = message

    def _message(self, event: Record) -> None:
        said = mapping(event.get("llm_message"))
        by_agent = event.get("source") == "agent" or said.get("role") == "assistant"
        if by_agent:
            self._called(event)
        content = [_part(part) for part in objects(said.get("content"))]
        added = [_part(part) for part in objects(event.get("extended_content"))]
        content += [written_by("program", part) for part in added]
        message: Message = {"role": "assistant" if by_agent else "user", "content": content}
        is_program = event.get("source") == "environment"
        self._add(event, written_by("program", message) if is_program else message)

    def _called(self, event: Record) -> None:
        self._builder.called(at=seconds(event.get("timestamp")), tools=self._tools)

    def _action(self, event: Record) -> None:
        """Add a call to the reply that it is of, a new one unless its id is known."""
        response = word(event.get("llm_response_id"))
        if self._reply is None or not response or response != self._response:
            self._called(event)
            # Reasoning is sent again.
            said = map(_part, objects(event.get("thought")))
            content = [*objects(event.get("thinking_blocks")), *said]
            self._reply = {"role": "assistant", "content": content, "tool_calls": []}
            self._response = response
            self._add(event, self._reply)
        call = mapping(event.get("tool_call"))
        call = mapping(call.get("function")) or call
        arguments = call.get("arguments", mapping(event.get("action")))
        name = call.get("name") or event.get("tool_name")
        called = function_call(event.get("tool_call_id"), name, arguments)
        self._reply["tool_calls"].append(called)
        self._by_event[word(event.get("id"))] = self._reply

    def _condense(self, event: Record) -> None:
        """Leave out the forgotten events; a summary, if there is one, stands where it says."""
        forgotten = event.get("forgotten_event_ids")
        ids = map(word, forgotten if isinstance(forgotten, list) else ())
        known = [self._by_event[one] for one in ids if one in self._by_event]
        offset = event.get("summary_offset")
        place = offset if isinstance(offset, int) else len(self._builder.context)
        _forget(self._builder, known, event.get("summary"), place)


def _part(part: Record) -> Record:
    if part.get("type") != "image":
        return {"type": "text", "text": word(part.get("text"))} if "text" in part else part
    urls = part.get("image_urls")
    url = urls[0] if isinstance(urls, list) and urls else part.get("url")
    return {"type": "image_url", "image_url": {"url": word(url)}}


def _result(event: Record, kind: str) -> Message:
    observation = mapping(event.get("observation"))
    content = observation.get("content", observation.get("output"))
    if kind != "ObservationEvent":
        content = event.get("error", event.get("rejection_reason"))
    elif isinstance(content, list):
        content = [_part(part) for part in objects(content)]
    elif not isinstance(content, str):
        content = compact_json(observation)
    call_id, name = event.get("tool_call_id"), word(event.get("tool_name"))
    failed = kind == "AgentErrorEvent" or observation.get("is_error") is True
    return tool_message(call_id, content, name=name, is_error=failed)


def read_resolved(output: Record, builder: RecordingBuilder) -> None:
    """Read what the resolver wrote of one issue."""
    history = list(_resolver_events(output.get("history"), builder))
    usages = [*map(_usage, objects(mapping(output.get("metrics")).get("token_usages")))]
    if any("args" in event and "source" in event for event in history):
        # A version that writes events with their envelope.
        enveloped = Events(builder)
        for event in history:
            enveloped.read(event)
    else:
        bare = _BareEvents(builder)
        bare.begin(word(output.get("instruction")), history)
        for event in history:
            bare.read(event)
    if len(usages) == builder.calls:
        for call, usage in enumerate(usages):
            if usage.prompt:
                builder.bill(call, usage)


def _resolver_events(history: object, builder: RecordingBuilder) -> list[Record]:
    """Return the events of a history; the first versions wrote pairs of them."""
    found = history if isinstance(history, list) else []
    flat = [event for one in found for event in (one if isinstance(one, list) else [one])]
    return list(builder.objects(flat, "record that is not an event"))


def _usage(fields: Record) -> Usage:
    """Return the usage of a response, whose prompt holds what was cached."""
    names = "prompt_tokens", "cache_read_tokens", "cache_write_tokens", "completion_tokens"
    whole, read, written, output = counts(fields, *names)
    return Usage.of_whole(max(whole, read + written), read, written, output)


class _BareEvents:
    """Reads events that have no envelope in their order into a recording."""

    def __init__(self, builder: RecordingBuilder) -> None:
        self._builder = builder
        self._open: list[Record] = []
        """The calls that have no result yet."""
        self._replies = 0
        self._is_users_turn = True

    def begin(self, instruction: str, history: list[Record]) -> None:
        """Add the instruction, unless the history begins with it."""
        messages = (one for one in history if one.get("action") == "message")
        spoken = (word(_args(one).get("content")) for one in messages)
        if instruction and next(spoken, None) != instruction:
            self._builder.add({"role": "user", "content": instruction})
            self._is_users_turn = False

    def read(self, event: Record) -> None:
        """Read the next event."""
        self._builder.records += 1
        kind = word(event.get("action")) or word(event.get("observation"))
        if kind in NOT_PROMPT or not kind:
            what = kind or "event without a kind"
            self._builder.pass_over(what, known=bool(kind), record=event)
        elif "observation" in event:
            self._observe(event, kind)
        elif kind == "system":
            self._builder.add({"role": "system", "content": _args(event).get("content")})
        elif kind == "message" and self._is_of_user(event):
            self._builder.add({"role": "user", "content": said(_args(event))})
            self._is_users_turn = False
        else:
            self._act(event, kind)

    def _is_of_user(self, event: Record) -> bool:
        """Whether the user wrote a message: at the beginning, or in reply to one of the agent."""
        if source := word(event.get("source")):
            return source != "agent"
        return self._is_users_turn and _args(event).get("wait_for_response") is not True

    def _act(self, event: Record, kind: str) -> None:
        args = _args(event)
        self._builder.called()
        self._replies += 1
        self._is_users_turn = kind in _SPOKEN
        if kind in _SPOKEN:
            spoken = next((text for key in _SAID if (text := word(args.get(key)))), kind)
            self._builder.add({"role": "assistant", "content": spoken})
            return
        # A file is written with `content`, which other actions do not have of the model.
        settings = _SETTINGS - {"content"} if kind in _WRITES else _SETTINGS
        written = {key: value for key, value in args.items() if key not in settings}
        call = function_call(f"call_{self._replies}", kind, written)
        self._open.append(call)
        thought = word(args.get("thought"))
        self._builder.add({"role": "assistant", "content": thought, "tool_calls": [call]})

    def _observe(self, event: Record, kind: str) -> None:
        text = observed(event if "extras" in event else {**event, "extras": event})
        if not self._open:
            self._builder.add(written_by("program", {"role": "user", "content": text}))
            return
        same = (one for one in self._open if one["function"]["name"] == kind)
        call = next(same, self._open[0])
        self._open.remove(call)
        name, failed = call["function"]["name"], kind == "error"
        self._builder.add(tool_message(call["id"], text, name=name, is_error=failed))


def _args(event: Record) -> Record:
    """Return what an action was called with, wherever that stands."""
    return mapping(event.get("args")) or event


def recognises(record: object) -> bool:
    """Is this an event, or the result of an instance with its events."""
    fields = mapping(record)
    history = fields.get("history")
    if _is_resolved(fields) and (history is None or isinstance(history, list)):
        return True
    if isinstance(history, list) and "instance_id" in fields:
        return any(map(_is_event, history[:1]))
    return _is_event(record)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield a recording for each instance, or the one session that the events are of."""
    names = source.names()
    alone = RecordingBuilder()
    events: Events | SdkEvents | None = None
    for record in source.objects():
        if _is_event(record) or (events is not None and "kind" in record):
            events = events or _events(alone, record)
            events.read(record)
            continue
        builder = RecordingBuilder()
        if _is_resolved(record):
            read_resolved(record, builder)
        else:
            _read_instance(record, builder)
        if builder.is_empty:
            source.pass_over("instance without a conversation", record)
        else:
            yield builder.recording(names.of(_instance(record)), FORMAT)
    yield from alone.found(source.name, FORMAT)


def _is_resolved(fields: Record) -> bool:
    """Whether an object is what the resolver makes of an issue."""
    return "issue" in fields and "instruction" in fields and "history" in fields


def _instance(record: Record) -> str:
    """Return what an instance is called; an issue is `owner/repo#12`, or what of it is known."""
    issue = mapping(record.get("issue"))
    number = issue.get("number")
    where = "/".join(filter(None, (word(issue.get("owner")), word(issue.get("repo")))))
    named = f"{where}#{number}" if where and number is not None else where or str(number or "")
    return word(record.get("instance_id")) or named


def _read_instance(record: Record, builder: RecordingBuilder) -> None:
    history = objects(record.get("history"))
    settings = mapping(mapping(record.get("metadata")).get("llm_config"))
    longest = number(settings.get("max_message_chars"))
    events = _events(builder, history[0] if history else {}, longest)
    for event in builder.objects(record.get("history"), "record that is not an event"):
        events.read(event)


def _events(builder: RecordingBuilder, first: Record, longest: int = 0) -> Events | SdkEvents:
    """Return what reads the events of a session, which the first of them tells.

    A model was shown `longest` characters of an observation, all for 0.
    """
    return SdkEvents(builder) if is_sdk_event(first) else Events(builder, longest)


def _is_event(record: object) -> bool:
    if is_sdk_event(record):
        return True
    fields = mapping(record)
    known = "action" in fields or "observation" in fields
    return known and "source" in fields and "timestamp" in fields
