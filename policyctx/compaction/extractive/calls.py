"""The calls of an agent, as what they say of themselves: tool, path, command, result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.texts import one_line, shortened, words_of
from policyctx.messages.reading import Reading

# Of a result that says nothing about its success only the beginning and the end are looked at.
_LOOKED_AT = 300
_LONGEST_COMMAND, _LONGEST_PATH, _LONGEST_NAME = 4_000, 400, 100
_EXIT = re.compile(r"exit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}[1-9]", re.IGNORECASE)
_SAID = re.compile(r'\W{0,3}"?(?:error"?:\s*"[^"]|success"?:\s*false)', re.IGNORECASE)
_BEFORE_WORDS = re.compile(r"(?:\W|<[\w-]+>)*")
EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|\s*$)", re.MULTILINE)
# How programs sum up a failure.
REPORTED = re.compile(
    r"(?:^|[\s,(])[1-9]\d* (?:failed|failures?|failing|errors?)\b|^error(?:\[\w+\])?: \S"
    r"|^make(?:\[\d+\])?: \*\*\* |^npm ERR! |^(?:FAILED|FAIL)\b|\bBUILD FAILED\b"
    r"|: (?:fatal )?error(?: [A-Z]+\d+)?: \S|^Traceback \(most recent call last\)|^panic: ",
    re.MULTILINE,
)
_PATH_FIELDS = re.compile(r"path|(?<!pro)file|uri|notebook", re.IGNORECASE)
_SHELL_FIELDS = ("command", "cmd", "script")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# The lines of a here document, and text of several lines in quotes: they are no commands.
_HERE_DOCUMENT = re.compile(
    r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(?:.*?\n)??\s*\2\b|<<-?\s*['\"]?\w+['\"]?[^\n]*\n.*\Z",
    re.DOTALL,
)
_QUOTED_LINES = re.compile(r"'[^'\n]*\n[^']*'|\"[^\"\n]*\n[^\"]*\"")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_OPEN_QUOTE = re.compile(r"['\"](?!['\"])[^'\"]*\Z")
_COMMAND_END = re.compile(r"&&|\|\|?|;|\n")


class Call(NamedTuple):
    """One call."""

    tool: str
    message: int
    """0-based position of the message that makes it."""
    text: str
    """Its input, as the text of its item."""
    fields: Mapping[str, object]
    """Its input, read; empty when that is not a JSON object."""
    result: str | None
    """The words of its result; None without one."""
    failed: bool
    """Whether the result is flagged, begins or ends as failures do, or sums one up."""

    @property
    def path(self) -> str | None:
        """The path in its input, where a field is named for one."""
        for field, value in self.fields.items():
            if not isinstance(value, str) or not _PATH_FIELDS.search(field):
                continue
            if 0 < len(value) <= _LONGEST_PATH and "\n" not in value:
                return value
        return None

    @property
    def command(self) -> str | None:
        """The command of a shell in its input; None without one."""
        for field in _SHELL_FIELDS:
            command = self.fields.get(field)
            if isinstance(command, list):
                command = " ".join(part for part in command if isinstance(part, str))
            if isinstance(command, str) and (self.path is None or field != "command"):
                return command[:_LONGEST_COMMAND]
        return None

    @property
    def name_words(self) -> list[str]:
        """The words that the tool's name is put together from, in lower case."""
        return [word.lower() for word in _NAME_WORD.findall(self.tool)]

    @property
    def name(self) -> str:
        """The tool and what it was called for, in one line."""
        first = (value for value in self.fields.values() if isinstance(value, str) and value)
        subject = self.path or next(first, self.text if self.text not in ("{}", "null") else "")
        return f"{one_line(self.tool)} {shortened(one_line(subject), _LONGEST_NAME)}".strip()


def calls_in(reading: Reading, skipped: frozenset[int], cues: Cues) -> Iterator[Call]:
    """Yield the calls of a conversation, in order, except those in skipped messages."""
    items, partners = reading.items, reading.partners
    for position, item in enumerate(items):
        if item.kind != "tool_call" or item.message in skipped:
            continue
        result = items[partners[position]] if position in partners else None
        said = None if result is None else words_of(result.text)
        failed = result is not None and (result.error or _failed(said or "", cues))
        call = Call(
            item.tool or "unnamed", item.message, item.text, _fields(item.text), said, failed
        )
        # A pipe hides the exit code of what comes before it.
        if said and not failed and call.command and REPORTED.search(said[-4 * _LOOKED_AT :]):
            call = call._replace(failed=True)
        yield call


def _fields(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _failed(text: str, cues: Cues) -> bool:
    start, end = text[:_LOOKED_AT], text[-_LOOKED_AT:]
    said = begins_failure(start, cues) or _SAID.match(start)
    return bool(said or _EXIT.search(start) or _EXIT.search(end))


def begins_failure(line: str, cues: Cues) -> bool:
    """Whether a line begins with a failure, or with an exception as it is printed."""
    begins = _BEFORE_WORDS.match(line)
    at = begins.end() if begins else 0
    folded = line[:_LOOKED_AT].casefold()
    return bool(
        cues.failures.words.match(folded, at)
        or cues.failures.parts.match(folded, at)
        or EXCEPTION.match(line, at)
    )


def bare_command(command: str) -> str:
    """Return a text for a shell without here documents and quoted lines, which name no files."""
    return _QUOTED_LINES.sub("''", _HERE_DOCUMENT.sub(r"<<\2\3", command))


def command_parts(command: str) -> list[str]:
    """Return the commands that a text for a shell is put together from, without quoted texts."""
    plain = _OPEN_QUOTE.sub("", _QUOTED.sub("''", bare_command(command)))
    return [part.strip() for part in _COMMAND_END.split(plain) if part.strip()]
