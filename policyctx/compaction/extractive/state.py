"""Where the work stands, as calls and results say: the tasks, and the commands that changed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from policyctx.compaction.extractive.files import (
    EXCEPTION,
    REPORTED,
    SCRATCH,
    Call,
    FileState,
    changes_in,
    command_parts,
    files_of,
    parts_in,
)
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.texts import one_line, shortened

_MOST_TASKS, _MOST_CHECKS, _MOST_CHANGES, _MOST_NAMES = 30, 4, 4, 4
_LONGEST_LINE, _LONGEST_COMMAND, _LONGEST_WORDS, _LONGEST_WHOLE = 160, 240, 300, 900
# Of a result only the beginning and the end are looked at.
_LOOKED_AT = 2_000


def _fact(text: str, message: int) -> Quote:
    return Quote(text, message, user=False)


# Words in the name of a tool for tasks, or the field with its list.
_OF_TASKS = frozenset(("plan", "task", "tasks", "todo", "todos"))
# What an entry of a list of tasks is called, and what its state is.
_TASK_TEXT = ("content", "step", "title", "task", "text", "subject", "description", "name")
_TASK_STATE = ("status", "state", "done", "completed")
_TASK_NUMBER = re.compile(r"#(\d+)")
_NUMBERED = re.compile(r"\[[^\]]*\] #(\d+) ")
_CLOSED = {"completed", "done", "deleted", "cancelled", "canceled"}


def tasks_of(earlier: Iterable[Quote], calls: Sequence[Call]) -> tuple[Quote, ...]:
    """Return the open tasks of the agent's own tool for tasks: `[in_progress] Write the test`.

    A call with a whole list replaces the list. Tools that make or change one task at a time are
    followed by the number that the result, or the input, names.
    """
    tasks: dict[str, Quote] = {}
    for one in earlier:
        number = _NUMBERED.match(one.text)
        tasks[number[1] if number else one.text] = one
    for call in calls:
        if call.failed:
            continue
        listed = _listed(call)
        if listed is not None:
            tasks = {text: _fact(text, call.message) for text in listed}
        elif "task" in call.name_words:
            _follow(tasks, call)
    still = (one for one in tasks.values() if one.text[1:].partition("]")[0] not in _CLOSED)
    return tuple(still)[-_MOST_TASKS:]


def _listed(call: Call) -> list[str] | None:
    """Return the tasks of a call whose input is the whole list of them; None for any other call."""
    of_tasks = not _OF_TASKS.isdisjoint(call.name_words)
    for field, value in call.fields.items():
        if not isinstance(value, list) or not (of_tasks or field in _OF_TASKS):
            continue
        found = [text for one in value if isinstance(one, dict) and (text := _task(one))]
        if len(found) == len(value):
            return found
    return None


def _task(entry: Mapping[str, object]) -> str:
    state = next((entry[key] for key in _TASK_STATE if key in entry), None)
    text = next((entry[key] for key in _TASK_TEXT if isinstance(entry.get(key), str)), None)
    if state is None or not text:
        return ""
    said = ("open", "done")[state] if isinstance(state, bool) else one_line(str(state))
    return f"[{said}] {shortened(one_line(str(text)), _LONGEST_LINE)}"


def _follow(tasks: dict[str, Quote], call: Call) -> None:
    given = call.fields
    number = next((str(given[key]) for key in ("taskId", "task_id", "id") if key in given), "")
    state = given.get("status")
    if "create" in call.name_words and isinstance(given.get("subject"), str):
        named = _TASK_NUMBER.search(call.result or "")
        text = shortened(one_line(str(given["subject"])), _LONGEST_LINE)
        text = f"[pending] #{named[1]} {text}" if named else f"[pending] {text}"
        tasks[named[1] if named else text] = _fact(text, call.message)
    elif "update" in call.name_words and number in tasks:
        was, _, subject = tasks[number].text.partition(f" #{number} ")
        said = f"[{one_line(str(state))}]" if state else was
        subject = one_line(str(given.get("subject") or subject))
        text = shortened(f"{said} #{number} {subject}", _LONGEST_LINE)
        tasks[number] = _fact(text, call.message)


# Commands that change the work or check it.
_GIT = re.compile(
    r"git (?:-\S+ (?:\S*/\S* )?)*(commit|push|pull|clone|checkout|switch|merge|rebase|reset|restore"
    r"|revert|cherry-pick|stash(?! (?:list|show))|am|worktree(?! list)|tag(?= -[am])"
    r"|(?:tag|branch)(?=(?: -[CDFMcdfmsu]\S*| --(?:delete|force|move))?\s+[^-\s]))(?![\w-])"
)
_CHECKING = re.compile(
    r"(?:py|unit)?tests?|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|check|lint|eslint|ruff"
    r"|flake8|mypy|pyright|tsc|clippy|vet|credo|typecheck|build|compile|verify|make|ninja"
    r"|gradlew?|mvn|javac?|msbuild|xcodebuild",
    re.IGNORECASE,
)
# What runs another program, which is what counts.
_RUNS = re.compile(
    r"(?:(?:env|sudo|time|npx|(?:ba|z)?sh|\w+=\S*|(?:\w+ )?(?:exec|run)(?: --)?)\s+)+"
)
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9.]+")
_FIRST_WORDS = 4
_SHOWS_TEXT = re.compile(
    r"#|\S+ version\b|\S.* --(?:help|version|dry-run)\b|(?:awk|cat|cd|chmod|date|df|diff|du|echo"
    r"|file|find|grep|head|jq|ls|mkdir|open|pgrep|ps|pwd|rg|sed|sleep|sort|source|stat|tail"
    r"|test(?= -)|true|wc|which)\b"
)
# The word of a command, or its option, that says what the command does: it changes something other
# than files of the work (the first words), shows something, or checks something.
_SAYS = re.compile(
    r"(?:^\S*/|(?<!\S)(?:--|\w+:)?)(?P<alters>add|apply|approve|assign|cancel|checkout|close|comment"
    r"|create|delete|deploy|destroy|edit|fork|merge|migrate|open|publish|push|release|remove|rename"
    r"|reopen|revert|rollback|submit|switch|transfer|update|upload)(?:[-:.]\w+)*(?!\S)|(?<!\S)(?:\w+-)?"
    r"(?:describe|get|help|info|inspect|list|log|search|show|status|view"
    rf"|(?!make|mvn|gradle)(?:{_CHECKING.pattern}))(?!\S)"
)
_CREATES = re.compile(r".* (?:create|fork|open)\b")
_OF_GIT = re.compile(r"(?:git|gh|glab) ")
_RESULT, _COMMIT = " => ", "git commit"
_ID_SAID = re.compile(r"(?:\b|_|(?<=[a-z])(?=I))(?:ID|id|Id)[:=]? ?([\w-]*\d[\w-]*|[\w-]{6,})")
# How a result says that the command goes on.
_RUNS_ON = re.compile(
    r"\b(?:in (?:the )?background|running with|session[ _]ID\W{1,2}\d+"
    r"|exit(?:[ _]code)?\W{1,3}(?:undefined|null|none))\b",
    re.IGNORECASE,
)
_STARTED, _UNRECORDED = "started in the background", "result not recorded"
_NO_OUTPUT, _UNQUOTED = "no output", "output not quoted"
# The words in place of an unknown result; where a result begins: after the sign, or with these.
_IN_PLACE = re.compile(f"{_STARTED}|{_UNRECORDED}")
_SIGN = re.compile(rf"{_RESULT}|; (?={_IN_PLACE.pattern})")
# The mark of a step that files were changed after.
_SINCE = "; changed since: "
# The beginning of a line of edits, and the mark between its lines of text.
_EDITS = re.compile(r"((?:edited|written|deleted) [^\s:]+)(?:$|: )")
_ALSO, _MOST_CHANGED_LINES, _LONGEST_CHANGE, _MOST_LATE, _MOST_RUNNING = " / ", 3, 100, 12, 8


class _Step(NamedTuple):
    """A command that is quoted, or the edits of one file."""

    command: str
    """Of edits what was done with which file: `edited a.py`."""
    outcome: str
    """Words of its result; of edits the first lines that are new."""
    message: int
    keys: frozenset[str]
    """The kinds of what it runs. What was created is like no other."""
    is_edit: bool = False
    is_late: bool = False
    """Whether it came after the first of the agent's last messages."""
    since: str = ""
    """The names of the files that were changed after it."""

    @property
    def text(self) -> str:
        """The line without the files that were changed after it."""
        sign = ": " if self.is_edit else "; " if _IN_PLACE.match(self.outcome) else _RESULT
        return f"{self.command}{sign if self.outcome else ''}{self.outcome}"

    @property
    def is_check(self) -> bool:
        """Whether it only checks the work."""
        return all(map(_is_checking, self.keys)) and not self.is_edit

    @property
    def goes_on(self) -> bool:
        """Whether it was started in the background, and nothing said that it ended."""
        return self.outcome.startswith(_STARTED)

    @property
    def has_changed(self) -> bool:
        """Whether it changed the work, as far as its result says."""
        is_known = any(map(_alters, self.keys)) or not self.outcome.startswith(_UNQUOTED)
        is_open = self.goes_on or _NOT_MADE.match(self.outcome)
        return is_known and not (self.is_check or is_open)

    @property
    def is_look(self) -> bool:
        """Whether it only shows something."""
        return not (self.is_edit or _keys_of(self.command) or _does_more(self.command))

    @property
    def stays(self) -> bool:
        """Whether it is listed also after a later message of the agent."""
        return self.goes_on or (bool(_keys_of(self.command)) and not self.is_edit)

    def is_settled_by(self, later: _Step) -> bool:
        """Whether it is run again, of several checks at least one."""
        before, now = self.keys, later.keys
        if later.outcome == _UNRECORDED and self.outcome != _UNRECORDED:
            return False
        return before <= now or (self.is_check and not before.isdisjoint(now))

    def quoted(self, files: Sequence[FileState] | None) -> Quote:
        """Return its line, with the names of those of the files that were changed after it."""
        if files is None:
            return _fact(self.text, self.message)
        changed = (one for one in files if one.is_changed and one.message > max(self.message, -1))
        names = [*filter(None, self.since.split(", "))]
        names += [name for one in changed if (name := one.path.rpartition("/")[2]) not in names]
        since = ", ".join(names[:_MOST_NAMES])
        return _fact(f"{self.text}{_SINCE if since else ''}{since}", self.message)


