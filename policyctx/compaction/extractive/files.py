"""The calls of a history, and the files that they worked on: what was done with each last."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from posixpath import normpath
from typing import NamedTuple

from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.texts import CUT, one_line, words_of
from policyctx.definitions.items import Item
from policyctx.messages.reading import Reading
from policyctx.planning.superseded import PathFields, path_in

# Of a result that says nothing about its success only the beginning and the end are looked at.
_LOOKED_AT = 300
_LONGEST_COMMAND, _LONGEST_PATH = 4_000, 400
_EXIT = re.compile(r"exit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}[1-9]", re.IGNORECASE)
_SAID = re.compile(
    r'\W{0,3}"?(?:error"?:\s*"[^"]|success"?:\s*false|\w+ verification failed)', re.IGNORECASE
)
_BEFORE_WORDS = re.compile(r"^(?:\W|<[\w-]+>)*")
RAISED = r"\b[A-Z]\w*(?:Error|Exception)(?::|\s*$)"
EXCEPTION = re.compile(rf"(?:\w+\.)*{RAISED}", re.MULTILINE)
# How programs sum up a failure.
REPORTED = re.compile(
    r"(?:^|[\s,(])[1-9]\d* (?:failed|failures?|failing|errors?)\b|^error(?:\[\w+\])?: \S"
    r"|^make(?:\[\d+\])?: \*\*\* |^npm ERR! |^(?:\[[\w:.-]+\] )?(?:FAILED|FAIL)\b|\bBUILD FAILED\b"
    r"|: (?:fatal )?error(?: [A-Z]+\d+)?: \S|^Traceback \(most recent call last\)|^panic: ",
    re.MULTILINE,
)
_PATH_FIELDS = re.compile(r"path|(?<!pro)file|uri|notebook", re.IGNORECASE)
_SHELL_FIELDS = ("command", "cmd")
_IN_SHELL = re.compile(r"(?:\S*/)?\w*sh -l?c\s+")
_COMMAND_IN_CODE = re.compile(r'\b(?:cmd|command)"?:\s*("(?:[^"\\\n]|\\["\\/bfnrt])*")(\s*\+)?')
_OUTPUT = re.compile(r'"output": ?("(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")')
_OUTPUT_ID = re.compile(r'"(exit_code|session_id)": ?(\d+)')
# How a client tells that a call in the background has ended, and the words for it.
_NOTICE = re.compile(r"\s*<[\w-]*notification>.{0,2000}?<status>", re.DOTALL)
_NOTED = re.compile(r"<(status|summary|result)>([^<]*)")
# A command in an agent's message, and how the message of its program with the result begins: with
# the code, or at the end with what was changed.
_ACTION = re.compile(r"^```(?:\w*bash\w*|sh)\n(.*?)\n```", re.DOTALL | re.MULTILINE)
_REPLY = re.compile(r"\s*<returncode>(-?\d+)</returncode>\s*|(?=diff --git )")
_DIFF = re.compile(r"^diff --git a/(\S+) b/", re.MULTILINE)
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# The lines of a here document, and text in quotes, which are not commands.
_HERE_DOCUMENT = re.compile(
    r"(?<!<)<<-?[ \t]*\\?(['\"]?)([^\W\d][\w.-]*|(?<=['\"])[^'\"\n]+)\1([^\n]*)\n"
    r"(?:(?:.*?\n)??[ \t]*\2(?![\w.-]|[ \t]+\w)|.*\Z)",
    re.DOTALL,
)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|['\"].*\Z", re.DOTALL)
_TO_QUOTED = re.compile(r"(>\s*)(['\"])([\w~./@+-]+)\2")
_COMMAND_END = re.compile(r"&&|\|\||;|\n")


class Call(NamedTuple):
    """One call."""

    tool: str
    message: int
    """0-based position of the message that makes it."""
    item: Item
    fields: Mapping[str, object]
    """Its input, read; empty when that is not a JSON object."""
    result: str | None
    """The words of its result; None without one."""
    failed: bool
    """Whether the result is flagged, begins or ends as failures do, or sums one up."""

    @property
    def text(self) -> str:
        """Its input, as the text of its item."""
        return self.item.text

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
                command = command[:_LONGEST_COMMAND]
                # The expression is slow on a long command.
                return _IN_SHELL.sub("", command, count=1) if "sh -" in command else command
        # A call that is a program may run commands.
        found = [] if self.fields else _COMMAND_IN_CODE.findall(self.text[: 4 * _LONGEST_COMMAND])
        # What a program adds to a text is not known.
        commands = (json.loads(one, strict=False) + CUT * bool(more) for one, more in found)
        return " ;\n".join(commands)[:_LONGEST_COMMAND] or None

    @property
    def name_words(self) -> list[str]:
        """The words that the tool's name is put together from, in lower case."""
        return [word.lower() for word in _NAME_WORD.findall(self.tool)]


