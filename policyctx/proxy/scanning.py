"""`Scanner`: the places of values in JSON text that was decoded before.

A value whose bytes could not be written again without a loss raises `UntouchableError`.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# The next string that is long, escaped or not ASCII, and the sign of a name behind it, or a
# thousand other strings. A possessive group would match wrongly before Python 3.11.5, and of an
# atomic one without a bound each string would take memory.
_NOT_SHORT = re.compile(
    rb'[^"]*+(?>(?:"[^"\\\x80-\xff]{0,99}+"[^"]*+){0,1000})'
    rb'(?:(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")(?P<is_name>[ \t\r\n]*+:)?)?',
    re.DOTALL,
)
# What may follow a value; a number could go on with anything else.
_AFTER = frozenset([b",", b"]", b"}", b" ", b"\t", b"\r", b"\n", b""])
_INTEGER_BITS = 64


class UntouchableError(ValueError):
    """The body cannot be edited safely; the text says why, without any of its content."""


class Span(NamedTuple):
    """A part of a body, from its first byte to behind its last one."""

    start: int
    end: int

    def moved(self, by: int) -> "Span":
        """Return the same part so many bytes further on."""
        return Span(self.start + by, self.end + by)


class Member(NamedTuple):
    """A field of an object: the span from its name to its value, and that of the value."""

    whole: Span
    value: Span

    def moved(self, by: int) -> "Member":
        """Return the same field so many bytes further on."""
        return Member(self.whole.moved(by), self.value.moved(by))


class Number(float):
    """A number that orjson would write otherwise than it was written."""

    __slots__ = ("text",)
    text: str


def written(value: object) -> bytes:
    """Return a value as JSON, in which each number has the characters that it came with."""
    return orjson.dumps(value, default=_as_it_came)


def _as_it_came(value: object) -> orjson.Fragment:
    if isinstance(value, Number):
        return orjson.Fragment(value.text)
    raise TypeError


class Scanner:
    """Reads the places of values in order, from a place in the text on."""

    def __init__(self, raw: bytes, start: int) -> None:
        self._raw = raw
        self._start = start
        self._text: str | None = None
        """What follows the start without its long strings, once a value is not as orjson writes
        it. All of it is ASCII."""
        self._ends, self._short_ends = [start], [0]
        """Where each string that is shorter there ends: in the bytes, and in this text."""

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
        values: dict[str, Any],
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
                end = self._value_end(value_at, values, name)
            yield name, Member(Span(at, end), Span(value_at, end))
            at = self._next(end)

    def elements(self, at: int, values: list[Any]) -> Iterator[Span]:
        """Yield the spans of these values of a list, the first of which is at this place.

        A number in them that orjson would write otherwise becomes a `Number`, also in `members`.
        """
        for i in range(len(values)):
            at = self._next(at)
            end = self._value_end(at, values, i)
            yield Span(at, end)
            at = end

    def _next(self, at: int) -> int:
        at = self.skip(at)
        return self.skip(at + 1) if self.sign(at) == b"," else at

    def _value_end(self, at: int, values: dict[str, Any] | list[Any], key: str | int) -> int:
        """Return where the value of a key ends that begins at this place.

        Most clients write compact JSON as orjson does, and comparing it is quick. A value in other
        JSON is read once more, by a reader that shows what orjson hides.
        """
        plain: Any = values
        try:
            new = orjson.dumps(plain[key])
        except orjson.JSONEncodeError:
            raise UntouchableError("the body is nested too deep to be written again") from None
        end = at + len(new)
        if self._raw.startswith(new, at) and self._raw[end : end + 1] in _AFTER:
            return end
        del new
        if self._text is None:
            self._text = self._shortened()
        i = bisect_right(self._ends, at) - 1
        try:
            found, end = _EXACT.raw_decode(self._text, at - self._ends[i] + self._short_ends[i])
        except UntouchableError:
            raise
        except (ValueError, RecursionError):
            raise UntouchableError("the body is not JSON that can be read exactly") from None
        _put_numbers(values, {key: found})
        i = bisect_right(self._short_ends, end) - 1
        return end - self._short_ends[i] + self._ends[i]

    def _shortened(self) -> str:
        """Return the text from the start on, with empty strings for those that are not short."""
        parts: list[str] = []
        at, size = self._start, 0
        # Not `finditer`, which would look for a last one from each place on.
        while (found := _NOT_SHORT.match(self._raw, at)) and found.end() > at:
            first, last = found.span("string") if found["string"] else (found.end(), found.end())
            # A name is kept, as it may occur twice.
            string = json.dumps(orjson.loads(found["string"])) if found["is_name"] else '""'
            string = string if first < last else ""
            parts += (self._raw[at:first].decode("ascii"), string)
            size += first - at + len(string)
            self._ends.append(last)
            self._short_ends.append(size)
            at = last
        parts.append(self._raw[at:].decode("ascii"))
        return "".join(parts)


def _put_numbers(values: Any, exact: Any) -> None:  # noqa: ANN401 - any JSON
    """Put each `Number` of an exact reading into another reading of the same JSON."""
    for key in exact if isinstance(exact, dict) else range(len(exact)):
        if isinstance(exact[key], Number):
            values[key] = exact[key]
        elif isinstance(exact[key], dict | list):
            _put_numbers(values[key], exact[key])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UntouchableError("a name occurs twice in an object of the body")
    return found


def _integer(text: str) -> float:
    if text == "-0":
        return _number(text)
    number = int(text) if len(text) <= _INTEGER_BITS else None
    if number is None or not -(2 ** (_INTEGER_BITS - 1)) <= number < 2**_INTEGER_BITS:
        raise UntouchableError("an integer of the body has more than 64 bits")
    return number


def _number(text: str) -> float:
    found = Number(text)
    found.text = text
    return found if written(float(found)) != text.encode() else float(found)


_EXACT = json.JSONDecoder(object_pairs_hook=_once, parse_int=_integer, parse_float=_number)