def _step(
    command: str,
    outcome: str,
    message: int,
    *,
    is_edit: bool = False,
    is_late: bool = False,
    since: str = "",
) -> _Step:
    keys = _keys_of(command) or frozenset((command,))
    made = (_COMMIT in keys or any(map(_CREATES.match, keys))) and not _NOT_MADE.match(outcome)
    # Of two here documents the text is not known.
    is_one = made or "<<" in command
    keys |= {f"{command}{_RESULT}{outcome}"} if is_one else set()
    return _Step(command, outcome, message, keys, is_edit, is_late, since)


def _read(one: Quote, *, is_late: bool = False) -> _Step:
    """Return the step of a line in an earlier summary."""
    text, _, since = one.text.partition(_SINCE)
    if edits := _EDITS.match(text):
        lines = text[edits.end() :]
        return _step(edits[1], lines, one.message, is_edit=True, is_late=is_late)
    command, outcome = (*_SIGN.split(text, 1), "")[:2]
    return _step(command, outcome, one.message, is_late=is_late, since=since)


def steps_of(
    earlier: Iterable[Quote],
    since: Iterable[Quote],
    calls: Sequence[Call],
    files: Sequence[FileState],
    begins: int | None,
) -> tuple[tuple[Quote, ...], tuple[Quote, ...]]:
    """Return the commands that changed or checked the work, each with words of its result.

    Those after the first of the agent's last messages, with the edits there, are the second tuple.
    `begins` is the position of that message: -1 if it is of an earlier summary, whose lines behind
    it are `since`; None without one. All are in order, so what one takes back of another is seen.
    A command leaves when all that it ran was run again; a commit stays. `files` are those that were
    worked on: a step names what was changed after it.
    """
    steps = [_read(one) for one in earlier]
    behind = (_read(one, is_late=begins == -1) for one in since)
    steps += (one for one in behind if one.stays or (one.is_late and not (calls and one.is_look)))
    answered = next((call for call in reversed(calls) if call.result is not None), None)
    # What the agent saw last is told whole, unless it can read the file again.
    last = None if answered is None or files_of((), [answered], {}) else answered
    for call in calls:
        is_late = begins is not None and call.message >= begins
        if len(late := [i for i, step in enumerate(steps) if step.is_late]) > _MOST_LATE:
            first = steps[late[0]]
            steps[late[0] : late[0] + 1] = [first._replace(is_late=False)] * first.stays
        if (at := _asked_for(call, steps)) is not None:
            outcome = _outcome(call, "", is_whole=not call.tool)
            # That the tool itself failed says nothing of the command.
            is_its_own = (call.result or "").startswith(f"{call.tool} failed")
            if is_its_own or outcome in {_STARTED, _NO_OUTPUT, _UNQUOTED, _UNRECORDED}:
                continue
            command, goes_on = steps[at].command, outcome.startswith(_STARTED)
            # What goes on stands where it was started, under its new id.
            steps[at : at + 1] = [steps[at]._replace(outcome=outcome)] * goes_on
            if goes_on or not (is_late or _keys_of(command)):
                continue
        else:
            command = _command_of(call)
            is_more = _does_more(command) or (call is last and command)
            if not (_keys_of(command) or _goes_on(call) or (is_late and is_more)):
                _add_edits(steps, changes_in(call) if is_late else (), call.message)
                continue
        command = (command or _named(call)).replace(_RESULT, " ")
        is_whole = not call.tool or (call is last and not _keys_of(command))
        outcome = _outcome(call, command, is_whole=is_whole)
        step = _step(command, outcome, call.message, is_late=is_late)
        if step.is_look and outcome in {_NO_OUTPUT, "exit code 0"}:
            continue
        steps = [one for one in steps if not one.is_settled_by(step)]
        if is_late or step.stays:
            steps.append(step)
        if step.goes_on:
            running = [i for i, one in enumerate(steps) if one.goes_on]
            del steps[running[0] : running[0] + (len(running) > _MOST_RUNNING)]
    return _chosen(steps, files)