def calls_in(reading: Reading, skipped: frozenset[int], cues: Cues) -> Iterator[Call]:
    """Yield the calls of a conversation, in order, except those in skipped messages.

    A notice that a call in the background has ended is one of no tool, without an input. A command
    in an agent's text, with its result in a message of its program, is a call of `bash`.
    """
    items, partners = reading.items, reading.partners
    asked: Item | None = None
    is_in_text = False
    for position, item in enumerate(items):
        if item.message in skipped:
            continue
        if item.kind == "assistant_message":
            asked = item
        reply = _REPLY.match(item.text) if asked and item.kind == "user_message" else None
        if asked and reply and (reply[1] or is_in_text):
            is_in_text, code = True, f"exit code {reply[1]}\n" if reply[1] else ""
            ended, failed = code + item.text[reply.end() :], bool(_EXIT.match(code))
            for command in _ACTION.findall(asked.text)[-1:]:
                yield Call("bash", asked.message, asked, {"command": command}, ended, failed)
        if item.kind == "user_message" and _NOTICE.match(item.text):
            noted = {name: one_line(text) for name, text in _NOTED.findall(item.text)}
            found = noted.pop("result", "")
            ended = "\n".join(filter(None, (": ".join(noted.values()), found)))
            yield Call("", item.message, item, {}, ended, failed=bool(_EXIT.search(ended)))
        if item.kind != "tool_call":
            continue
        result = items[partners[position]] if position in partners else None
        said = None if result is None else _printed(words_of(result.text))
        failed = result is not None and (result.error or _failed(said or "", cues))
        call = Call(item.tool or "unnamed", item.message, item, item.input, said, failed)
        # A pipe hides the exit code of what comes before it.
        if said and not failed and call.command and REPORTED.search(said[-4 * _LOOKED_AT :]):
            call = call._replace(failed=True)
        yield call


def _printed(text: str) -> str:
    """Return a result; of one with objects that hold an output, the outputs and the codes."""
    outputs, found = _OUTPUT.findall(text), _OUTPUT_ID.findall(text)
    if not (outputs and found):
        return text
    ids = (f"{name.replace('_', ' ')} {value}" for name, value in found)
    return "\n".join([*(json.loads(one, strict=False) for one in outputs), *ids])


def _failed(text: str, cues: Cues) -> bool:
    """Whether a result begins or ends as a failure does, or begins with an exception."""
    start, end = text[:_LOOKED_AT], text[-_LOOKED_AT:]
    words = _BEFORE_WORDS.sub("", start, count=1)
    return bool(
        cues.failures.begins(words)
        or EXCEPTION.match(words)
        or _SAID.match(start)
        or _EXIT.search(start)
        or _EXIT.search(end)
    )


def parts_in(command: str) -> Iterator[tuple[str, str, str]]:
    """Yield the commands that a text for a shell is put together from, pipelines whole.

    Each has what is before it, its text without quoted texts, and as it was given, except for the
    text of here documents.
    """
    given = _HERE_DOCUMENT.sub(r"<<\2 …\3", command).replace("\\\n", " ")
    given = _TO_QUOTED.sub(r"\1\3", given)
    # A mask is as long as what it hides.
    plain = _QUOTED.sub(lambda found: "''".ljust(len(found[0])), given)
    at, separator = 0, ""
    for end in (*_COMMAND_END.finditer(plain), None):
        stop = len(plain) if end is None else end.start()
        if plain[at:stop].strip():
            yield separator, plain[at:stop].strip(), given[at:stop].strip()
        if end is not None:
            at, separator = end.end(), end[0].replace("\n", ";")


def command_parts(command: str) -> list[str]:
    """Return the commands that a text for a shell is put together from, without quoted texts."""
    return [
        part.strip()
        for _, plain, _ in parts_in(command)
        for part in plain.split("|")
        if part.strip()
    ]


