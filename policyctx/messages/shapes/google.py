"""Contents of Gemini's API as dicts, with the names of fields that the API or its SDK has.

`integrations/google_contents` reads the SDK's objects by this shape, too.

A `thoughtSignature` stays with its part: an edit copies the part and sets one field.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Literal

from policyctx.definitions.items import UNKNOWN, Medium, Message, Path
from policyctx.messages.json_text import Text, json_text
from policyctx.messages.markers import unmarked_block
from policyctx.messages.shapes import blocks
from policyctx.messages.shapes.block_texts import BlockList, blocks_in, joined_text
from policyctx.messages.shapes.shape import Part, kind_of_text

# The names of a field: in the API's JSON, and in the SDK.
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_MEDIA = ("inlineData", "inline_data"), ("fileData", "file_data")
_SIGNATURE = ("thoughtSignature", "thought_signature")
_MEDIA_TYPE = ("mimeType", "mime_type")
# The fields of a part for a call that Google carries out, and for its answer.
_PAIRS = (
    (("executableCode", "executable_code"), ("codeExecutionResult", "code_execution_result")),
    (("toolCall", "tool_call"), ("toolResponse", "tool_response")),
)
# The field of a response that may hold all of its text; ADK names it `result`.
_TEXT_FIELDS = frozenset({"output", "result", "error"})
_KINDS: dict[str, Literal["image", "document", "sound"]] = {
    "image": "image",
    "audio": "sound",
    "video": "sound",
}
_ROLES = ("user", "model", "function", None)


class GeminiShape(blocks.DictShape):
    """Reads and edits contents. A call without an id is paired by the name of its tool."""

    alternates = True  # a call right behind another content of the model is refused

    def recognises(self, message: object) -> bool:
        """Return whether this is a dict with parts, and nothing that another API has."""
        return (
            isinstance(message, dict)
            and "parts" in message
            and "content" not in message
            and "type" not in message
        )

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with the role or the parts."""
        role, parts = message.get("role"), message["parts"]
        if role not in _ROLES:
            shown = blocks.shown(role) if isinstance(role, str) else blocks.named(role)
            return f'expected "role" to be "user" or "model" beside "parts", got {shown}'
        if not isinstance(parts, list | tuple):
            return f'expected "parts" to be a list of objects, got {blocks.named(parts)}'
        for i, part in enumerate(parts):
            if not isinstance(part, Mapping):
                return f"part {i}: expected an object, got {blocks.named(part)}"
            if "type" in part:
                return f'part {i}: expected a field such as "text", got {blocks.fields_of(part)}'
        return None

    def role(self, message: Message) -> str:
        """Return `assistant` for the model, `user` for everything else."""
        return "assistant" if message.get("role") == "model" else "user"

    def parts(self, message: Message) -> list[Part]:
        """Return the parts; one of a kind that is not known stays as it is."""
        text_kind = kind_of_text(GeminiShape.role(self, message))
        return [self._part(("parts", i), p, text_kind) for i, p in enumerate(message["parts"])]

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a deep copy with these parts replaced or removed; None if none is left.

        The media of a replaced response leave with it.
        """
        new = blocks.copied(message)
        parts = list(new["parts"])
        for path, text in texts.items():
            part = parts[i := int(path[1])]
            if text is None:
                continue
            if call := _held(part, _CALL):
                call["args"] = json.loads(text)
            elif response := _held(part, _RESPONSE):
                response["response"] = {text_field(response.get("response") or {}): text}
                response.pop("parts", None)
            elif isinstance(part.get("text"), str):
                part["text"] = text
            else:
                parts[i] = {"text": text}
        kept = (i for i in range(len(parts)) if texts.get(("parts", i), "") is not None)
        new["parts"] = [parts[i] for i in kept]
        return new if new["parts"] else None

    def written(self, role: str, text: str) -> Message:
        """Return a content of the model or of the user."""
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}

    def written_with(self, text: str, message: Message, path: Path) -> Message | None:
        """Return a content with a text, that of the response behind it, and the media of it."""
        response = _held(blocks.copied(message)["parts"][int(path[1])], _RESPONSE) or {}
        said = self._result(path, {**response, "parts": []}).text
        new = self.written("user", f"{text}\n{said}")
        new["parts"] += response.get("parts") or []
        return new

    def as_json(self, value: object) -> Text:
        """Return the input of a call or the response of a tool as the text of an item."""
        return json_text(value)

    def whole(self, value: Mapping[str, Any]) -> Text:
        """Return a part without text, or a response with media, as the text of an item."""
        return json_text(value)

    def _part(self, path: Path, part: Mapping[str, Any], text_kind: str) -> Part:
        if call := _held(part, _CALL):
            tool = blocks.word(call.get("name"))
            call_id = blocks.word(call.get("id")) or tool
            signed = _field(part, _SIGNATURE) is not None
            given = self.as_json(call.get("args") or {})
            return Part(path, "tool_call", given, tool=tool, call_id=call_id, signed=signed)
        if response := _held(part, _RESPONSE):
            return self._result(path, response)
        if isinstance(text := part.get("text"), str):
            return Part(path, "thinking" if part.get("thought") else text_kind, text)
        unknown = Part(path, UNKNOWN, self.whole(unmarked_block(part)))
        if any(_held(part, names) for names in _MEDIA):
            medium, media_type = _medium(part)
            kind = UNKNOWN if medium.kind == "sound" else medium.kind
            return unknown._replace(kind=kind, counted="", media=(medium,), media_type=media_type)
        for asking, answering in _PAIRS:
            for names, tool in ((asking, asking[1]), (answering, None)):
                if (half := _held(part, names)) is not None:
                    call_id = blocks.word(half.get("id")) or asking[1]
                    return unknown._replace(tool=tool, call_id=call_id)
        return unknown

    def _result(self, path: Path, response: Mapping[str, Any]) -> Part:
        call_id = blocks.word(response.get("id")) or blocks.word(response.get("name"))
        given, held = response.get("response") or {}, response.get("parts") or ()
        if not isinstance(given, Mapping):
            return blocks.unknown_part(path, {_RESPONSE[0]: response})._replace(call_id=call_id)
        listed = blocks_in(given)
        field = text_field(given)
        is_text = list(given) == [field] and isinstance(given[field], str)
        said = given[field] if is_text else None if listed is None else joined_text(listed)
        counted = self.as_json(given) if said is None else str(said)
        text, joined = counted, None
        media = tuple(_medium(part)[0] for part in held if isinstance(part, Mapping))
        if media or not is_text:
            whole = self.whole(response) if media else self.as_json(given)
            text, joined = (str(said), BlockList(whole)) if said else (whole, None)
        error = "error" in given
        return Part(
            path, "tool_result", text, counted, media, call_id=call_id, error=error, blocks=joined
        )


def text_field(response: Mapping[str, Any]) -> str:
    """Return the field that holds the text of a response, or that will hold it."""
    if len(response) == 1 and (only := next(iter(response))) in _TEXT_FIELDS:
        return only
    return "error" if "error" in response else "output"


def _field(part: Mapping[str, Any], names: tuple[str, str]) -> object:
    found = part.get(names[0])
    return part.get(names[1]) if found is None else found


def _held(part: Mapping[str, Any], names: tuple[str, str]) -> dict[str, Any] | None:
    """Return an object in a part, None for any other value, which stays as it is."""
    found = _field(part, names)
    return found if isinstance(found, dict) and found else None


def _medium(part: Mapping[str, Any]) -> tuple[Medium, str | None]:
    """Return the medium in a part and its media type; a file counts without its bytes."""
    inline = _held(part, _MEDIA[0]) or {}
    held = inline or _held(part, _MEDIA[1]) or {}
    media_type = blocks.word(_field(held, _MEDIA_TYPE))
    kind = _KINDS.get(str(media_type).partition("/")[0], "document")
    data = inline.get("data")  # bytes in a value of the SDK
    found = base64.b64encode(data).decode() if isinstance(data, bytes) else blocks.word(data)
    return Medium(kind, "openai", found or ""), media_type
