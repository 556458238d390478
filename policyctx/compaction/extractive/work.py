"""What the agent did with its tools: calls and files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.assembly import path_in
from policyctx.compaction.extractive.digest import FileState, ToolCount
from policyctx.compaction.extractive.sentences import one_line, shortened, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.compaction.assembly import PathFields
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.places import Places
    from policyctx.messages.reading import Reading

# Characters of a call's name in the summary.
_LONGEST_NAME = 100
# What tells that a result failed is at its beginning or its end.
LOOKED_AT = 300

_EXIT = re.compile(r"exit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}[1-9]", re.IGNORECASE)
_SAID = re.compile(r'\W{0,3}"?(?:error"?:\s*"[^"]|success"?:\s*false)', re.IGNORECASE)
_BEFORE_WORDS = re.compile(r"(?:\W|<[\w-]+>)*")
EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|\s*$)", re.MULTILINE)
# How programs sum up a failure, and the programs whose output is the text of something else.
REPORTS = re.compile(
    r"(?:^|[\s,(])[1-9]\d* (?:failed|failures?|failing|errors?)\b|^error(?:\[\w+\])?: \S"
    r"|^make(?:\[\d+\])?: \*\*\* |^npm ERR! |^(?:FAILED|FAIL)\b|\bBUILD FAILED\b"
    r"|: (?:fatal )?error(?: [A-Z]+\d+)?: \S|^Traceback \(most recent call last\)|^panic: ",
    re.MULTILINE,
)
COMMAND_END = re.compile(r"&&|\|\|?|;|\n")
_FIRST_WORD = re.compile(r"\s*(?:\w+=\S*\s+)*([\w./-]+)")
_SHOWS_TEXT = frozenset(
    {
        "awk", "bat", "cat", "cd", "column", "curl", "cut", "diff", "docker", "echo", "export",
        "find", "gh", "git", "grep", "head", "journalctl", "jq", "kubectl", "less", "ls", "nl",
        "printf", "rg", "sed", "sleep", "sort", "tail", "tee", "tr", "true", "uniq", "wc", "xargs",
    }
)  # fmt: skip
# Programs whose exit code says whether they found something, and what may come before them.
_PROBES = frozenset(
    {
        "[", "[[", "ag", "cmp", "command", "diff", "egrep", "fgrep", "find", "git check-ignore",
        "git config", "git diff", "git grep", "git ls-files", "git merge-base", "git rev-parse",
        "git show-ref", "grep", "lsof", "ls", "pgrep", "rg", "stat", "test", "type", "which",
    }
)  # fmt: skip
_BEFORE_PROBE = frozenset({"cd", "echo", "export", "if", "printf", "sleep", "then", "fi", "else"})
_FILTERS = frozenset(
    {"cat", "column", "cut", "head", "jq", "nl", "sed", "sort", "tail", "tr", "true", "uniq", "wc"}
)
_LINE_OF_COMMANDS = re.compile(r"[;\n]")
_ASSIGNED = re.compile(r"\w+=\S*$")
_PATH_FIELDS = re.compile(r"path|file|uri|notebook", re.IGNORECASE)


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
    result_message: int
    failed: bool

    @property
    def path(self) -> str | None:
        """The path in its input, where a field is named for one."""
        for field, value in self.fields.items():
            if _PATH_FIELDS.search(field) and isinstance(value, str) and _is_path(value):
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
    def tool_words(self) -> tuple[str, ...]:
        """The words that the tool's name is put together from."""
        return tuple(_NAME_WORD.findall(self.tool))

    @property
    def created(self) -> bool:
        """Whether the tool's name says that it makes something."""
        return _verb_in(self.tool) == "written"

    @property
    def name(self) -> str:
        """The tool and what it was called for, in one line: one name for one thing tried."""
        first = (value for value in self.fields.values() if isinstance(value, str) and value)
        subject = self.path or next(first, self.text if self.text not in ("{}", "null") else "")
        line = shortened(one_line(subject), _LONGEST_NAME).replace(" => ", " = > ")
        return f"{one_line(self.tool)} {line}".strip()


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
            item.tool or "unnamed", item.message, item.text, _fields(item.text),
            said, -1 if result is None else result.message, failed,
        )  # fmt: skip
        if failed and _is_probe(call.command) and not _reported_failure(said or ""):
            yield call._replace(failed=False)
            continue
        # A pipe hides the exit code of what comes before it.
        if not failed and said and _runs(call.command) and _reported_failure(said):
            call = call._replace(failed=True)
        yield call