def _chosen(
    steps: Sequence[_Step], files: Sequence[FileState]
) -> tuple[tuple[Quote, ...], tuple[Quote, ...]]:
    """Return the lines of the steps that are still of use, those of the newest work apart."""
    newest = [step for step in steps if step.is_late][-_MOST_LATE:]
    steps = [step for step in steps if not step.is_late]
    checks = [one for one in steps if one.is_check and not one.outcome.startswith(_UNQUOTED)]
    changes = [step for step in steps if step.has_changed]
    made = [step for step in changes if any(map(_CREATES.match, step.keys))]
    # What failed is of use while nothing was done after it.
    left = (*checks[-_MOST_CHECKS:], *changes[-_MOST_CHANGES:], *([] if newest else steps[-1:]))
    left += (*made[-_MOST_CHANGES:], *(step for step in steps if step.goes_on))
    commits = [step for step in (*steps, *newest) if _COMMIT in step.keys][-1:]

    def quoted(step: _Step) -> Quote:
        return step.quoted(files if step.is_check or step in commits else None)

    return tuple(quoted(one) for one in steps if one in left), tuple(map(quoted, newest))


def _add_edits(steps: list[_Step], changes: Iterable[tuple[str, str, str]], message: int) -> None:
    """Add edits; those of one file without a command between them are one step."""
    for verb, path, new in changes:
        name, line = f"{verb} {path.rpartition('/')[2]}", shortened(new, _LONGEST_CHANGE)
        at = next((i for i in reversed(range(len(steps))) if not steps[i].is_edit), -1) + 1
        same = next((i for i in range(at, len(steps)) if steps[i].command == name), None)
        lines = [] if same is None else steps.pop(same).outcome.split(_ALSO)
        if line not in lines and len(lines) < _MOST_CHANGED_LINES:
            lines.append(line)
        text = _ALSO.join(filter(None, lines))
        steps.append(_step(name, text, message, is_edit=True, is_late=True))


