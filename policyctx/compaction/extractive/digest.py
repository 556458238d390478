"""The contents of a summary, how each entry is written, and how it is read back.

    ## Goals & Decisions                  a heading, as the policy names it
    User, in order:                       the label of a group
    - Use port 8081 instead.              an entry
      replaces: Use port … for the API.   a note on the entry before it

An entry is one line. The reader goes by labels, so the names that a policy gives its sections do
not matter. A line in another form was written by someone else and is returned as left over. The
labels of version 0.1 are read as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.sentences import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class Group(StrEnum):
    """The groups of lines, each with the label that it has in a summary, in the order of writing.

    The labels are how a summary knows its own: they never change with a policy. They are short,
    because each takes room from the contents.
    """

    TOLD = "User, in order:"
    PASTED = "Pasted:"
    AGENT = "Agent:"
    FOUND = "In results:"
    CARRIED = "Earlier summary:"
    FILES = "Files, last used first:"
    EDITS = "Last edits:"
    TOOLS = "Tools:"
    REPOSITORY = "Repository:"
    RUNNING = "Running:"
    CHECKS = "Checks, last run:"
    REPORT = "Closing report:"
    TASKS = "Finished, newest first:"
    DONE = "Done last:"
    NEXT = "Next:"
    OPEN = "Still open:"
    FAILURES = "Failures:"


# The labels that version 0.1 wrote.
_FORMER_LABELS = {
    "User, in order (of two that disagree the later holds):": Group.TOLD,
    "Pasted, or put there by a program:": Group.PASTED,
    "Agent, decided or reported:": Group.AGENT,
    "Found in tool results:": Group.FOUND,
    "From an earlier summary:": Group.CARRIED,
    "Files, the one used last first:": Group.FILES,
    "Tools used:": Group.TOOLS,
    "Announced next:": Group.NEXT,
}
# The label of the user's words where orders had to be left out.
_LEFT_OUT = re.compile(
    r"User, in order; (?P<count>\d+) more orders? (?:left out|in archive (?P<archives>.+)):"
)
_MOST_ARCHIVES = 3


class Statement(NamedTuple):
    """A sentence in its writer's own words; with what it answers, or replaces, where it does."""

    text: str
    answers: str = ""
    replaces: str = ""
    """What it takes back, without the values that hold no longer."""
    unresolved: str = ""
    """An earlier statement that it may take back; both stand, in order."""
    source: int = -1
    """0-based position of its message in the history; -1 if it is of an earlier summary."""
    done: str = ""
    """The command by which it was carried out, of an errand of the user."""


class FileState(NamedTuple):
    """A file: how often it was read, written, edited, deleted or only named, and its last state."""

    path: str
    counts: tuple[tuple[str, int], ...]
    """By verb (`read`, `written`, `edited`, `deleted`, `named`): how many calls."""
    last: str = ""
    """The last verb, with ` failed` after it if that failed."""
    lines: int | None = None
    """Lines that it had when it was last read or written whole."""
    source: int = -1
    """0-based position of the last call's message; -1 if it is of an earlier summary."""
    aside: bool = False
    """Whether it is outside of the folders of the work."""


class ToolCount(NamedTuple):
    """A tool: its calls, and how many of them failed or were never answered."""

    name: str
    calls: int
    failed: int = 0
    unanswered: int = 0
    source: int = -1
    """0-based position of the last call's message; -1 if it is of an earlier summary."""


class ToolFailure(NamedTuple):
    """A call that failed, and what became of it."""

    call: str
    """The tool and what it was called for; one name for one thing tried."""
    error: str
    times: int = 1
    resolved: str = ""
    """How it was resolved; empty while it is not."""
    source: int = -1
    """0-based position of the last call's message; -1 if it is of an earlier summary."""


class LeftOut(NamedTuple):
    """The user's orders that there was no room for, in this summary and those before it."""

    orders: int = 0
    archives: tuple[str, ...] = ()
    """The archives that hold them."""


NOTHING_LEFT_OUT = LeftOut()


@dataclass(frozen=True, slots=True)
class Digest:
    """Everything that a summary can hold, each group in the order in which it is written."""

    told: tuple[Statement, ...] = ()
    pasted: tuple[Statement, ...] = ()
    agent: tuple[Statement, ...] = ()
    found: tuple[Statement, ...] = ()
    carried: tuple[Statement, ...] = ()
    files: tuple[FileState, ...] = ()
    edits: tuple[Statement, ...] = ()
    tools: tuple[ToolCount, ...] = ()
    repository: tuple[Statement, ...] = ()
    running: tuple[Statement, ...] = ()
    checks: tuple[Statement, ...] = ()
    report: tuple[Statement, ...] = ()
    tasks: tuple[Statement, ...] = ()
    done: tuple[Statement, ...] = ()
    next: tuple[Statement, ...] = ()
    open: tuple[Statement, ...] = ()
    failures: tuple[ToolFailure, ...] = ()
    left_out: LeftOut = NOTHING_LEFT_OUT


