"""The events of OpenHands' software-agent SDK, as the messages that they put into the context.

An event says what it is by its `kind`. Actions of one response share its id and become one message,
as parallel calls have to be; what was billed stands apart, as a sum alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.replay.readers.fields import (
    Record,
    function_call,
    mapping,
    objects,
    seconds,
    word,
)

if TYPE_CHECKING:
    from policyctx.messages.items import Message
    from policyctx.replay.readers.building import RecordingBuilder

# What tells of the conversation's state, and what asks for or repeats a condensation.
_NOT_PROMPT_SDK = frozenset({
    "CondensationRequest", "CondensationSummaryEvent", "ConversationErrorEvent",
    "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "PauseEvent", "TokenEvent",
})  # fmt: skip
_RESULTS = ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent")
_PROMPT = ("SystemPromptEvent", "MessageEvent", "ActionEvent", "Condensation")
_KINDS = _NOT_PROMPT_SDK.union(_RESULTS, _PROMPT)


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
            self._add(event, {"role": "system", "content": _text_said(event.get("system_prompt"))})
        elif kind == "MessageEvent":
            self._message(event)
        elif kind == "ActionEvent":
            self._action(event)
        elif kind in _RESULTS:
            self._add(event, _result(event, kind))
        elif kind == "Condensation":
            self._condense(event)
        else:
            self._builder.pass_over(kind, known=kind in _NOT_PROMPT_SDK)

    def _add(self, event: Record, message: Message) -> None:
        if self._builder.add(message):
            self._by_event[word(event.get("id"))] = message

    def _message(self, event: Record) -> None:
        said = mapping(event.get("llm_message"))
        by_agent = event.get("source") == "agent" or said.get("role") == "assistant"
        if by_agent:
            self._called(event)
        content = [*objects(said.get("content")), *objects(event.get("extended_content"))]
        role = "assistant" if by_agent else "user"
        self._add(event, {"role": role, "content": [_part(part) for part in content]})

    def _called(self, event: Record) -> None:
        self._builder.called(at=seconds(event.get("timestamp")), tools=self._tools)

    def _action(self, event: Record) -> None:
        """Add a call to the reply that it is of, a new one unless its id is known."""
        response = word(event.get("llm_response_id"))
        if self._reply is None or not response or response != self._response:
            self._called(event)
            self._reply = {"role": "assistant", "content": _thought(event), "tool_calls": []}
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
        gone = {id(self._by_event[one]) for one in ids if one in self._by_event}
        kept = [message for message in self._builder.context if id(message) not in gone]
        if summary := word(event.get("summary")):
            offset = event.get("summary_offset")
            place = offset if isinstance(offset, int) else len(kept)
            kept.insert(place, {"role": "user", "content": summary})
        self._builder.begin_anew(kept)


def _text_said(content: object) -> str:
    """Return a text that stands alone, or as the text of a part."""
    return word(content) or word(mapping(content).get("text"))


def _part(part: Record) -> Record:
    if part.get("type") != "image":
        return {"type": "text", "text": word(part.get("text"))} if "text" in part else part
    urls = part.get("image_urls")
    url = urls[0] if isinstance(urls, list) and urls else part.get("url")
    return {"type": "image_url", "image_url": {"url": word(url)}}


def _thought(event: Record) -> list[Record]:
    """Return what a reply says beside its calls, with its reasoning where it is sent again."""
    return [*objects(event.get("thinking_blocks")), *map(_part, objects(event.get("thought")))]


def _result(event: Record, kind: str) -> Message:
    observation = mapping(event.get("observation"))
    content = observation.get("content", observation.get("output"))
    if kind != "ObservationEvent":
        content = event.get("error", event.get("rejection_reason"))
    elif isinstance(content, list):
        content = [_part(part) for part in objects(content)]
    elif not isinstance(content, str):
        content = compact_json(observation)
    message: Message = {"role": "tool", "tool_call_id": word(event.get("tool_call_id"))}
    message |= {"name": word(event.get("tool_name")), "content": content}
    failed = kind == "AgentErrorEvent" or observation.get("is_error") is True
    return message | ({"is_error": True} if failed else {})
