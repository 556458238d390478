"""What OpenHands' resolver writes of an issue: the instruction, and events without an envelope.

An action has its arguments beside its kind, an observation its text, and neither has an id or says
who it is from. Each observation answers the oldest action without an answer, of its own kind if
there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.replay.readers.fields import Record, function_call, mapping, number, objects, word
from policyctx.replay.readers.openhands_events import NOT_PROMPT, Events, observed, said
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from policyctx.messages.items import Message
    from policyctx.replay.readers.building import RecordingBuilder

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


def read_resolved(output: Record, builder: RecordingBuilder) -> None:
    """Read what the resolver wrote of one issue."""
    history = list(_resolver_events(output.get("history"), builder))
    usages = _usages(output)
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
    return list(builder.objects(flat, "record that is no event"))


def _usages(output: Record) -> list[Usage]:
    """Return the usage of each response, in their order, as far as the metrics have it."""
    found = objects(mapping(output.get("metrics")).get("token_usages"))
    return [_usage(one) for one in found]


def _usage(fields: Record) -> Usage:
    """Return the usage of a response, whose prompt holds what was cached."""
    read, written = (
        number(fields.get("cache_read_tokens")),
        number(fields.get("cache_write_tokens")),
    )
    whole = max(number(fields.get("prompt_tokens")), read + written)
    output = number(fields.get("completion_tokens"))
    return Usage(whole - read - written, read, written, output)


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
        spoken = (
            word(_args(one).get("content")) for one in history if one.get("action") == "message"
        )
        if instruction and next(spoken, None) != instruction:
            self._builder.add({"role": "user", "content": instruction})
            self._is_users_turn = False

    def read(self, event: Record) -> None:
        """Read the next event."""
        self._builder.records += 1
        kind = word(event.get("action")) or word(event.get("observation"))
        if kind in NOT_PROMPT or not kind:
            self._builder.pass_over(kind or "event without a kind", known=bool(kind))
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
            self._builder.add({"role": "user", "content": text})
            return
        same = (one for one in self._open if one["function"]["name"] == kind)
        call = next(same, self._open[0])
        self._open.remove(call)
        result: Message = {"role": "tool", "tool_call_id": call["id"]}
        result |= {"name": call["function"]["name"], "content": text}
        self._builder.add(result | ({"is_error": True} if kind == "error" else {}))


def _args(event: Record) -> Record:
    """Return what an action was called with, wherever that stands."""
    return mapping(event.get("args")) or event
