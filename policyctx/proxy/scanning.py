"""`Scanner`: the places of values in JSON text that was decoded before.

A value whose bytes could not be written again without a loss raises `UntouchableError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# What may follow a value; a number could go on with anything else.
_AFTER = frozenset([b",", b"]", b"}", b" ", b"\t", b"\r", b"\n", b""])
_INTEGER_BITS = 64


class UntouchableError(ValueError):
    """The body cannot be edited safely; the text says why, without any of its content."""


class Span(NamedTuple):
    """A part of a body, from its first byte to behind its last one."""

    start: int
    end: int

    def moved(self, by: int) -> Span:
        """Return the same part so many bytes further on."""
        return Span(self.start + by, self.end + by)


class Member(NamedTuple):
    """A field of an object: the span from its name to its value, and that of the value."""

    whole: Span
    value: Span

    def moved(self, by: int) -> Member:
        """Return the same field so many bytes further on."""
        return Member(self.whole.moved(by), self.value.moved(by))


class Scanner:
    """Reads the places of values in order, from a place in the text on."""

    def __init__(self, raw: bytes, start: int) -> None:
        self._raw = raw
        self._start = start
        self._text: str | None = None
        """What follows the start, once a value is not written as orjson writes it."""
        self._is_ascii = False
        self._at = (start, 0)
        """A place in bytes, and the same place in the text."""

    def skip(self, at: int) -> int:
        """Return the place of the next byte that is not white space."""
        found = _SPACE.match(self._raw, at)
        return found.end() if found else at

    def sign(self, at: int) -> bytes:
        """Return the byte at a place, none at the end."""
        return self._raw[at : at + 1]

    def members(
        self,
        at: int,
        values: Mapping[str, Any],
        seen: set[str],
        *,
        list_name: str | None = None,
        elements: list[Span] | None = None,
    ) -> Iterator[tuple[str, Member]]:
        """Yield the fields from a place in an object to its end; `values` are theirs.

        Raises for a name that was `seen`, and adds the names to it. The spans of the values in the
        list of the field `list_name` are added to `elements`.
        """
        at = self._next(at)
        while self.sign(at) != b"}":
            if (found := _STRING.match(self._raw, at)) is None:
                raise UntouchableError("the body is not JSON")
            name = orjson.loads(found.group())
            if name in seen or name not in values:
                raise UntouchableError("a field of the body occurs twice")
            seen.add(name)
            value_at = self.skip(self.skip(found.end()) + 1)
            if name == list_name and elements is not None:
                elements += self.elements(value_at + 1, values[name])
                end = self.skip(elements[-1].end if elements else value_at + 1) + 1
            else:
                end = self.value_end(value_at, values[name])
            yield name, Member(Span(at, end), Span(value_at, end))
            at = self._next(end)

    def elements(self, at: int, values: Sequence[object]) -> Iterator[Span]:
        """Yield the spans of these values of a list, the first of which is at this place."""
        for value in values:
            at = self._next(at)
            end = self.value_end(at, value)
            yield Span(at, end)
            at = end

    def _next(self, at: int) -> int:
        at = self.skip(at)
        return self.skip(at + 1) if self.sign(at) == b"," else at

    def value_end(self, at: int, value: object) -> int:
        """Return where a value ends that begins at this place.

        Most clients write compact JSON as orjson does, and comparing it is quick. A value in other
        JSON is read once more, by a reader that shows what orjson hides.
        """
        try:
            written = orjson.dumps(value)
        except orjson.JSONEncodeError:
            raise UntouchableError("the body is nested too deep to be written again") from None
        end = at + len(written)
        if self._raw.startswith(written, at) and self._raw[end : end + 1] in _AFTER:
            return end
        return self._exact_end(at, value)

    def _exact_end(self, at: int, value: object) -> int:
        if self._text is None:
            text = self._raw[self._start :]
            self._text, self._is_ascii = text.decode(), text.isascii()
        byte, char = self._at
        first = char + (at - byte if self._is_ascii else len(self._raw[byte:at].decode()))
        try:
            found, last = _EXACT.raw_decode(self._text, first)
        except UntouchableError:
            raise
        except (ValueError, RecursionError):
            raise UntouchableError("the body is not JSON that can be read exactly") from None
        if found != value:
            raise UntouchableError("a value of the body has more than one reading")
        size = last - first if self._is_ascii else len(self._text[first:last].encode())
        self._at = at + size, last
        return at + size


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UntouchableError("a name occurs twice in an object of the body")
    return found


def _integer(text: str) -> int:
    number = int(text) if len(text) <= _INTEGER_BITS else None
    if number is None or not -(2 ** (_INTEGER_BITS - 1)) <= number < 2**_INTEGER_BITS:
        raise UntouchableError("an integer of the body has more than 64 bits")
    return number


_EXACT = json.JSONDecoder(object_pairs_hook=_once, parse_int=_integer)
