"""Message objects of the providers' SDKs, as the plain values that the SDKs send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyctx.definitions.items import HostObject, Message, PlainValue


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


def without_none(value: object) -> object:
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
