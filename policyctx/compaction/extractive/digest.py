"""The contents of a summary, how each entry is written, and how it is read back.

    ## Goals & Decisions                  a heading, as the policy names it
    User, in order (…):                   the label of a group
    - Use port 8081 instead.              an entry
      replaces: Use port … for the API.   a note on the entry before it

An entry is one line. The reader goes by labels, so the names that a policy gives its sections do
not matter. A line in another form was written by someone else and is returned as left over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from policyctx.compaction.extractive.sentences import one_line


class Group(StrEnum):
    """The groups of lines, each with the label that it has in a summary, in the order of writing.

    The labels are how a summary knows its own: they never change with a policy.
    """

    TOLD = "User, in order (of two that disagree the later holds):"
    PASTED = "Pasted, or put there by a program:"
    AGENT = "Agent, decided or reported:"
    FOUND = "Found in tool results:"
    CARRIED = "From an earlier summary:"
    FILES = "Files, the one used last first:"
    TOOLS = "Tools used:"
    DONE = "Done last:"
    NEXT = "Announced next:"
    OPEN = "Still open:"
    FAILURES = "Failures:"


class Statement(NamedTuple):
    """A sentence in its writer's own words; with what it answers, or replaces, where it does."""

    text: str
    answers: str = ""
    replaces: str = ""
    """What it takes back, without the values that hold no longer."""
    unresolved: str = ""
    """An earlier statement that it may take back; both stand, in order."""


class FileState(NamedTuple):
    """A file: how often it was read, written, edited, deleted or only named, and its last state."""

    path: str
    counts: tuple[tuple[str, int], ...]
    """By verb (`read`, `written`, `edited`, `deleted`, `named`): how many calls."""
    last: str = ""
    """The last verb, with ` failed` after it if that failed."""
    lines: int | None = None
    """Lines that it had when it was last read or written whole."""


class ToolCount(NamedTuple):
    """A tool: its calls, and how many of them failed or were never answered."""

    name: str
    calls: int
    failed: int = 0
    unanswered: int = 0


class ToolFailure(NamedTuple):
    """A call that failed, and what became of it."""

    call: str
    """The tool and what it was called for; one name for one thing tried."""
    error: str
    times: int = 1
    resolved: str = ""
    """How it was resolved; empty while it is not."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Everything that a summary can hold, each group in the order in which it is written."""

    told: tuple[Statement, ...] = ()
    pasted: tuple[Statement, ...] = ()
    agent: tuple[Statement, ...] = ()
    found: tuple[Statement, ...] = ()
    carried: tuple[Statement, ...] = ()
    files: tuple[FileState, ...] = ()
    tools: tuple[ToolCount, ...] = ()
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    failures: tuple[ToolFailure, ...] = ()


HEADING = "## "
NOTHING = "None."
_ENTRY, _NOTE = "- ", "  "
_STATEMENTS = (Group.TOLD, Group.PASTED, Group.AGENT, Group.FOUND, Group.CARRIED)
_LABELS = {str(group): group for group in Group}

_FILE = re.compile(
    r"(?P<path>.+?): (?P<counts>[a-z]+ \d+(?:, [a-z]+ \d+)*)"
    r"(?:; last (?P<last>[a-z]+(?: failed)?))?(?:; (?P<lines>\d+) lines)?"
)
_TOOL = re.compile(
    r"(?P<name>.+): (?P<calls>\d+) calls?"
    r"(?:, (?P<failed>\d+) failed)?(?:, (?P<unanswered>\d+) unanswered)?"
)
_FAILURE = re.compile(r"(?P<call>.+?) => (?P<error>.+?)(?: \(×(?P<times>\d+)\))?")


class DigestEntry(NamedTuple):
    """An entry as it is written: its line and the notes on it."""

    group: Group
    text: str
    """One line or, with notes, several; none has a line break at its end."""


class FileRead(NamedTuple):
    """What was read: a digest, and the text that is none of its lines."""

    digest: Digest
    left_over: str


def entries_of(digest: Digest) -> list[DigestEntry]:
    """Return all entries of a digest, group after group."""
    groups = (digest.told, digest.pasted, digest.agent, digest.found, digest.carried)
    entries = [
        DigestEntry(group, _statement(statement))
        for group, statements in zip(_STATEMENTS, groups, strict=True)
        for statement in statements
    ]
    entries += [DigestEntry(Group.FILES, _file(file)) for file in digest.files]
    entries += [DigestEntry(Group.TOOLS, _tool(tool)) for tool in digest.tools]
    plain = ((Group.DONE, digest.done), (Group.NEXT, digest.next), (Group.OPEN, digest.open))
    entries += [
        DigestEntry(group, _ENTRY + one_line(text)) for group, texts in plain for text in texts
    ]
    entries += [DigestEntry(Group.FAILURES, _failure(failure)) for failure in digest.failures]
    return entries