# What tools that work on files are called; a tool of another name is known by its input's shape.
_VERBS: Mapping[str, frozenset[str]] = {
    "deleted": frozenset(("delete", "remove", "rm", "unlink")),
    "edited": frozenset(
        ("append", "apply", "edit", "insert", "modify", "multiedit", "patch", "replace", "update")
    ),
    "written": frozenset(("create", "save", "write", "overwrite")),
    "read": frozenset(("cat", "load", "open", "read", "show", "view")),
}

_MOST_LISTED = 12
# A field of an input that holds this many characters, or a line break, is text, not a name.
_LONG = 80
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:[\\/]")
_LINES_OF_PATH = re.compile(r"(?<=[A-Za-z0-9]):\d+(?:-\d+)?$")
_PATCH = re.compile(r"\*\*\* (Add|Update|Delete) File: ([^\n\\\"]+)")
# Folders of files outside the work.
SCRATCH = re.compile(
    r"^(?:/private)?/(?:tmp|var/folders|dev/shm)/|/scratchpad/|/\.claude/(?:plans|projects|todos)/"
)
_PATCH_VERBS = {"Add": "written", "Update": "edited", "Delete": "deleted"}
_SHELL_PATH = (
    r"(?:-\S+\s+|'[^']*'\s+|\d\S*\s+)*([\w~.@+-]*[/.][\w~./@+-]*\w|[A-Z][A-Za-z]{3,})(?![\w~./@+-])"
)
_SHELL = (
    ("read", re.compile(rf"(?<![\w/-])(?:cat|head|tail|less|nl|bat|sed -n)\s+{_SHELL_PATH}")),
    ("written", re.compile(rf"(?<![-=0-9&>])>\s*{_SHELL_PATH}")),
    ("edited", re.compile(rf"(?<![-=0-9&])>>\s*{_SHELL_PATH}")),
)
# What a program does with each path behind it.
_PROGRAMS: Mapping[str, str] = {
    "rm": "deleted", "git rm": "deleted", "tee": "written", "touch": "written", "tee -a": "edited",
    "sed": "edited", "perl": "edited",
    "git checkout": "restored", "git restore": "restored", "git reset": "restored",
    "git add": "staged", "unstage": "unstaged",
}  # fmt: skip
_COMMITS = re.compile(r"\bgit (?:commit\b|(?:rebase|merge|cherry-pick|revert|am) --continue)")
_REFUSED = re.compile(r"no changes added|nothing added|hook id: ")
_SUFFIX = re.compile(r"\w\.\w+$")
_MOVES = re.compile(r"\(?(?:cd|pushd)\s+(?:([\w~./@+-]*[\w~./])/?\s*$)?")
_IS_PATH = re.compile(r"(?=.*\w)[\w~.@+-]*[/.][\w~./@+-]*")
_IN_PLACE, _SUBSTITUTES = re.compile(r"-(?![IM])\w*i|--in-place"), re.compile(r"s(\W).*\1.*\1\w*")


class FileState(NamedTuple):
    """A file, and what was done with it."""

    path: str
    state: str
    """`edited`, `written`, `deleted`, `staged` or `read`; the last that changed it, if any did."""
    message: int = -1
    """0-based position of the message that changed it, or read it, last; -1 if it is of an earlier
    summary."""
    is_committed: bool = False
    """Whether it was changed before the last commit, and not since."""

    @property
    def is_changed(self) -> bool:
        """Whether it is changed or gone, and not a file of a folder for scratch."""
        return self.state != "read" and not SCRATCH.search(self.path)

    @property
    def is_new(self) -> bool:
        """Whether it has contents that a call put there."""
        return self.is_changed and self.state not in {"deleted", "staged"}

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return self.path.rpartition("/")[2]

    def at(self, commit: int) -> FileState:
        """Return the file as it is behind a commit at the position of a message."""
        is_in = self.message < commit and self.state != "read"
        return self._replace(is_committed=True) if is_in else self

    def then(self, after: FileState) -> FileState:
        """Return the file after it was used again."""
        if after.state == "read" and self.state != "deleted":
            return self
        stays = self.state == "written" and after.state in {"edited", "staged"}
        return after._replace(path=self.path, state=self.state if stays else after.state)


