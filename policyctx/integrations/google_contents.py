"""`GoogleShape`: the contents of Google's SDK, `google.genai.types.Content`.

A `thought_signature` stays with its part: an edit copies the part and sets one field.
Importing this module raises `MissingExtraError` without Google's SDK.
"""

from collections.abc import Mapping
from typing import Any

from policyctx.definitions.items import HostObject, Message, Path
from policyctx.errors import MissingExtraError
from policyctx.messages.json_text import JSON, SPACED, Text, json_text
from policyctx.messages.shapes.google import GeminiShape
from policyctx.messages.shapes.shape import Part

try:
    from google.genai import types
except ImportError as error:
    raise MissingExtraError("the shape for Google's contents", extra="adk") from error

_TEXTS = frozenset({"user_message", "assistant_message", "thinking"})
# How ADK begins a content in the user's place with what another agent said and did: a part of its
# own in older versions.
_CONTEXT = "For context:"
_TRANSCRIPT = f"{_CONTEXT} below is a transcript of what another agent did"


class GoogleShape(GeminiShape):
    """The shape of Google's contents. A call without an id is paired by the name of its tool."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a content of Google's SDK."""
        return isinstance(message, types.Content)

    def problem(self, message: Message) -> None:
        """Return None: the SDK has checked the content."""

    def role(self, message: Message) -> str:
        """Return `assistant` for the model, `user` for everything else."""
        return "assistant" if message.role == "model" else "user"

    def parts(self, message: Message) -> list[Part]:
        """Return the parts of a content; what ADK tells of another agent is not the user's text."""
        found = super().parts(_values(message))
        if _is_of_another_agent(message):
            return [p._replace(author="program") if p.kind in _TEXTS else p for p in found]
        return found

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> HostObject:
        """Return a copy with these parts replaced or removed; a response's media leave with it."""
        new = super().replaced(_values(message), texts)
        return None if new is None else type(message).model_validate(new)

    def written(self, role: str, text: str) -> HostObject:
        """Return a content of the model or of the user."""
        return types.Content.model_validate(super().written(role, text))

    def written_with(self, text: str, message: Message, path: Path) -> HostObject:
        """Return a content with a text and what the response holds."""
        new = GeminiShape().written_with(text, _values(message), path)
        return types.Content.model_validate(new)

    def plain(self, message: Message) -> JSON:
        """Return what `Content.model_validate` takes."""
        found: JSON = message.model_dump(mode="json", exclude_none=True)
        return found

    def block(self, message: Message, path: Path) -> JSON:
        """Return the JSON values of a part."""
        return self.plain(message.parts[path[1]])

    def as_json(self, value: object) -> Text:
        """Return JSON with spaces, as earlier versions did: by it a decided item is recognised."""
        return json_text(value, SPACED)

    def whole(self, value: Mapping[str, Any]) -> Text:
        """Return a part or a response as the SDK writes it."""
        model = types.FunctionResponse if "parts" in value else types.Part
        return json_text(model.model_validate(value).model_dump(mode="json", exclude_none=True))


def _is_of_another_agent(message: Message) -> bool:
    parts = message.parts or ()
    first = parts[0].text or "" if parts and message.role == "user" else ""
    return first.startswith(_TRANSCRIPT) or (first == _CONTEXT and len(parts) > 1)


def _values(message: HostObject) -> dict[str, Any]:
    """Return the values of a content, with its bytes as they are."""
    values: dict[str, Any] = message.model_dump(exclude_none=True)
    return {"parts": [], **values, "role": message.role}
