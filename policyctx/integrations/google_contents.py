"""`GoogleShape`: the contents of Google's SDK, `google.genai.types.Content`.

A `thought_signature` stays with its part: an edit copies the part and sets one field.
Importing this module raises `MissingExtraError` without Google's SDK.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from policyctx.definitions.items import HostObject, Medium, Message, Path
from policyctx.errors import MissingExtraError
from policyctx.messages.json_text import JSON
from policyctx.messages.shapes.block_texts import BlockList, blocks_in, joined_text
from policyctx.messages.shapes.google import text_field
from policyctx.messages.shapes.shape import Part, Shape, kind_of_text

try:
    from google.genai import types
except ImportError as error:
    raise MissingExtraError("the shape for Google's contents", extra="adk") from error

MediumKind: TypeAlias = Literal["image", "document", "sound"]


# The fields of a part for a call that Google carries out, and for its answer.
_PAIRS = (("executable_code", "code_execution_result"), ("tool_call", "tool_response"))
_KINDS: dict[str, MediumKind] = {"image": "image", "audio": "sound", "video": "sound"}


# How ADK begins a content in the user's place with what another agent said and did: a part of its
# own in older versions.
_CONTEXT = "For context:"
_TRANSCRIPT = f"{_CONTEXT} below is a transcript of what another agent did"


class GoogleShape(Shape):
    """The shape of Google's contents. A call without an id is paired by the name of its tool."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a content of Google's SDK."""
        return isinstance(message, types.Content)

    def role(self, message: Message) -> str:
        """Return `assistant` for the model, `user` for everything else."""
        return "assistant" if message.role == "model" else "user"

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield the parts of a content; what ADK tells of another agent is no text of the user."""
        text_kind = kind_of_text(self.role(message))
        author: Literal["program", ""] = "program" if _is_of_another_agent(message) else ""
        for i, part in enumerate(message.parts or ()):
            if call := part.function_call:
                text, call_id = _json(call.args or {}), call.id or call.name
                signed = part.thought_signature is not None
                yield Part((i,), "tool_call", text, tool=call.name, call_id=call_id, signed=signed)
            elif response := part.function_response:
                yield _result((i,), response)
            elif part.text is not None:
                kind = "thinking" if part.thought else text_kind
                yield Part((i,), kind, part.text, author=author)
            elif part.inline_data or part.file_data:
                yield _medium_part((i,), part)
            else:
                text, (call_id, tool) = part.model_dump_json(exclude_none=True), _half(part)
                yield Part((i,), "unknown", text, tool=tool, call_id=call_id)

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> HostObject:
        """Return a copy of the content with these parts replaced or removed.

        The media of a replaced response leave with it.
        """
        new = message.model_copy(deep=True)
        for (i,), text in texts.items():
            part = new.parts[i]
            if part.function_call and text is not None:
                part.function_call.args = json.loads(text)
            elif response := part.function_response:
                response.response = {text_field(response.response or {}): text}
                if _media_of(response):
                    response.parts = None
            elif part.text is not None:
                part.text = text
            else:
                new.parts[i] = types.Part(text=text)
        new.parts = [part for i, part in enumerate(new.parts) if texts.get((i,), "") is not None]
        return new if new.parts else None

    def written(self, role: str, text: str) -> HostObject:
        """Return a content of the model or of the user."""
        part = types.Part(text=text)
        return types.Content(role="model" if role == "assistant" else role, parts=[part])

    def plain(self, message: Message) -> JSON:
        """Return what `Content.model_validate` takes."""
        found: JSON = message.model_dump(mode="json", exclude_none=True)
        return found

    def block(self, message: Message, path: Path) -> JSON:
        """Return the JSON values of a part."""
        return self.plain(message.parts[path[0]])


def _half(part: HostObject) -> tuple[str | None, str | None]:
    """Return the id in a call of a tool that Google runs, or in its answer; a call also has a tool.

    Older SDKs have no such calls but code, and no ids.
    """
    for asking, answering in _PAIRS:
        for field, tool in ((asking, asking), (answering, None)):
            if (half := getattr(part, field, None)) is not None:
                return getattr(half, "id", None) or asking, tool
    return None, None


def _is_of_another_agent(message: Message) -> bool:
    parts = message.parts or ()
    first = parts[0].text or "" if parts and message.role == "user" else ""
    return first.startswith(_TRANSCRIPT) or (first == _CONTEXT and len(parts) > 1)


def _result(path: Path, response: HostObject) -> Part:
    """Return the part of a response."""
    given, call_id = response.response or {}, response.id or response.name
    field = text_field(given)
    is_text = list(given) == [field] and isinstance(given[field], str)
    media, listed = tuple(_medium(part) for part in _media_of(response)), blocks_in(given)
    said = given[field] if is_text else None if listed is None else joined_text(listed)
    counted = _json(given) if said is None else str(said)
    text, blocks = counted, None
    if media or not is_text:
        whole = response.model_dump_json(exclude_none=True) if media else _json(given)
        text, blocks = (str(said), BlockList(whole)) if said else (whole, None)
    error = "error" in given
    return Part(
        path, "tool_result", text, counted, media, call_id=call_id, error=error, blocks=blocks
    )


def _media_of(response: HostObject) -> list[Any]:
    """Return the media of a response, which older SDKs do not have."""
    return list(getattr(response, "parts", None) or ())


def _medium_part(path: Path, part: HostObject) -> Part:
    medium, text = _medium(part), part.model_dump_json(exclude_none=True)
    kind = "unknown" if medium.kind == "sound" else medium.kind
    media_type = (part.inline_data or part.file_data).mime_type
    return Part(path, kind, text, "", (medium,), media_type=media_type)


def _medium(part: HostObject) -> Medium:
    media_type = str(getattr(part.inline_data or part.file_data, "mime_type", None))
    kind = _KINDS.get(media_type.partition("/")[0], "document")
    given = getattr(part.inline_data, "data", None)
    return Medium(kind, "openai", base64.b64encode(given).decode() if given else "")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
