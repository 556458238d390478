"""Compact JSON of whatever a message holds besides strings, objects of an SDK included."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from policyctx.definitions.items import (
    HELD_CHARS,
    HostObject,
    JsonText,
    Message,
    PlainValue,
    string_pieces,
)

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
Text: TypeAlias = str | JsonText


def compact_json(value: object) -> str:
    """Return a value as JSON without spaces; objects of an SDK become plain values.

    Raises `TypeError`, `ValueError` or `RecursionError` for a value that is not JSON.
    """
    # Not `pydantic_core.to_json`, which leaves the UTF-8 of each text in the caller's string.
    return _encode(value)


class Form(NamedTuple):
    """How JSON is written."""

    encode: Callable[[object], str]
    gap: str = ""
    """What follows a comma and a colon."""


def json_text(value: object, form: Form | None = None) -> Text:
    """Return the JSON of a value in a form that copies no long string; without one as compact."""
    form = form or _COMPACT
    if _text_chars(value) <= HELD_CHARS:
        return form.encode(value)
    found: list[str] = []
    between = ""
    for part in _parts(value, HELD_CHARS, form):
        if isinstance(part, str):
            between += part
        else:
            found += (between, part.text)
            between = ""
    return JsonText((*found, between))


def plain_value(value: object) -> PlainValue:
    """Return a value as plain ones, with the same long strings; what is not JSON is its text."""
    text = json_text(value, SPACED)
    return text.value if isinstance(text, JsonText) else json.loads(text)


def json_pieces(value: object, form: Form | None = None) -> Iterator[str]:
    """Yield the text of `json_text` in pieces, so that nothing long is copied as a whole."""
    for part in _parts(value, _PIECE_CHARS, form or _COMPACT):
        if isinstance(part, str):
            yield part
        else:
            yield from string_pieces(part.text)


class _Long(NamedTuple):
    """A long string in a value, without the quotes around its JSON."""

    text: str


def _parts(value: object, most: int, form: Form) -> Iterator[str | _Long]:
    """Yield the JSON of a value, of at most so many characters of strings at once."""
    gap = form.gap
    if _text_chars(value) <= most:
        yield form.encode(value)
    elif isinstance(value, str):
        yield '"'
        yield _Long(value)
        yield '"'
    elif isinstance(value, dict):
        for i, (name, inner) in enumerate(value.items()):
            yield f"{f',{gap}' if i else '{'}{form.encode(name)}:{gap}"
            yield from _parts(inner, most, form)
        yield "}"
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield f",{gap}" if i else "["
            yield from _parts(inner, most, form)
        yield "]"


def stringified(value: object) -> Text:
    """Return compact JSON in which halves of characters are escaped, as `JSON.stringify` does.

    `parsed` reads it.
    """
    text = json_text(value)
    if all(part.isascii() or not _SURROGATE.search(part) for part in _of(text)):
        return text
    return with_escaped_halves(str(text).encode("utf-8", "surrogatepass")).decode()


def parsed(text: str) -> PlainValue:
    """Return the value of which `stringified` or `compact_json` made a text."""
    if "\\ud" not in text:
        return json.loads(text)
    return json.loads(with_halves(text.encode("utf-8", "surrogatepass")))


def with_escaped_halves(raw: bytes) -> bytes:
    """Return JSON in UTF-8: halves of characters, which that cannot carry, are escaped."""
    return _HALF.sub(_escape, raw) if b"\xed" in raw else raw


def with_halves(raw: bytes) -> bytes:
    """Return such JSON with two halves side by side that are not escaped, and so stay two.

    They would be one character, which `with_escaped_halves` never escapes.
    """
    return _PAIR.sub(_halves, raw) if b"\\ud" in raw else raw


def _escape(half: re.Match[bytes]) -> bytes:
    return b"\\u%x" % ord(half[0].decode("utf-8", "surrogatepass"))


def _halves(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return found[0]
    return b"".join(chr(int(half, 16)).encode("utf-8", "surrogatepass") for half in found.groups())


def _of(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def text_of(value: object) -> str:
    """Return a string unchanged, nothing as an empty text, and any other value as compact JSON.

    A value that is not JSON is returned as Python writes it.
    """
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return compact_json(value)
    except (RecursionError, TypeError, ValueError):
        return str(value)


def _text_chars(value: object, levels: int = 15) -> int:
    """Return the characters of the texts in a value, not too deep in plain lists and objects."""
    inner: Iterable[object]
    if type(value) is dict and {str}.issuperset(map(type, value)):
        inner = value.values()
    elif type(value) is list:
        inner = value
    else:
        return len(value) if type(value) is str else 0
    chars = 0
    for each in inner:
        if type(each) is str:
            chars += len(each)
        elif levels and type(each) in _DEEP:
            chars += _text_chars(each, levels - 1)
    return chars


def _plain_values(value: object) -> object:
    """Return an object of a provider's SDK as plain values, any other object as `_plain` does."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else _plain(value)


