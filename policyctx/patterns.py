"""Patterns that find secrets in a time that grows with the text alone, by RE2."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from policyctx.errors import required

_MARK = re.compile(r"\[redacted:([A-Za-z0-9_-]+)\]")
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")
# A secret beside another one may show only when that is replaced.
_MOST_PASSES = 3


class LinearPattern(Protocol):
    """The part of a compiled pattern that is used."""

    groups: int

    def search(self, text: str | bytes) -> Any:  # noqa: ANN401 - re2 has no types
        """Return the first match, None for none."""

    def finditer(self, text: str) -> Iterator[Any]:
        """Yield the matches, from left to right."""


def names_of_marks(text: str) -> list[str]:
    """Return the name of each secret that was replaced in a text."""
    return _MARK.findall(text)


def linear_pattern(text: str) -> LinearPattern:
    """Compile a pattern; raises `ValueError` with what is wrong, and `MissingExtraError`."""
    try:
        found = _compiled(text)
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate cannot be looked for") from None
    if r"\Q" in text:
        raise ValueError(r"\Q is not read: write a backslash before each sign")
    if found.groups > 1:
        raise ValueError("more than one group: which is the secret? write (?:…) for the others")
    if found.search(""):
        raise ValueError("it matches the empty text, so it would match everywhere")
    return found


def _compiled(text: str) -> LinearPattern:
    with required("`redact`", "re2", needs="google-re2>=1.1", extra="redact"):
        import re2  # noqa: PLC0415 - an optional package
    options = re2.Options()
    options.log_errors = False
    try:
        found: LinearPattern = re2.compile(text, options)
    except re2.error as error:
        said = error.args[0]
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        raise ValueError(f"not a pattern of RE2: {said}") from None
    return found


class Original(NamedTuple):
    """A secret that was replaced, and the name of its pattern."""

    name: str
    text: str


class Secrets:
    """Finds the secrets of a policy in texts, and replaces each by a mark with its name."""

    def __init__(self, patterns: Mapping[str, str], kept: Iterable[str] = ()) -> None:
        names, kept = {name: name_in_marks(name) for name in patterns}, frozenset(kept)
        # What is kept holds nothing that another pattern has to remove for good.
        last = sorted(patterns, key=kept.__contains__)
        self._patterns = {names[name]: linear_pattern(patterns[name]) for name in last}
        self._kept = {names[name] for name in kept}
        self.originals: dict[Original, None] = {}
        """What was replaced and is to be kept, each once, until the caller removes it."""
        # One search for all of them; RE2 rejects two groups of one name.
        together = "|".join(f"(?:{text})" for text in patterns.values())
        self._any = _compiled(re.sub(r"\(\?P?<\w+>", "(", together))

    def replaced(self, text: str) -> str:
        """Return the text with its secrets replaced: the same object where it has none.

        A text that was returned before stays as it is. Of a pattern with a group the group is
        replaced. A mark alone is no secret, whatever matches it.
        """
        # In bytes, which `re2` searches without translating places.
        for _ in range(_MOST_PASSES if self._any.search(_encodable(text).encode()) else 0):
            before = text
            for name, pattern in self._patterns.items():
                text, found = _marked(text, name, pattern)
                if found and name in self._kept:
                    self.originals |= dict.fromkeys(Original(name, one) for one in found)
            if text == before:
                break
        return text


def name_in_marks(name: str) -> str:
    """Return the name of a pattern as marks show it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _marked(text: str, name: str, pattern: LinearPattern) -> tuple[str, list[str]]:
    """Return a text with the matches of a pattern replaced, and what they were."""
    pieces, originals, end, at = list[str](), list[str](), 0, 0
    marks = [mark.span() for mark in _MARK.finditer(text)]
    for found in pattern.finditer(_encodable(text)):
        start, stop = found.span(_group_of(pattern))
        # A mark is replaced whole or not at all.
        while at < len(marks) and marks[at][1] <= start:
            at += 1
        over = at
        while over < len(marks) and marks[over][0] < stop:
            start, stop = min(start, marks[over][0]), max(stop, marks[over][1])
            over += 1
        if start >= end and re.search(r"\w", _MARK.sub("", text[start:stop])):
            pieces += [text[end:start], f"[redacted:{name}]"]
            originals.append(text[start:stop])
            end = stop
    return "".join([*pieces, text[end:]]) if pieces else text, originals


def _group_of(pattern: LinearPattern) -> int:
    """Return the number of the group that is the secret; 0 for the whole match."""
    return pattern.groups


def _encodable(text: str) -> str:
    """Return a text of the same length without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text
