"""What calls have left outside the conversation: branches, commits, requests, running processes.

Nobody finds these again in the files. They are recognised by the commands that make them and by
what the programs print then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.sentences import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.work import Call

_MOST_COMMITS, _MOST_LINKS, _MOST_RUNNING = 5, 5, 8
# Of a result only the beginning and the end are looked through.
_LOOKED_AT = 2_000
_LONGEST_LINE, _LONGEST_COMMAND = 120, 100

_BRANCH = "branch "
_BRANCH_MADE = re.compile(r"\bgit (?:checkout -[bB]|switch -[cC])\s+([\w./-]+)")
_BRANCH_SAID = re.compile(
    r"^(?:Switched to (?:a new )?branch '([^']+)'|On branch (\S+))", re.MULTILINE
)
_COMMIT = re.compile(r"^\[(\S+)(?: \([^)\n]*\))? ([0-9a-f]{7,40})\] ([^\n]*)", re.MULTILINE)
# Labels of the state of a repository.
_TREE, _HEAD, _REMOTE = "working tree", "newest commit", "remote"
_STATES = (_TREE, _HEAD, _REMOTE)
_CHANGED = re.compile(
    r"^\s+(?:modified|new file|deleted|renamed|both modified):\s+(\S+)"
    r"|^(?:[MADRCU][MADRCU ]| [MADRCU]|\?\?) (\S+)",
    re.MULTILINE,
)
_MOST_NAMED = 4
_CLEAN = re.compile(r"working tree clean")
_AHEAD = re.compile(r"(?:ahead of|behind|up to date with) '[^'\n]+'(?: by \d+ commits?)?")
_LOGGED = re.compile(r"^[0-9a-f]{7,12} [^\n]+", re.MULTILINE)
_PUSHED = re.compile(
    r"(?:[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}|\[new (?:branch|tag)\])\s+\S+\s+->\s+\S+"
)
_MAKES_REQUEST = re.compile(r"\bcreate\b|\bgit push\b")
_LINK = re.compile(r"https?://[^\s<>\"'()]+/(?:pull|pulls|issues|merge_requests)/\d+")

_IN_BACKGROUND = re.compile(
    r"(?<![&>|])&(?![&>\d])\s*(?:$|\n|;|\)|disown|echo\b|sleep\b)|\bnohup\s|\bsetsid\s"
    r"|\bscreen -\w*d\w*\s|\btmux new(?:-session)?\s"
    r"|\bdocker(?:[ -]compose)? (?:up|run)\b[^\n]*\s-d\b|\bsystemctl start\s"
)
_STOPS = re.compile(r"kill|stop|terminate|\bdown\b", re.IGNORECASE)
_NAME_GIVEN = re.compile(
    r"(?:\bscreen -\w*S\s+|\btmux new\S*(?:\s+-d)?\s+-s\s+|--name[ =]|\bstart )([\w.-]+)"
)
_ID_SAID = re.compile(
    r"\b(?:id|pid|shell|process|task)\b\W{1,3}([\w-]*\d[\w-]*|[\w-]{6,})", re.IGNORECASE
)
_JOB = re.compile(r"^\[\d+\]\s+(\d+)\s*$", re.MULTILINE)
_PORT = re.compile(
    r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(\d{2,5})|--?p(?:ort)?[ =](\d{2,5})"
    r"|\bport (\d{2,5})|\bPORT=(\d{2,5})"
)
_ENDED = re.compile(
    r"completed|exited|finished|killed|stopped|not running|no such process", re.IGNORECASE
)
_KEY = re.compile(r"\bid ([^\s,)]+)|\bport (\d+)")
_PART_END = re.compile(r"&&|;|\n")


def repository_of(
    earlier: Iterable[Statement], calls: Sequence[Call], said: Iterable[Said]
) -> tuple[Statement, ...]:
    """Return the branch, the last commits, and the last requests that were spoken of, in order."""
    found = _Repository()
    for one in earlier:
        found.take_back(one)
    for call in calls:
        found.add_call(call)
    for sentence in said:
        if "://" in sentence.text:
            found.add_links(sentence.text, sentence.message)
    return found.statements()


class _Repository:
    """What calls did to a repository, the last of each by its text."""

    def __init__(self) -> None:
        self._branch: list[Statement] = []
        self._commits: dict[str, Statement] = {}
        self._links: dict[str, Statement] = {}
        self._states: dict[str, Statement] = {}
        """By its label: what was seen or done last, such as the state of the working tree."""

    def statements(self) -> tuple[Statement, ...]:
        commits, links = [*self._commits.values()], [*self._links.values()]
        kept = (*commits[-_MOST_COMMITS:], *self._states.values(), *links[-_MOST_LINKS:])
        return (*self._branch, *kept)

    def take_back(self, one: Statement) -> None:
        """Take a statement of an earlier summary."""
        if one.text.startswith(_BRANCH):
            self._branch = [one]
        elif (label := one.text.partition(": ")[0]) in _STATES:
            self._states[label] = one
        else:
            kind = self._links if _LINK.search(one.text) else self._commits
            kind[one.text] = one

    def add_call(self, call: Call) -> None:
        command, printed = call.command, _ends_of(call.result or "")
        if command is not None and "git" in command and not call.failed:
            for name in _branches_in(command, printed):
                self._branch = [Statement(_BRANCH + name, source=call.message)]
            for branch, commit, subject in _COMMIT.findall(printed):
                text = shortened(one_line(f"commit {commit} on {branch}: {subject}"), _LONGEST_LINE)
                self._commits[text] = Statement(text, source=call.message)
                self._states.pop(_TREE, None)
                self._states.pop(_HEAD, None)
            for label, said in _states_in(command, printed):
                self._states.pop(label, None)
                text = shortened(one_line(f"{label}: {said}"), _LONGEST_LINE)
                self._states[label] = Statement(text, source=call.message)
        if call.created or (command is not None and _MAKES_REQUEST.search(command)):
            self.add_links(printed, call.message)

    def add_links(self, text: str, message: int) -> None:
        for link in _LINK.findall(text):
            self._links.pop(link, None)
            self._links[link] = Statement(link, source=message)


def _states_in(command: str, printed: str) -> Iterator[tuple[str, str]]:
    """Yield what a command of git showed of a repository, or did to another one."""
    if "git status" in command:
        changed = [one or other for one, other in _CHANGED.findall(printed)]
        if changed:
            more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
            yield _TREE, f"not committed {', '.join(changed[:_MOST_NAMED])}{more}"
        elif _CLEAN.search(printed):
            yield _TREE, "clean"
        if (ahead := _AHEAD.search(printed)) is not None:
            yield _REMOTE, ahead[0]
    if "git log" in command and (newest := _LOGGED.search(printed)) is not None:
        yield _HEAD, newest[0]
    if "git push" in command and (pushed := _PUSHED.search(printed)) is not None:
        yield _REMOTE, f"pushed {one_line(pushed[0])}"


def _branches_in(command: str, printed: str) -> Iterator[str]:
    said = _BRANCH_SAID.findall(printed)
    for switched, status in said:
        yield switched or status
    if not said:
        yield from _BRANCH_MADE.findall(command)[-1:]


def _ends_of(text: str) -> str:
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


class _Process(NamedTuple):
    statement: Statement
    keys: frozenset[str]
    """The ids and names that a later call stops it by."""


def running_of(earlier: Iterable[Statement], calls: Sequence[Call]) -> tuple[Statement, ...]:
    """Return what was started in the background and, as far as calls show, still runs."""
    running = [_Process(one, _keys_of(one.text)) for one in earlier]
    for call in calls:
        if running and _ends_something(call):
            running = [one for one in running if not any(key in call.text for key in one.keys)]
        if (started := _started(call)) is not None:
            # What is started again, or takes the port, takes the place of what was there.
            same = started.keys
            running = [
                one
                for one in running
                if one.statement.text != started.statement.text and not one.keys & same
            ]
            running.append(started)
    return tuple(one.statement for one in running[-_MOST_RUNNING:])


def _ends_something(call: Call) -> bool:
    """Whether a call stops a process, or shows that one has ended."""
    command = call.command
    if _STOPS.search(call.tool) or (command is not None and _STOPS.search(command)):
        return not call.failed
    printed = call.result or ""
    return command is None and _ENDED.search(printed[:_LOOKED_AT]) is not None


def _started(call: Call) -> _Process | None:
    command = call.command or ""
    flagged = any("background" in name and value is True for name, value in call.fields.items())
    if call.failed or not (flagged or (command and _IN_BACKGROUND.search(command))):
        return None
    printed = (call.result or "")[:_LOOKED_AT]
    keys = [*_NAME_GIVEN.findall(command), *_JOB.findall(printed), *_ID_SAID.findall(printed)][:1]
    ports = list(dict.fromkeys("".join(found) for found in _PORT.findall(f"{command}\n{printed}")))
    notes = [*(f"id {key}" for key in keys), *(f"port {port}" for port in ports[:2])]
    subject = shortened(one_line(_background_part(command)), _LONGEST_COMMAND) or call.name
    text = f"{subject} ({', '.join(notes)})" if notes else subject
    return _Process(Statement(text, source=call.message), _keys_of(text))


def _background_part(command: str) -> str:
    """Return the part of a command that goes into the background; all of it if none does."""
    parts = _PART_END.split(command)
    started = (part for part in parts if _IN_BACKGROUND.search(part))
    return next(started, command).strip()


def _keys_of(text: str) -> frozenset[str]:
    return frozenset(key for pair in _KEY.findall(text) for key in pair if key)