def _fields(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_path(value: str) -> bool:
    longest = 400
    return 0 < len(value) <= longest and "\n" not in value


def _failed(text: str, cues: Cues) -> bool:
    """Whether a result reads like a failure, as those without a flag must be told."""
    start, ends = text[:LOOKED_AT], text[-LOOKED_AT:]
    said = tells_failure(start, cues) or _SAID.match(start)
    return bool(said or _EXIT.search(start) or _EXIT.search(ends))


def command_parts(command: str) -> list[str]:
    """Return the commands that a text for a shell is put together from, quoted texts left out."""
    plain = _QUOTED_LINES.sub("''", _HERE_DOCUMENT.sub(r"<<\2\3", command))
    plain = _OPEN_QUOTE.sub("", _QUOTED.sub("''", plain))
    return [part.strip() for part in COMMAND_END.split(plain) if part.strip()]


def shows_text(part: str) -> bool:
    """Whether one command shows the text of something else, which may speak of errors."""
    word = _FIRST_WORD.match(part)
    return word is None or word[1] in _SHOWS_TEXT


def subject_of(part: str) -> str:
    """Return what one command runs: its program, and its first word that is not an option."""
    word = _FIRST_WORD.match(part)
    if word is None:
        return part
    rest = (one for one in part[word.end() :].split() if not one.startswith(("-", "'", '"')))
    first = next(rest, "")
    # `npm run test` and `npm run build` are different things.
    second = next(rest, "") if first == "run" else ""
    return " ".join(filter(None, (word[1].rpartition("/")[2], first, second)))


def _runs(command: str | None) -> bool:
    """Whether a command runs a program that may fail; others show text that may speak of errors."""
    return command is not None and not all(map(shows_text, COMMAND_END.split(command)))


def _is_probe(command: str | None) -> bool:
    """Whether what ran last in a command only looks for something: its exit code is the answer."""
    if command is None:
        return False
    plain = _QUOTED.sub("''", _QUOTED_LINES.sub("''", _HERE_DOCUMENT.sub(r"<<\2\3", command)))
    *_, last = (part for part in _LINE_OF_COMMANDS.split(plain.strip(" ;\n")))
    programs = [_program(part) for part in COMMAND_END.split(last) if part.strip()]
    first = next((one for one in programs if one not in _BEFORE_PROBE), "")
    return first in _PROBES and all(
        one in _PROBES or one in _BEFORE_PROBE or one in _FILTERS for one in programs
    )


def _program(part: str) -> str:
    """Return the program of one command; of git its subcommand as well."""
    words = part.replace("!", " ").split()
    words = [word for word in words if not _ASSIGNED.match(word) and not word.startswith("-")]
    name = words[0].rpartition("/")[2] if words else ""
    return " ".join([name, *words[1:2]]) if name == "git" else name


def _reported_failure(text: str) -> bool:
    """Whether the last lines of what a program printed report a failure."""
    end = text[-LOOKED_AT * 4 :]
    return REPORTS.search(end) is not None


def words_at(line: str) -> int:
    """Return where the words of a line begin: behind signs and elements."""
    begins = _BEFORE_WORDS.match(line)
    return begins.end() if begins else 0


def tells_failure(line: str, cues: Cues) -> bool:
    """Whether a line begins with a failure, or with an exception as it is printed."""
    at = words_at(line)
    return bool(cues.failures.match(line, at) or EXCEPTION.match(line, at))


def counted(earlier: Iterable[ToolCount], calls: Sequence[Call]) -> tuple[ToolCount, ...]:
    """Return the tools with their calls, those of earlier summaries included, most calls first."""
    counts: dict[str, list[int]] = {}
    sources: dict[str, int] = {}
    for tool in earlier:
        _add(counts, tool.name, (tool.calls, tool.failed, tool.unanswered))
    for call in calls:
        name = one_line(call.tool)
        sources[name] = call.message
        _add(counts, name, (1, int(call.failed), int(call.result is None)))
    tools = (
        ToolCount(name, calls, failed, unanswered, sources.get(name, -1))
        for name, (calls, failed, unanswered) in counts.items()
    )
    return tuple(sorted(tools, key=lambda tool: -tool.calls))


def _add(counts: dict[str, list[int]], name: str, numbers: tuple[int, int, int]) -> None:
    sums = counts.setdefault(name, [0, 0, 0])
    for i, number in enumerate(numbers):
        sums[i] += number


# What tools that work on files are called; a tool of another name is known by its input's shape.
VERBS: Mapping[str, frozenset[str]] = {
    "deleted": frozenset(("delete", "remove", "rm", "unlink")),
    "edited": frozenset(
        ("append", "apply", "edit", "insert", "modify", "multiedit", "patch", "replace", "update")
    ),
    "written": frozenset(("create", "save", "write", "overwrite")),
    "read": frozenset(("cat", "load", "open", "read", "show", "view")),
}
CHANGED = ("written", "edited", "deleted", "moved")

_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# A field of an input that holds this many characters, or a line break, is text, not a name.
_LONG = 80

ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:[\\/]")
# Lines that a path names behind it.
_LINES_OF_PATH = re.compile(r"(?<=[A-Za-z0-9]):\d+(?:-\d+)?$")
_PATCH = re.compile(r"\*\*\* (Add|Update|Delete) File: ([^\n\\\"]+)")
_PATCH_VERBS = {"Add": "written", "Update": "edited", "Delete": "deleted"}
_SHELL_PATH = r"(?:-\S+\s+|'[^']*'\s+|\d\S*\s+)*([\w~.@+-]*[/.][\w~./@+-]*\w)"
_SHELL_WORD = r"(?:'[^']*'|\"[^\"]*\"|\S+)"
_SHELL = (
    ("read", re.compile(rf"(?<![\w/])(?:cat|head|tail|less|nl|bat|sed -n)\s+{_SHELL_PATH}")),
    ("edited", re.compile(rf"(?<![\w/])sed -i\S*\s+{_SHELL_WORD}\s+{_SHELL_PATH}")),
    ("written", re.compile(rf"(?:(?<![-=0-9&])>>?\s*|(?<![\w/])(?:tee|touch)\s+){_SHELL_PATH}")),
    ("written", re.compile(rf"(?<![\w/])mv\s+(?:-\S+\s+)*\S+\s+{_SHELL_PATH}")),
    ("moved", re.compile(rf"(?<![\w/])mv\s+{_SHELL_PATH}")),
    ("deleted", re.compile(rf"(?<![\w/])rm\s+{_SHELL_PATH}")),
)
_REMOVES_MORE = re.compile(r"(?<![\w/])rm\s+([^;&|\n>]+)")
_PATH_IN_SHELL = re.compile(r"[\w~.@+-]*[/.][\w~./@+-]*\w")
_SHELL_FIELDS = ("command", "cmd", "script")
# The lines of a here document, and text of several lines in quotes: they name no files.
_HERE_DOCUMENT = re.compile(
    r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(?:.*?\n)??\s*\2\b|<<-?\s*['\"]?\w+['\"]?[^\n]*\n.*\Z",
    re.DOTALL,
)
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_OPEN_QUOTE = re.compile(r"['\"](?!['\"])[^'\"]*\Z")
_QUOTED_LINES = re.compile(r"'[^'\n]*\n[^']*'|\"[^\"\n]*\n[^\"]*\"")
# Of a longer command only the beginning is looked through.
_LONGEST_COMMAND = 4_000


class _Use(NamedTuple):
    path: str
    verb: str
    lines: int | None = None


def files_of(
    earlier: Iterable[FileState],
    calls: Iterable[Call],
    reads_file: Mapping[str, PathFields],
    places: Places | None = None,
) -> tuple[FileState, ...]:
    """Return the files that calls worked on, those of earlier summaries included, last used first.

    `reads_file` names by tool the field, or fields, with the path that it reads. Files
    outside of the `places` of the work are marked.
    """
    files: dict[str, FileState] = {}
    for file in reversed(tuple(earlier)):
        before = dict(files.pop(file.path, FileState(file.path, ())).counts)
        counts = before | {verb: before.get(verb, 0) + count for verb, count in file.counts}
        files[file.path] = file._replace(counts=tuple(counts.items()))
    used = False
    for call in calls:
        for use in _uses(call, reads_file):
            used = True
            # Taken out and put in again, since the last used comes last.
            files[use.path] = _after(files.pop(use.path, FileState(use.path, ())), use, call)
    # What earlier summaries kept apart stays apart: the path that told them apart may be left out.
    once = _each_once(files) if used else files
    named = (_without_names(file) for file in reversed(once.values()))
    return tuple(
        file if places is None else file._replace(aside=places.is_outside(file.path))
        for file in named
    )


def _each_once(files: Mapping[str, FileState]) -> dict[str, FileState]:
    """Return the files, a relative path and the only absolute path that ends with it as one.

    It is named by the relative path, unless that is a name without a folder.
    """
    absolute: dict[str, list[str]] = {}
    for path in files:
        if ABSOLUTE.match(path):
            absolute.setdefault(path.rpartition("/")[2], []).append(path)
    names = {path: path.removeprefix("./") for path in files}
    for path in [path for path in names.values() if not ABSOLUTE.match(path)]:
        named_alike = absolute.get(path.rpartition("/")[2], ())
        ends = [one for one in named_alike if one.endswith(f"/{path}")]
        if len(ends) == 1:
            names |= {ends[0]: path} if "/" in path else {path: ends[0], f"./{path}": ends[0]}
    once: dict[str, FileState] = {}
    for path, file in files.items():
        before = once.pop(names[path], None)
        named = file._replace(path=names[path])
        once[names[path]] = named if before is None else _both(before, named)
    return once


def _both(before: FileState, after: FileState) -> FileState:
    """Return one file that was used under two paths, first as `before`, then as `after`."""
    counts = dict(before.counts)
    for verb, count in after.counts:
        counts[verb] = counts.get(verb, 0) + count
    lines = after.lines if after.lines is not None or after.last in CHANGED else before.lines
    return after._replace(path=before.path, counts=tuple(counts.items()), lines=lines)


def _without_names(file: FileState) -> FileState:
    """Leave out how often a file was only named where more was done with it."""
    counts = tuple(pair for pair in file.counts if pair[0] != "named")
    return file._replace(counts=counts) if counts else file


def _after(file: FileState, use: _Use, call: Call) -> FileState:
    counts = dict(file.counts)
    counts[use.verb] = counts.get(use.verb, 0) + 1
    last = f"{use.verb} failed" if call.failed else use.verb
    if use.verb == "named" and file.last:
        last = file.last
    lines = None if use.verb in ("edited", "deleted") and not call.failed else file.lines
    if use.lines is not None and not call.failed:
        lines = use.lines
    return FileState(file.path, tuple(counts.items()), last, lines, call.message)


def changed_in(call: Call, reads_file: Mapping[str, PathFields]) -> list[str]:
    """Return the files that a call changed; none if it failed."""
    if call.failed:
        return []
    return [use.path for use in _uses(call, reads_file) if use.verb in CHANGED]


def _uses(call: Call, reads_file: Mapping[str, PathFields]) -> Iterator[_Use]:
    # An editor reads by one of its commands; the others are taken as those of any other tool.
    if call.tool in reads_file and _commanded(call) in {None, "read"}:
        if path := path_in(call.fields, reads_file[call.tool]):
            whole = _LINES_OF_PATH.sub("", one_line(path))
            yield _Use(whole, "read", _lines_read(call) if whole == path else None)
        return
    for verb, path in _PATCH.findall(call.text):
        yield _Use(one_line(path), _PATCH_VERBS[verb])
    if (path := call.path) is not None:
        use, whole = _use_of(call, one_line(path)), _LINES_OF_PATH.sub("", one_line(path))
        yield use if use.path == whole else _Use(whole, use.verb)
    else:
        yield from _uses_in_command(call)


def _use_of(call: Call, path: str) -> _Use:
    long = [
        value
        for value in call.fields.values()
        if isinstance(value, str) and value != path and (len(value) > _LONG or "\n" in value)
    ]
    verb = _verb(call) or {0: "named", 1: "written"}.get(len(long), "edited")
    if verb == "written" and len(long) == 1:
        return _Use(path, verb, long[0].count("\n") + (not long[0].endswith("\n")))
    return _Use(path, verb, _lines_read(call) if verb == "read" else None)


def _verb(call: Call) -> str | None:
    """Return what a call does to its file, by its command where it has one, and its tool's name."""
    return _commanded(call) or _verb_in(call.tool)


def _commanded(call: Call) -> str | None:
    """Return what a call's command does to its file; None without a command that says so."""
    command = call.fields.get("command")
    return _verb_in(command) if isinstance(command, str) else None


def _verb_in(name: str) -> str | None:
    words = {word.lower() for word in _NAME_WORD.findall(name)}
    return next((verb for verb, names in VERBS.items() if words & names), None)


def _lines_read(call: Call) -> int | None:
    """Return the lines of a file that was read whole: nothing but its path was asked for."""
    if call.result is None or len(call.fields) != 1:
        return None
    return call.result.count("\n") + (not call.result.endswith("\n"))


def _uses_in_command(call: Call) -> Iterator[_Use]:
    command = call.command
    if command is None:
        return
    command = _QUOTED_LINES.sub("''", _HERE_DOCUMENT.sub(r"<<\2\3", command))
    uses = [
        (found.start(1), found[1], verb)
        for verb, pattern in _SHELL
        for found in pattern.finditer(command)
    ]
    known = {at for at, _, _ in uses}
    for removed in _REMOVES_MORE.finditer(command):
        for one in re.finditer(r"\S+", removed[1]):
            at = removed.start(1) + one.start()
            if at not in known and _PATH_IN_SHELL.fullmatch(one[0]):
                uses.append((at, one[0], "deleted"))
    for _, path, verb in sorted(uses):
        if not path.startswith("/dev/"):
            yield _Use(path, verb)