def files_of(
    earlier: Iterable[FileState], calls: Iterable[Call], reads_file: Mapping[str, PathFields]
) -> tuple[FileState, ...]:
    """Return the files that calls worked on, those of earlier summaries included.

    Edited and written files come first, each kind last used first. `reads_file` names by tool the
    field, or fields, with the path that it reads.
    """
    files: dict[str, FileState] = {}
    for file in reversed(tuple(earlier)):
        before = files.pop(file.path, None)
        files[file.path] = file if before is None else before.then(file)
    saved: dict[str, FileState] = {}
    used, committed = False, -2
    for call in calls:
        if _COMMITS.search(call.command or "") and call.result is not None:
            is_made = not (call.failed or _REFUSED.search(call.result))
            committed = call.message if is_made else committed
        # Of several commands any may be the one that failed.
        is_one = call.command is None or len(command_parts(call.command)) == 1
        for path, verb in _uses(call, reads_file):
            if call.result is None or (call.failed and is_one):
                continue
            if verb == "read" and f"{path.rpartition('/')[2]}: No such file" in call.result:
                continue
            used = True
            for one in _in(path, files) if verb in {"restored", "unstaged", "deleted"} else ():
                if _is_gone(files[one].at(committed), verb, path):
                    del files[one]
                    files |= {one: saved[one]} if verb == "restored" and one in saved else {}
            if verb in {"restored", "unstaged"} or (
                verb == "staged" and (path == "." or _is_known(path, files))
            ):
                continue
            # A call that stages files and commits stages them before.
            is_in = verb == "staged" and committed == call.message
            new = FileState(path, verb, call.message - is_in)
            # Taken out and put in again, since the last used comes last.
            before = files.pop(path, None)
            before = before and before.at(committed)
            saved |= {path: before} if before and before.is_committed else {}
            files[path] = new if before is None else before.then(new)
    left = [
        file.at(committed) for file in reversed([*(_each_once(files) if used else files).values()])
    ]
    return tuple(sorted(left, key=lambda file: not file.is_changed))


def listed(files: Sequence[FileState]) -> Sequence[FileState]:
    """Return those of the files of `files_of` that a summary lists, the committed ones as one.

    If none was changed, those that were read are one as well.
    """
    left = [one for one in files if one.state != "deleted" and not SCRATCH.search(one.path)]
    new = [file for file in left if file.is_changed and not file.is_committed]
    old = [file for file in left if file.is_committed] or [*left] * (not new)
    paths = [one.path for one in old[:_MOST_LISTED]] + ["…"] * (len(old) > _MOST_LISTED)
    return [*new[:_MOST_LISTED], *(one._replace(path=", ".join(paths)) for one in old[:1])]


def _in(path: str, files: Iterable[str]) -> list[str]:
    """Return the files that a path names, or that are in the folder of that name; `.` is all."""
    bare = path.removeprefix("./").strip("/")
    return [one for one in files if path == "." or f"/{bare}/" in f"/{one.strip('/')}/"]


def _is_gone(file: FileState, verb: str, path: str) -> bool:
    """Whether a verb on a path takes a file in it out of the list; what was committed stays."""
    if verb == "deleted":
        return file.path != path
    return not file.is_committed and (verb == "restored" or file.state == "staged")


def _is_known(path: str, files: Mapping[str, FileState]) -> bool:
    """Whether a file of this path, or in a folder of it, is among the changed ones."""
    bare = path.removeprefix("./").strip("/")
    known = (one for one in files.values() if one.state not in {"read", "staged"})
    changed = (f"/{one.path.strip('/')}" for one in known)
    return any(f"/{bare}/" in f"{one}/" or f"/{bare}".endswith(one) for one in changed)


def _each_once(files: Mapping[str, FileState]) -> dict[str, FileState]:
    """Return the files, a relative path and the only absolute path that ends with it as one."""
    absolute: dict[str, list[str]] = {}
    for path in files:
        if _ABSOLUTE.match(path) and path[0] != "~":
            absolute.setdefault(path.rpartition("/")[2], []).append(path)
    once: dict[str, FileState] = {}
    for path, file in files.items():
        bare = path.removeprefix("./").removeprefix("~/")
        alike = absolute.get(bare.rpartition("/")[2], ())
        ends = [one for one in alike if one.endswith(f"/{bare}")]
        named = file._replace(path=ends[0] if len(ends) == 1 else path.removeprefix("./"))
        before = once.pop(named.path, None)
        once[named.path] = named if before is None else before.then(named)
    return once


