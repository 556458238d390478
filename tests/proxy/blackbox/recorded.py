"""Requests as the upstream received them, and what can be said about the bytes of their lists."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import zstandard

Body = dict[str, Any]

# The field of a body with the list of messages, by path.
LISTS = {
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "messages",
    "/v1/chat/completions": "messages",
    "/v1/responses": "input",
}


@dataclass(frozen=True)
class Recorded:
    """One request: its bytes as they came."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    raw: bytes

    @property
    def path(self) -> str:
        """The path without the query."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Return the value of a header, None without it."""
        found = (value for key, value in self.headers if key.lower() == name.lower())
        return next(found, None)

    @cached_property
    def decoded(self) -> bytes:
        """The body without its content encoding."""
        encoding = self.header("content-encoding")
        if encoding == "gzip":
            return gzip.decompress(self.raw)
        if encoding == "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(self.raw)
        return self.raw

    @cached_property
    def body(self) -> Body:
        """The body as JSON; empty if it is not a JSON object."""
        try:
            found = json.loads(self.decoded)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def messages(self) -> list[Body]:
        """The list of messages."""
        found = self.body[LISTS[self.path]]
        return found if isinstance(found, list) else [{"role": "user", "content": found}]

    @cached_property
    def elements(self) -> list[str]:
        """The JSON text of each message, as it was sent."""
        return elements(self.decoded.decode(), LISTS[self.path])

    @cached_property
    def list_text(self) -> str:
        """The JSON text of the list without its last bracket, as it was sent."""
        return list_text(self.decoded.decode(), LISTS[self.path])


def elements(text: str, field: str) -> list[str]:
    """Return the JSON text of each element of the list in a field of a JSON object."""
    return _list_at(text, field)[1]


def list_text(text: str, field: str) -> str:
    """Return the JSON text of the list in a field of an object, without its last bracket."""
    return _list_at(text, field)[0].rstrip().removesuffix("]").rstrip()


_DECODER = json.JSONDecoder()


def _list_at(text: str, field: str) -> tuple[str, list[str]]:
    """Return the JSON text of a list, and that of each of its elements."""
    at = _past_blanks(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _past_blanks(text, _past_blanks(text, at) + 1)
        begin = at
        if name == field and text[at] == "[":
            found = []
            at = _past_blanks(text, at + 1)
            while text[at] != "]":
                first = at
                _, at = _DECODER.raw_decode(text, at)
                found.append(text[first:at])
                at = _past_comma(text, at)
            return text[begin : at + 1], found
        _, at = _DECODER.raw_decode(text, at)
        at = _past_comma(text, at)
    return "", []


def _past_comma(text: str, at: int) -> int:
    at = _past_blanks(text, at)
    return _past_blanks(text, at + 1) if text[at] == "," else at


def _past_blanks(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