def _up_to_id(lines: Iterable[str]) -> list[str]:
    """Return the first line with an id up to the id."""
    found = ((line, _ID_SAID.search(line)) for line in lines)
    return [line[: one.end()] for line, one in found if one is not None][:1]


def _asked_for(call: Call, steps: Sequence[_Step]) -> int | None:
    """Return the position of the step that a call asks about by the id that its result names."""
    if call.command is not None:
        return None
    named = set(re.findall(r"[\w-]+", call.text[:_LOOKED_AT]))
    ids = (_ID_SAID.search(step.text) for step in steps)
    return next((i for i, one in enumerate(ids) if one is not None and one[1] in named), None)


def _command_of(call: Call) -> str:
    """Return the command of a call in one line: without its first `cd`, a long one cut inside.

    A `cd` to a folder for scratch stays, since a check there says little of the work.
    """
    folder, command = call.fields.get("workdir"), call.command or ""
    if isinstance(folder, str) and SCRATCH.search(f"{folder}/"):
        command = f"cd {folder} && {command}"
    parts = [(separator, one_line(given)) for separator, _, given in parts_in(command)]
    # The steps of a long one are not to be in what is cut out.
    is_long = sum(len(one) for _, one in parts) > _LONGEST_COMMAND
    while len(parts) > 1 and (
        (parts[0][1].startswith("cd ") and not SCRATCH.search(f"{parts[0][1][3:]}/"))
        or (is_long and not _keys_of(parts[0][1]))
    ):
        del parts[0]
    text = "".join(f"{' ' * (sign != ';')}{sign} {one}" for sign, one in parts)
    return shortened(text.lstrip("&|; "), _LONGEST_COMMAND)


