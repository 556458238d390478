"""The events of an OpenHands session, as the messages that they put into the context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.replay.readers.fields import (
    Record,
    function_call,
    mapping,
    objects,
    seconds,
    usage,
    word,
)

if TYPE_CHECKING:
    from policyctx.messages.items import Message
    from policyctx.replay.readers.building import RecordingBuilder

# What the program keeps for itself; `recall` asks for and tells of what is woven into a prompt.
NOT_PROMPT = frozenset({
    "agent_state_changed", "change_agent_state", "condensation_request", "loop_detection", "null",
    "recall", "server_ready", "user_rejected",
})  # fmt: skip


_CUT = "\n[...]\n"


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
            self._builder.pass_over(f"action {kind} of the user", known=False)

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
        origin = mapping(event.get("tool_call_metadata"))
        if origin:
            self._builder.add({
                "role": "tool",
                "tool_call_id": word(origin.get("tool_call_id")),
                "name": word(origin.get("function_name")),
                "content": self._shown(event),
            } | ({"is_error": True} if kind == "error" else {}))  # fmt: skip
        elif kind in NOT_PROMPT:
            self._builder.pass_over(kind)
        else:
            self._builder.add({"role": "user", "content": self._shown(event)})

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
            whole = isinstance(first, int) and isinstance(last, int)
            forgotten = [i for i in self._by_event if whole and _within(i, first, last)]
        known = [i for i in forgotten if isinstance(i, int | str) and i in self._by_event]
        gone = {id(self._by_event[i]) for i in known}
        context = self._builder.context
        kept = [message for message in context if id(message) not in gone]
        if summary := word(args.get("summary")):
            places = [i for i, message in enumerate(context) if id(message) in gone]
            place = places[0] if places else len(kept)
            kept.insert(place, {"role": "user", "content": summary})
        self._builder.begin_anew(kept)


def _within(event: object, first: object, last: object) -> bool:
    numbers = isinstance(event, int) and isinstance(first, int) and isinstance(last, int)
    return numbers and first <= event <= last  # type: ignore[operator]


def _message(response: Record) -> Message | None:
    """Return the message of a response of the chat API; None where it was not kept."""
    choices = objects(response.get("choices"))
    said = mapping(choices[0].get("message")) if choices else {}
    if not said:
        return None
    message: Record = {"role": "assistant", "content": said.get("content")}
    if calls := objects(said.get("tool_calls")):
        message["tool_calls"] = calls
    return message


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