def _statement(statement: Statement) -> str:
    notes = {
        "answers": statement.answers,
        "replaces": statement.replaces,
        "may replace": statement.unresolved,
    }
    return _with_notes(statement.text, notes)


def _with_notes(text: str, notes: dict[str, str]) -> str:
    lines = [_ENTRY + one_line(text)]
    lines += [f"{_NOTE}{name}: {one_line(note)}" for name, note in notes.items() if note]
    return "\n".join(lines)


def _file(file: FileState) -> str:
    counts = ", ".join(f"{verb} {count}" for verb, count in file.counts)
    told = len(file.counts) == 1 and file.last == file.counts[0][0]
    last = "" if told or not file.last else f"; last {file.last}"
    lines = "" if file.lines is None else f"; {file.lines} lines"
    return f"{_ENTRY}{one_line(file.path)}: {counts}{last}{lines}"


def _tool(tool: ToolCount) -> str:
    counts = [f"{tool.calls} call{'s' if tool.calls != 1 else ''}"]
    counts += [f"{tool.failed} failed"] if tool.failed else []
    counts += [f"{tool.unanswered} unanswered"] if tool.unanswered else []
    return f"{_ENTRY}{one_line(tool.name)}: {', '.join(counts)}"


def _failure(failure: ToolFailure) -> str:
    times = f" (×{failure.times})" if failure.times > 1 else ""
    text = f"{one_line(failure.call)} => {one_line(failure.error)}{times}"
    return _with_notes(text, {"resolved": failure.resolved})


def read_summary(text: str) -> FileRead:
    """Read the text of a summary; any text will do, and what was not written here is left over."""
    found: dict[Group, list[tuple[str, dict[str, str]]]] = {group: [] for group in Group}
    left_over: list[str] = []
    group: Group | None = None
    for line in text.split("\n"):
        if (label := _LABELS.get(line)) is not None:
            group = label
        elif group is not None and line.startswith(_ENTRY):
            _take_entry(found, left_over, group, line)
        elif group is not None and line.startswith(_NOTE) and found[group]:
            name, _, note = line.strip().partition(": ")
            found[group][-1][1][name] = note
        else:
            group = None
            if line.strip() not in ("", NOTHING):
                left_over.append(line)
    kept = [line for line in left_over if not line.startswith(HEADING)]
    if kept and not any(found.values()):
        return FileRead(Digest(), text)
    return FileRead(_digest(found), "\n".join(kept))


def _take_entry(
    found: dict[Group, list[tuple[str, dict[str, str]]]],
    left_over: list[str],
    group: Group,
    line: str,
) -> None:
    entry = line[len(_ENTRY) :]
    pattern = _PATTERNS.get(group)
    if entry and (pattern is None or pattern.fullmatch(entry)):
        found[group].append((entry, {}))
    else:
        left_over.append(line)


_PATTERNS = {Group.FILES: _FILE, Group.TOOLS: _TOOL, Group.FAILURES: _FAILURE}


def _digest(found: dict[Group, list[tuple[str, dict[str, str]]]]) -> Digest:
    def statements(group: Group) -> tuple[Statement, ...]:
        return tuple(
            Statement(
                text,
                notes.get("answers", ""),
                notes.get("replaces", ""),
                notes.get("may replace", ""),
            )
            for text, notes in found[group]
        )

    def texts(group: Group) -> tuple[str, ...]:
        return tuple(text for text, _ in found[group])

    return Digest(
        told=statements(Group.TOLD),
        pasted=statements(Group.PASTED),
        agent=statements(Group.AGENT),
        found=statements(Group.FOUND),
        carried=statements(Group.CARRIED),
        files=tuple(
            _read_file(match) for text in texts(Group.FILES) if (match := _FILE.fullmatch(text))
        ),
        tools=tuple(
            _read_tool(match) for text in texts(Group.TOOLS) if (match := _TOOL.fullmatch(text))
        ),
        done=texts(Group.DONE),
        next=texts(Group.NEXT),
        open=texts(Group.OPEN),
        failures=tuple(
            _read_failure(match, notes.get("resolved", ""))
            for text, notes in found[Group.FAILURES]
            if (match := _FAILURE.fullmatch(text))
        ),
    )


def _read_file(match: re.Match[str]) -> FileState:
    pairs = (pair.split(" ") for pair in match["counts"].split(", "))
    counts = tuple((verb, int(count)) for verb, count in pairs)
    last = match["last"] or (counts[0][0] if len(counts) == 1 else "")
    return FileState(match["path"], counts, last, int(match["lines"]) if match["lines"] else None)


def _read_tool(match: re.Match[str]) -> ToolCount:
    failed, unanswered = int(match["failed"] or 0), int(match["unanswered"] or 0)
    return ToolCount(match["name"], int(match["calls"]), failed, unanswered)


def _read_failure(match: re.Match[str], resolved: str) -> ToolFailure:
    return ToolFailure(match["call"], match["error"], int(match["times"] or 1), resolved)