def _uses(call: Call, reads_file: Mapping[str, PathFields]) -> Iterator[tuple[str, str]]:
    """Yield each path that a call works on, with the verb."""
    commanded = _verb_in(str(call.fields.get("command") or "")) if call.path else None
    if call.tool in reads_file and commanded in {None, "read"}:
        if path := path_in(call.fields, reads_file[call.tool]):
            yield _LINES_OF_PATH.sub("", one_line(path)), "read"
        return
    for verb, path in _PATCH.findall(call.text):
        yield one_line(path), _PATCH_VERBS[verb]
    if (path := call.path) is not None:
        long = sum(
            isinstance(value, str) and value != path and (len(value) > _LONG or "\n" in value)
            for value in call.fields.values()
        )
        verb = commanded or _verb_in(call.tool, call.name_words)
        if verb := verb or ("written" if long == 1 else "edited" * bool(long)):
            yield _LINES_OF_PATH.sub("", one_line(path)), verb
    elif call.command is not None:
        if call.item.kind == "assistant_message" and "git diff" in call.command:
            yield from ((path, "edited") for path in _DIFF.findall(call.result or ""))
        given = call.fields.get("workdir")
        yield from _uses_in(call.command, f"{given}/" if isinstance(given, str) else "")


def _verb_in(name: str, words: Iterable[str] | None = None) -> str | None:
    found = set(words if words is not None else re.findall(r"[a-z]+", name.lower()))
    return next((verb for verb, names in _VERBS.items() if found & names), None)


def _uses_in(command: str, folder: str | None) -> Iterator[tuple[str, str]]:
    """Yield the paths of a command that starts in a folder, with the verb.

    In a folder that only the shell knows, as `$DIR`, a relative path names no file.
    """
    for part in command_parts(command):
        if moves := _MOVES.match(part):
            folder = _joined(folder, f"{moves[1]}/") if moves[1] else None
            continue
        uses = [(path, verb) for verb, pattern in _SHELL for path in pattern.findall(part)]
        if part.startswith("git show"):
            uses = [(path, "restored") for path, _ in uses]
        for path, verb in (*uses, *_changes_in(part.partition(">")[0].split())):
            where = path if verb == "restored" else _joined(folder, path)
            if where and not where.startswith("/dev/"):
                yield where, verb


def _joined(folder: str | None, path: str) -> str | None:
    if _ABSOLUTE.match(path) or not folder:
        return path if folder is not None or _ABSOLUTE.match(path) else None
    whole = normpath(folder + path)
    return f"{whole}/" if path.endswith("/") else whole


def _changes_in(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths that a command changes, copies or moves, with the verb."""
    words = words[1:] if words[:1] == ["sudo"] else words
    of_git = words[:1] == ["git"]
    program, behind = " ".join(words[: 1 + of_git]), words[1 + of_git :]
    if program == "git reset" and "--hard" in behind:
        behind = ["."]
    elif program == "git add" and not {"-n", "--dry-run"}.isdisjoint(behind):
        behind = []
    elif program == "git reset" or (program == "git restore" and "--staged" in behind):
        program = "unstage"
        behind = behind if {*behind} - {"-q", "--mixed", "HEAD"} else ["."]
    elif program in {"sed", "perl"}:
        # Without one in quotes or behind `-e` the first word without a dash is the script.
        given = {"''", "-e"}.isdisjoint(behind)
        named = [word for before, word in pairwise(("", *behind)) if before != "-e"]
        bare = [word for word in named if word[0] not in "-'"][given:]
        edits = any(map(_IN_PLACE.match, behind))
        behind = [word for word in bare if edits and not _SUBSTITUTES.fullmatch(word)]
    elif program == "tee" and "-a" in behind:
        program = "tee -a"
    paths = [word for word in behind if word == "." or _IS_PATH.fullmatch(word)]
    # The number before a redirection is not a target.
    last = next((word for word in reversed(behind) if not word.isdigit()), "")
    if program in _PROGRAMS:
        yield from ((path, _PROGRAMS[program]) for path in paths)
    elif program in {"cp", "mv", "git mv"} and len(paths) > 1 and last == paths[-1]:
        *sources, target = paths
        yield from ((path, "deleted") for path in sources if program != "cp")
        is_folder = target.endswith("/") or len(sources) > 1
        is_folder = is_folder or bool(_SUFFIX.search(sources[0]) and not _SUFFIX.search(target))
        names = [f"{target.rstrip('/')}/{path.rpartition('/')[2]}" for path in sources]
        yield from ((path, "written") for path in (names if is_folder else [target]))