def _plain(value: object) -> str:
    """Return bytes in base64, as the APIs send them, and any other object as its text."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return str(value)


_DEEP = frozenset({dict, list})
# The JSON of a piece has up to six times as many characters.
_PIECE_CHARS = 1 << 13
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_PAIR = re.compile(rb"\\u(d[89ab]..)\\u(d[c-f]..)|\\.")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain_values).encode
_COMPACT = Form(_encode)
SPACED = Form(json.JSONEncoder(ensure_ascii=False, default=_plain).encode, " ")
"""JSON with spaces, as hosts have it; what is not JSON is its text."""


def as_message(message: Message) -> Message:
    """Return a message as a dict: the message itself, or the dict that an SDK's object sends.

    For an object with `model_dump`, such as the `ChatCompletionMessage` of OpenAI's SDK, that is a
    new dict of plain values. It has the fields that the SDK sends back to the provider: those that
    were set, without those that the object excludes from requests. For Anthropic's `Message` it has
    the role and the content. Any other value is returned unchanged. Raises the errors of
    `model_dump`.
    """
    if type(message) is dict or isinstance(message, dict) or not _is_object(message):
        return message
    sent: Message = _sent(message)
    content = getattr(message, "content", None)
    if isinstance(content, list):
        sent["content"] = [_sent(block) if _is_object(block) else block for block in content]
    is_response = sent.get("type") == "message" and "usage" in sent
    return {key: sent[key] for key in ("role", "content")} if is_response else sent


def as_mapping(block: object) -> Mapping[str, Any]:
    """Return a block as a map: the map itself, that of an SDK's object, or an unknown block."""
    if type(block) is dict or isinstance(block, Mapping):  # the first test is the quick one
        return block
    dump = getattr(block, "model_dump", None)
    return dump(mode="json") if callable(dump) else {"type": type(block).__name__, "value": block}


def without_none(value: object) -> PlainValue:
    """Return plain values without the fields that are None, at any depth.

    An object may be saved with its unset fields as None, or without them.
    """
    if isinstance(value, Mapping):
        return {key: without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_none(inner) for inner in value]
    return without_none(_sent(value)) if _is_object(value) else value


def _is_object(value: object) -> bool:
    return not isinstance(value, type) and callable(getattr(value, "model_dump", None))


def _sent(value: HostObject) -> HostObject:
    """Return the plain values that an SDK sends for an object, including its defaults."""
    options = {"mode": "json", "by_alias": True, "warnings": False}
    options["exclude"] = getattr(value, "__api_exclude__", None)
    given = value.model_dump(exclude_unset=True, **options)
    return _with_defaults(given, value.model_dump(**options))


def _with_defaults(given: PlainValue, whole: PlainValue) -> PlainValue:
    """Return `given` with the non-empty fields that only `whole` has, such as a default role."""
    if isinstance(given, dict) and isinstance(whole, dict):
        keys = (key for key in whole if key in given or whole[key])
        return {key: _with_defaults(given.get(key, whole[key]), whole[key]) for key in keys}
    if isinstance(given, list) and isinstance(whole, list) and len(given) == len(whole):
        return [_with_defaults(*pair) for pair in zip(given, whole, strict=True)]
    return given
