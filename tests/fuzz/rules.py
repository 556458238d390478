"""What a provider refuses in a list of any shape, found without the project's own code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any

from google.genai import types

from policyctx.definitions.items import Message
from tests import openai_rules
from tests.openai_rules import calls_in, named_by_call, refused, results_in, type_of


def role_of(message: Message) -> str:
    """Return the role of a message of any shape."""
    if isinstance(message, dict):
        return openai_rules.role_of(message)
    return "assistant" if message.role == "model" else "user"


@dataclass(slots=True)
class Halves:
    """The ids in a message: of calls and their results, and of what the provider runs itself."""

    calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    unsigned: list[str] = field(default_factory=list)
    """Of the calls that have no signature of Gemini's, nor any call before them in the message."""

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.calls or self.results or self.served or self.answers)


def halves(message: Message) -> Halves:
    """Return the halves of pairs in a message."""
    found = Halves()
    if not isinstance(message, dict) or "parts" in message:
        is_signed = False
        for part in _content(message).parts or ():
            _of_part(part, found)
            is_signed |= part.function_call is not None and part.thought_signature is not None
            if part.function_call and not is_signed:
                found.unsigned.append(found.calls[-1])
    elif type_of(message) is not None and "content" not in message:
        found.calls += calls_in(message)
        found.results += results_in(message)
        found.served += openai_rules.served_in(message)
        found.answers += openai_rules.answers_in(message)
    else:
        for block in blocks_of(message):
            _of_block(block, message["role"], found)
        made = message.get("tool_calls") or ()
        found.calls += (call["id"] for call in made)
        unsigned = takewhile(lambda call: "thought_signature" not in str(call), made)
        found.unsigned += (call["id"] for call in unsigned)
        if call := message.get("function_call"):
            found.calls.append(call["name"])
        if message["role"] == "function" or "tool_call_id" in message:
            found.results.append(message.get("tool_call_id") or message["name"])
    return found


def _content(message: Message) -> types.Content:
    """Return a content of Gemini's, which may be a dict, as Google's SDK reads it."""
    return types.Content.model_validate(message) if isinstance(message, dict) else message


def _of_part(part: Any, found: Halves) -> None:
    if part.function_call:
        found.calls.append(part.function_call.id or part.function_call.name)
    elif part.function_response:
        found.results.append(part.function_response.id or part.function_response.name)
    elif part.executable_code or part.tool_call:
        found.served.append((part.tool_call and part.tool_call.id) or "code")
    elif part.code_execution_result or part.tool_response:
        found.answers.append((part.tool_response and part.tool_response.id) or "code")


def _of_block(block: dict[str, Any], role: str, found: Halves) -> None:
    kind = str(block.get("type"))
    if kind == "tool_use":
        found.calls.append(block["id"])
    elif kind == "tool_result":
        found.results.append(block["tool_use_id"])
    elif kind.endswith("_tool_use"):
        found.served.append(block["id"])
    elif kind.endswith("_tool_result"):
        found.answers.append(block["tool_use_id"])
    elif "toolUse" in block:
        call = block["toolUse"]
        (found.served if "type" in call else found.calls).append(call["toolUseId"])
    elif "toolResult" in block:
        ids = found.answers if role == "assistant" else found.results
        ids.append(block["toolResult"]["toolUseId"])


def blocks_of(message: Message) -> list[dict[str, Any]]:
    """Return the blocks in the content of a dict."""
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


@dataclass(frozen=True, slots=True)
class Seen:
    """What the rules ask of one message."""

    message: Message
    role: str
    is_item: bool
    """Whether it is an item of the Responses API."""
    has_role: bool
    """Whether it says its role; most items do not."""
    is_thinking: bool
    alternates: bool
    """Whether it is of the Converse API, whose blocks have no type, or of Gemini's, in parts."""
    halves: Halves | None
    """None for a message without any."""

    @classmethod
    def of(cls, message: Message) -> Seen:
        """Return a message as the rules see it."""
        found = halves(message)
        kinds = {block.get("type") for block in blocks_of(message)}
        is_dict = isinstance(message, dict)
        has_parts = "parts" in message if is_dict else isinstance(message, types.Content)
        return cls(
            message,
            role=role_of(message),
            is_item=_is_item(message),
            has_role=not is_dict or "role" in message,
            is_thinking=kinds == {"thinking"},
            alternates=kinds == {None} or has_parts,
            halves=found if found.any else None,
        )


class Rules:
    """The rules, for lists that share messages: each object is looked at once.

    Messages must not change in place as long as the rules are used.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}

    def broken(self, messages: Sequence[Message]) -> Counter[str]:
        """Count what a provider refuses."""
        seen = list(map(self._see, named_by_call(messages)))
        found = refused([message for message in messages if isinstance(message, dict)])
        left = [each for each in seen if each.role not in {"system", "developer"}]
        found["no message left"] += not left
        found["list begins with an assistant message"] += (
            left[:1] != [] and left[0].role == "assistant" and not left[0].is_item
        )
        found["trailing thinking"] += sum(
            each.role == "assistant" and each.is_thinking for each in seen
        )
        found["two messages of one role in a row"] += sum(
            one.role == other.role and one.alternates and other.alternates
            for one, other in pairwise(seen)
        )
        _count_parted(seen, found)
        return found

    def lost_signatures(self, before: Sequence[Message], after: Sequence[Message]) -> int:
        """Count the calls that have lost the signature of an earlier call of their message."""
        return (self._unsigned(after) - self._unsigned(before)).total()

    def _unsigned(self, messages: Sequence[Message]) -> Counter[str]:
        found = (seen.halves for seen in map(self._see, messages))
        return Counter(call for parts in found if parts is not None for call in parts.unsigned)

    def _see(self, message: Message) -> Seen:
        if (seen := self._seen.get(id(message))) is None:
            seen = self._seen[id(message)] = Seen.of(message)  # which keeps the object, and its id
        return seen


def broken(messages: Sequence[Message]) -> Counter[str]:
    """Count what a provider refuses."""
    return Rules().broken(messages)


def _count_parted(seen: Sequence[Seen], found: Counter[str]) -> None:
    """Count the halves of pairs without the other half."""
    open_calls, served = Counter[str](), Counter[str]()
    lasting = Counter[str]()  # of the Responses API, where messages may be before an output
    called, unanswered = set[str](), set[str]()
    for each in seen:
        if (parts := each.halves) is not None:
            calls, results = Counter(parts.calls), Counter(parts.results)
            found["orphan result"] += (results - open_calls - lasting).total()
            called.update(parts.calls, parts.served)
            found["result without its call"] += len({*parts.results, *parts.answers} - called)
            unanswered.update(parts.calls, parts.served)
            unanswered.difference_update(parts.results, parts.answers)
            served.update(parts.served)
            served -= Counter(parts.answers)
            lasting -= results - open_calls
            open_calls -= results
        else:
            calls = Counter()
        if not each.has_role:
            lasting += calls
        elif each.role not in {"tool", "function"}:
            found["call without its result"] += open_calls.total()
            open_calls = calls
    found["call without its result"] += open_calls.total() + lasting.total()
    found["call of the provider without its result"] += served.total()
    found["id of calls without any result behind them"] += len(unanswered)


def _is_item(message: Message) -> bool:
    return isinstance(message, dict) and type_of(message) is not None