HEADING = "## "
DONE = "done"
NOTHING = "None."
_ENTRY, _NOTE = "- ", "  "
_LABELS = {str(group): group for group in Group} | _FORMER_LABELS

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
    source: int = -1
    """0-based position of the message that it is from; -1 if it is of an earlier summary."""
    aside: bool = False
    """Whether it is a file outside of the folders of the work."""


class FileRead(NamedTuple):
    """What was read: a digest, and the text that is none of its lines."""

    digest: Digest
    left_over: str


def entries_of(digest: Digest) -> list[DigestEntry]:
    """Return all entries of a digest, group after group."""
    aside = {_file(file) for file in digest.files if file.aside}
    return [
        DigestEntry(group, text, source, group is Group.FILES and text in aside)
        for group in Group
        for text, source in _entries_of_group(digest, group)
    ]


def _entries_of_group(digest: Digest, group: Group) -> Iterator[tuple[str, int]]:
    match group:
        case Group.FILES:
            yield from ((_file(file), file.source) for file in digest.files)
        case Group.TOOLS:
            yield from ((_tool(tool), tool.source) for tool in digest.tools)
        case Group.FAILURES:
            yield from ((_failure(failure), failure.source) for failure in digest.failures)
        case _:
            yield from ((_statement(one), one.source) for one in statements_of(digest, group))


def statements_of(digest: Digest, group: Group) -> tuple[Statement, ...]:
    """Return the statements of a group; none of a group that holds something else."""
    return {
        Group.TOLD: digest.told,
        Group.PASTED: digest.pasted,
        Group.AGENT: digest.agent,
        Group.FOUND: digest.found,
        Group.CARRIED: digest.carried,
        Group.REPOSITORY: digest.repository,
        Group.RUNNING: digest.running,
        Group.EDITS: digest.edits,
        Group.CHECKS: digest.checks,
        Group.REPORT: digest.report,
        Group.TASKS: digest.tasks,
        Group.DONE: digest.done,
        Group.NEXT: digest.next,
        Group.OPEN: digest.open,
    }.get(group, ())


def label_of(group: Group, left_out: LeftOut) -> str:
    """Return the label of a group; that of the user's words says which orders are not there."""
    if group is not Group.TOLD or not left_out.orders:
        return str(group)
    names = left_out.archives
    if len(names) > _MOST_ARCHIVES:
        names = (names[0], "…", names[-1])
    where = f"in archive {', '.join(names)}" if names else "left out"
    orders = "order" if left_out.orders == 1 else "orders"
    return f"{str(group)[:-1]}; {left_out.orders} more {orders} {where}:"


def _statement(statement: Statement) -> str:
    notes = {
        "answers": statement.answers,
        "replaces": statement.replaces,
        "may replace": statement.unresolved,
        DONE: statement.done,
    }
    return _with_notes(statement.text, notes)


def _with_notes(text: str, notes: dict[str, str]) -> str:
    lines = [_ENTRY + one_line(text)]
    lines += [f"{_NOTE}{name}: {one_line(note)}" for name, note in notes.items() if note]
    return "\n".join(lines)


def is_done(text: str) -> bool:
    """Whether an entry is an errand of the user that was carried out."""
    return f"\n{_NOTE}{DONE}: " in text


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
    left_out = LeftOut()
    for line in text.split("\n"):
        if (label := _LABELS.get(line)) is not None:
            group = label
        elif (more := _LEFT_OUT.fullmatch(line)) is not None:
            group = Group.TOLD
            archives = tuple(filter(None, (more["archives"] or "").split(", ")))
            left_out = LeftOut(int(more["count"]), archives)
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
    return FileRead(replace(_digest(found), left_out=left_out), "\n".join(kept))


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
                done=notes.get(DONE, ""),
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
        repository=statements(Group.REPOSITORY),
        running=statements(Group.RUNNING),
        edits=statements(Group.EDITS),
        checks=statements(Group.CHECKS),
        report=statements(Group.REPORT),
        tasks=statements(Group.TASKS),
        done=statements(Group.DONE),
        next=statements(Group.NEXT),
        open=statements(Group.OPEN),
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
