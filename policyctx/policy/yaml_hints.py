"""What a person likely meant where a parser of YAML only knows what it did not expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# A full-width sign stands so far above its half-width twin.
_FULL_WIDTH = {chr(ord(sign) + 0xFEE0): sign for sign in ":,{}[]"} | {"“": '"', "”": '"'}
# By what the parser says; the first that is part of it counts.
_HINTS = {
    "mapping values are not allowed": "quote a text that has a colon and a space in it",
    "expected alphabetic or numeric": "quote a text that begins with `*` or `&`",
    "could not find expected ':'": "a key ends with a colon and a space, one line above perhaps",
    "unknown escape character": "use single quotes where a backslash is meant as one",
    "did not find expected key": "quote a text that begins with `{` or `[`; indent keys of one map"
    " alike",
}


def hint_for(error: Any, lines: Sequence[str]) -> str:  # noqa: ANN401 - PyYAML's errors
    """Return what to mend for an error of the parser, empty when nothing likely is known."""
    mark, context = error.problem_mark, error.context_mark
    first = (context or mark).line if context or mark else 0
    for char in "".join(lines[first : mark.line + 1 if mark else first + 1]):
        if char in _FULL_WIDTH:
            return f"{char!r} is a full-width sign; use {_FULL_WIDTH[char]!r}"
    problem = str(error.problem)
    if "cannot start any token" in problem and mark:
        return _about_character(lines[mark.line][mark.column])
    if context and ("end of stream" in problem or "expected ',' or" in problem):
        opened = lines[context.line][context.column]
        return f"the {opened} at {context.line + 1}:{context.column + 1} may not be closed"
    return next((hint for said, hint in _HINTS.items() if said in problem), "")


def _about_character(char: str) -> str:
    return "indent with spaces, not with a tab" if char == "\t" else f"quote a text with {char!r}"
