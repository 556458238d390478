"""Secrets leave messages before anything else reads them: `redact` of a policy."""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from policyctx.definitions.items import Message
from policyctx.messages.editing import shortened_input
from policyctx.messages.reading import listed
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Part
from policyctx.patterns import Secrets

# Fields that an API reads itself, and bytes that a provider or a decoder checks.
_KEPT = frozenset(
    {"type", "id", "role", "name", "status", "tool_use_id", "tool_call_id", "call_id", "item_id"}
    | {"file_id", "signature", "thoughtSignature", "thought_signature", "encrypted_content"}
    | {"media_type", "mime_type", "mimeType", "cache_control"}
)
_THOUGHT = frozenset({"thinking", "redacted_thinking", "reasoning"})
_INPUTS = frozenset({"input", "args", "arguments"})
_TEXTS = frozenset({"system_prompt", "user_message", "assistant_message", "tool_result"})


class Door:
    """Where the messages of a session enter: without the secrets of its policy from then on.

    A message without a secret stays the same object, and a message that was seen in the list
    before is not searched again.
    """

    def __init__(self, patterns: Mapping[str, str], shapes: Shapes) -> None:
        self._secrets = Secrets(patterns) if patterns else None
        self._shapes = shapes
        self._given: Sequence[Message] = []
        self._passed: list[Message] = []

    def let_in(self, messages: Sequence[Message], *, changed: bool = False) -> Sequence[Message]:
        """Return the messages without secrets: the same list where it has none."""
        if self._secrets is None:
            return messages
        if changed:
            self._given = self._passed = []
        given = [*listed(messages)]
        known = len(self._given)
        if known <= len(given) and all(map(is_, self._given, given)):
            passed = self._passed + [self.redacted(one) for one in given[known:]]
        else:
            before = {id(one): new for one, new in zip(self._given, self._passed, strict=True)}
            before |= {id(new): new for new in self._passed}
            passed = [before.get(id(one)) or self.redacted(one) for one in given]
        self._given, self._passed = given, passed
        return messages if all(map(is_, given, passed)) else passed

    def redacted(self, given: Message) -> Message:
        """Return a message without secrets: the same object where it has none.

        What cannot be read as a message stays, and is refused where it is read.
        """
        if self._secrets is None:
            return given
        if type(given) is dict:
            return self._value(given)
        try:
            shape, message = self._shapes.shaped(given)
            if shape not in self._shapes.host:
                new = self._value(message)
                return given if new is message else new
            texts = {p.path: self._part(p) for p in shape.parts(message)}
            texts = {path: text for path, text in texts.items() if text is not None}
            return (shape.replaced(message, texts) if texts else None) or given
        except (AttributeError, KeyError, TypeError, RecursionError):
            return given

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return text if self._secrets is None else self._secrets.replaced(text)

    @property
    def is_open(self) -> bool:
        """Whether all enters as it is."""
        return self._secrets is None

    def _part(self, part: Part) -> str | None:
        """Return the new text of a part of a host's message, None to leave it."""
        text = str(part.text)
        if part.kind == "tool_call":
            return shortened_input(text, self._changed)
        is_text = part.kind in _TEXTS and part.takes_text
        return self._changed(text) if is_text else None

    def _changed(self, text: str) -> str | None:
        new = self.text(text)
        return None if new == text else new

    def _value(self, value: Any, *, is_input: bool = False) -> Any:  # noqa: ANN401 - JSON
        """Return a JSON value without secrets in its texts: the same object where it has none."""
        if isinstance(value, str):
            return value if value.startswith("data:") else self.text(value)
        if isinstance(value, list):
            new = [self._value(one, is_input=is_input) for one in value]
            return value if all(map(is_, value, new)) else new
        if not isinstance(value, dict) or (not is_input and self._is_kept(value)):
            return value
        fields = {key: self._field(key, one, value, is_input) for key, one in value.items()}
        return value if all(map(is_, value.values(), fields.values())) else fields

    def _field(self, key: str, value: Any, block: Mapping[str, Any], is_input: bool) -> Any:  # noqa: ANN401, FBT001
        if is_input or key in _INPUTS:
            new = shortened_input(value, self._changed) if isinstance(value, str) else None
            return self._value(value, is_input=True) if new is None else new
        is_media = key == "data" and block.get("type") != "text"
        return value if key in _KEPT or is_media else self._value(value)

    @staticmethod
    def _is_kept(block: Mapping[str, Any]) -> bool:
        return block.get("type") in _THOUGHT or block.get("thought") is True