def _keys_of(command: str) -> frozenset[str]:
    return frozenset(key for part in command_parts(command) if (key := _key_of(part)))


def _does_more(command: str) -> bool:
    """Whether any part of a command does more than to show something."""
    parts = (_bare(part) for part in command_parts(command))
    return any(not (_SHOWS_TEXT.match(part) or _OF_GIT.match(part)) for part in parts)


def _goes_on(call: Call) -> bool:
    """Whether a call goes on in the background, under an id that it names."""
    start = "" if call.path else (call.result or "")[:_LONGEST_WORDS]
    ids = _ID_SAID.findall(start)
    # A poll has the id in its input.
    return bool(_RUNS_ON.search(start) and ids) and not any(one in call.text for one in ids)


def _named(call: Call) -> str:
    """Return the tool of a call with the words that say what it is for."""
    given = (call.fields.get(key) for key in _TASK_TEXT)
    said = next((one for one in given if isinstance(one, str)), "")
    return one_line(f"{call.tool} {shortened(said, _LONGEST_LINE)}")


def _bare(part: str) -> str:
    """Return a command without what runs it."""
    start = _RUNS.match(part)
    return part[start.end() if start else 0 :]


def _key_of(part: str) -> str:
    """Return the kind of a command, equal for two runs of it; empty if it is not a step."""
    bare = _bare(part)
    words = [word for word in bare.split() if "=" not in word and not word.startswith("-")]
    program = words[0].rpartition("/")[2] if words else ""
    if git := _GIT.match(bare):
        return f"git {git[1]}"
    if program != "git" and _alters(bare):
        return " ".join(bare.split())
    names = [*_PARTS_OF_NAME.split(program)]
    names += [word.rpartition("/")[2].rpartition(":")[2] for word in bare.split()[1:_FIRST_WORDS]]
    if _SHOWS_TEXT.match(bare) or not any(map(_CHECKING.fullmatch, names)):
        return ""
    return program if _CHECKING.fullmatch(program) and program != "make" else " ".join(words[:2])


def _alters(command: str) -> bool:
    """Whether a command says that it changes what others see, the branch, or a service."""
    found = _SAYS.search(" ".join(command.split()[: 2 * _FIRST_WORDS]))
    return bool(found and found["alters"]) and not _SHOWS_TEXT.match(command)


def _is_checking(key: str) -> bool:
    return any(map(_CHECKING.fullmatch, _PARTS_OF_NAME.split(key))) and not _alters(key)


