"""How diagnostics are shown: for people with the line and a caret, for programs, for GitHub."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from policyctx.cli.output import json_text
from policyctx.errors import Diagnostic, visible

# The word that a place is at: a quoted scalar, or all up to where YAML ends a plain one.
_WORD = re.compile(
    r"""'[^']*'|"[^"]*"|[^\s,\[\]{}#][^,\[\]{}#]*?(?=\s*(?::\s|:$|[,\[\]{}#]|$))|."""
)
# A longer line is shown around its place only.
_SHOWN_CHARS = 120


class Format(StrEnum):
    """How to show diagnostics."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def shown(diagnostics: Iterable[Diagnostic], form: Format) -> str:
    """Return the diagnostics in the given form, without a newline at the end.

    Control and hidden characters are shown as escapes.
    """
    if form is Format.JSON:
        return json_text([_plain(d) for d in diagnostics])
    one = _for_github if form is Format.GITHUB else _for_people
    return "\n".join(map(one, diagnostics))


def _for_people(diagnostic: Diagnostic) -> str:
    """`file:line:column: code: sentence`, then the line with a caret under the word."""
    place = diagnostic.place
    if not place.line or not place.source_line.strip():
        return visible(str(diagnostic))
    start = max(0, place.column - 1 - _SHOWN_CHARS // 2)
    line = place.source_line[start : start + _SHOWN_CHARS]
    before, rest = line[: place.column - 1 - start], line[place.column - 1 - start :]
    word = _WORD.match(rest)
    under_word = visible(word.group() if word else "^")
    number, carets = f"{place.line:5}", "^" * max(1, _width(under_word))
    margin = " " * len(number)
    under = "".join("\t" if char == "\t" else " " * _width(char) for char in visible(before))
    said, line = visible(str(diagnostic)), visible(line)
    return f"{said}\n{number} | {line}\n{margin} | {under}{carets}"


def _width(text: str) -> int:
    """Columns that a terminal gives the text: CJK characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _for_github(diagnostic: Diagnostic) -> str:
    """A workflow command, which GitHub shows beside the line of a pull request."""
    place, text = diagnostic.place, diagnostic.sentence
    text = f"{text}; {diagnostic.hint}" if diagnostic.hint else text
    fields = f"file={_property(place.file)},title={diagnostic.code}"
    if place.line:
        fields += f",line={place.line},col={place.column}"
    return f"::{diagnostic.severity} {fields}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _plain(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "file": diagnostic.place.file,
        "line": diagnostic.place.line,
        "column": diagnostic.place.column,
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "sentence": diagnostic.sentence,
        "hint": diagnostic.hint,
    }