_EXIT_CODE = re.compile(r"\bexit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}(\d+)", re.IGNORECASE)
# A line that counts what was checked or says that all is well; one that names a commit, branch or
# request.
_COUNTS = re.compile(
    r"\b\d+ (?:\w+ ){0,2}(?:passed|passing|(?:tests?|files?)(?![/\w.]| changed)"
    r"|suggestions?|warnings?|issues?|problems?)\b"
    r"|^ok\b|[Aa]ll checks|BUILD SUCCESS|[Ss]uccessful"
)
_NAMES = re.compile(
    r"^\[\S+ (?:\([^)]*\) )?[0-9a-f]{7,40}\] |^[0-9a-f]{7,40} \S|^[0-9a-f]{7,40}\.\.\S+ .* -> "
    r"|^\W*(?:Creat|Open|Clos|Merg|Push|Publish|Deploy|Delet|Updat)ed\b|^\W+\[new |^Switched to"
    r"|nothing to commit"
    r"|https?://\S+/(?:pulls?|issues|merge_requests)/\d"
)
# A line that only surrounds what was printed.
_FRAME = re.compile(
    r"<|Output:|\(Bash completed with|# [\w.-]+/[\w./-]+$"
    r"|(?:Wall time|Chunk ID|Original token count|Script completed|Total output lines)\b"
    r"|.*\b(?:warning: |exit\w*\W{1,3}(?:undefined|null|none)\b)"
)
# What programs print of a test that failed, and of what it expected.
_ERROR = re.compile(
    r"FAILED .+|E \S.*|--- FAIL: .+|[×✕●] .+|not ok \d+.*|AssertionError.*"
    r"|.*\berror(?:\[\w+\]|\s+[A-Z]+\d+)?: \S.*|[\w./-]+\.\w+:\d+(?::\d+)?:? \S.*"
    rf"|.*(?:{EXCEPTION.pattern}|{REPORTED.pattern})",
    re.MULTILINE,
)
# The last command of a chain whose exit code says nothing of those before it.
_CLOSES = re.compile(r"(?:;|\|\|)(?:true|echo|:)(?!\S)|\S{1,2}(?:pkill|kill|killall)\b")
_MOST_ERRORS, _LAST_LINES = 3, 2
_NOT_MADE = re.compile(r"failed|exit code [1-9]")


def _outcome(call: Call, command: str, *, is_whole: bool = False) -> str:
    """Return words of a result: its exit code, errors, the lines that tell the outcome.

    Without such a line the last one is quoted, if only one command was run. `is_whole` is for a
    result that is told by all of its lines.
    """
    if call.result is None:
        return _UNRECORDED
    text = call.result
    ends = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    codes = _EXIT_CODE.findall(ends)
    runs = not codes and _RUNS_ON.search(ends)
    code = f"exit code {max(codes, key=int)}" if codes else "failed" if call.failed else ""
    parts = [f"{separator}{plain}" for separator, plain, _ in parts_in(command)]
    # The end of a long command may be in what was cut out.
    given = [f"{separator}{plain}" for separator, plain, _ in parts_in(call.command or "")]
    if len(given) > 1 and _CLOSES.match(given[-1]):
        code = ""
    elif code == "exit code 0" and re.search("[;|]", " ".join(parts)):
        code += " of the last command"
    lines = [one_line(line) for line in ends.split("\n") if re.search(r"\w", line)]
    said = [line for line in lines if not _EXIT_CODE.search(line) and not _FRAME.match(line)]
    shown = [*filter(_NAMES.search, said)] or [*filter(_COUNTS.search, said)]
    if runs and not code:
        shown, code = _up_to_id(said) or said[-_LAST_LINES:], _STARTED
    elif is_whole:
        shown = said
    elif call.failed:
        errors = [line for line in said if _ERROR.match(line)][:_MOST_ERRORS]
        shown = [line for line in said if line in {*errors, *shown[-1:], *said[-_LAST_LINES:]}]
    elif not shown and (len(said) <= _LAST_LINES or len(parts) == 1):
        shown = said[-_LAST_LINES:]
    most = _LONGEST_WHOLE if is_whole else _LONGEST_WORDS
    words = shortened(" / ".join(dict.fromkeys(shown)), most)
    return ": ".join(filter(None, (code, words))) or (_UNQUOTED if said else _NO_OUTPUT)
