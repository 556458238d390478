"""Where the work stands, as calls and results say: the tasks, and the commands that changed it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyctx.compaction.extractive.files import SCRATCH, Call, FileState, command_parts, parts_in
from policyctx.compaction.extractive.outcomes import (
    CHECKING,
    GIT,
    ID_SAID,
    LONGEST_WORDS,
    LOOKED_AT,
    NO_OUTPUT,
    NO_RESULT,
    NOT_MADE,
    RUNS_ON,
    SHOWS,
    STARTED,
    UNQUOTED,
    outcome_of,
    shown_of,
)
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.texts import GAP, one_line, shortened

_MOST_TASKS, _MOST_NAMES, _MANY, _MOST_LOOKS = 30, 4, 100, 12
# Calls that are listed before anything else of the results.
NEWEST_CALLS = 3
_LONGEST_LINE, _LONGEST_COMMAND, _LONGEST_WHOLE = 160, 240, 900

# Words in the name of a tool for tasks, or the field with its list.
_OF_TASKS = frozenset(("plan", "task", "tasks", "todo", "todos"))
_OF_ONE = re.compile(r"\btask (?:create|update)\b")
# What an entry of a list of tasks is called, and what its state is.
_TASK_TEXT = ("content", "step", "title", "task", "text", "subject", "description", "name")
_TASK_STATE = ("status", "state", "done", "completed")
_TASK_NUMBER = re.compile(r"#(\d+)")
_NUMBERED = re.compile(r"\[[^\]]*\] #(\d+) ")
_CLOSED = {"completed", "done", "deleted", "cancelled", "canceled"}
# The line that dates a list which the agent did not write again.
_AGE = re.compile(r"\(calls since then: (\d+)\)")


def tasks_of(earlier: Iterable[Quote], calls: Sequence[Call]) -> tuple[Quote, ...]:
    """Return the open tasks of the agent's own tool for tasks: `[in_progress] Write the test`.

    A call with a whole list replaces the list. Tools that make or change one task at a time are
    followed by the number that the result, or the input, names. The first entry says how many calls
    came after the last of these calls.
    """
    tasks: dict[str, Quote] = {}
    since = 0
    for one in earlier:
        number, age = _NUMBERED.match(one.text), _AGE.fullmatch(one.text)
        if age:
            since = int(age[1])
        else:
            tasks[number[1] if number else one.text] = one
    for call in calls:
        since += 1
        listed = None if call.failed else _listed(call)
        if listed is not None:
            tasks, since = {text: _fact(text, call.message) for text in listed}, 0
        elif not call.failed and _OF_ONE.search(" ".join(call.name_words)):
            _follow(tasks, call)
            since = 0
    left = [one for one in tasks.values() if one.text[1:].partition("]")[0] not in _CLOSED]
    age_line = [_fact(f"(calls since then: {since})", left[0].message)] if since and left else []
    return (*age_line, *left[-_MOST_TASKS:])


def _fact(text: str, message: int) -> Quote:
    return Quote(text, message, user=False)


def _listed(call: Call) -> list[str] | None:
    """Return the tasks of a call whose input is the whole list of them; None for any other call."""
    of_tasks = not _OF_TASKS.isdisjoint(call.name_words)
    for field, value in call.fields.items():
        if isinstance(value, list) and (of_tasks or field in _OF_TASKS):
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
    """Make or change one task, unless it is not known."""
    given = call.fields
    number = next((str(given[key]) for key in ("taskId", "task_id", "id") if key in given), "")
    subject = one_line(str(given.get("subject") or ""))
    if "create" in call.name_words and subject:
        named = _TASK_NUMBER.search(call.result or "")
        number, state = named[1] if named else "", "[pending]"
    elif "update" in call.name_words and number in tasks:
        state, _, was = tasks[number].text.partition(f" #{number} ")
        state = f"[{one_line(str(given['status']))}]" if given.get("status") else state
        subject = subject or was
    else:
        return
    text = f"{state} #{number} {subject}" if number else f"{state} {subject}"
    tasks[number or text] = _fact(shortened(text, _LONGEST_LINE), call.message)


# Commands of git that put other files in place, and how it says that they did not, or not yet.
_MOVES = re.compile(
    r"\bgit (?:-C\s+\S+\s+)?(rebase|merge(?!-)|pull|cherry-pick|revert|am)\b(?! --(?:abort|quit))"
)
_NOTHING_NEW = re.compile(r"Already up[ -]to[ -]date|is up to date")
_CONFLICT = re.compile(r"CONFLICT|[Cc]ould not apply|[Mm]erge conflict")
# What runs another program, which is what counts.
_RUNS = re.compile(
    r"(?:(?:env|sudo|time|npx|(?:ba|z)?sh|\w+=\S*|(?:\w+ )?(?:exec|run)(?: --)?)\s+)+"
)
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9.]+")
_FIRST_WORDS = 4
# How a shell says that a command goes on, and that it did not take one since another goes on.
_WAITS = re.compile(r"\btimed out\b|\bno new output\b", re.IGNORECASE)
_NOT_RUN = re.compile(r"\bnot executed\b", re.IGNORECASE)
# The first word of a command, or option, that says what it does: change something other than files
# of the work, or show or check something.
_SAYS = re.compile(
    r"(?:^\S*/|(?<!\S)(?:--|\w+:)?)(?P<alters>add|apply|approve|assign|cancel|checkout|close|comment"
    r"|create|delete|deploy|destroy|edit|fork|merge|migrate|open|publish|push|release|remove|rename"
    r"|reopen|revert|rollback|submit|switch|transfer|update|upload)(?:[-:.]\w+)*(?!\S)|(?<!\S)(?:\w+-)?"
    r"(?:(?P<shows>describe|get|help|info|inspect|list|log|search|show|status|view)"
    rf"|(?!make|mvn|gradle)(?:{CHECKING.pattern}))(?!\S)"
)
# The kinds of commands: checks, changes of something other than files of the work, and others.
_CHECK, _CHANGE, _OTHER = "check ", "change ", "other "
_COMMIT = f"{_CHANGE}git commit"
_ADD = f"{_CHANGE}git add"
_TAKING = "am cherry-pick commit merge rebase reset restore revert stash"
_TAKES_IN = frozenset(f"{_CHANGE}git {one}" for one in _TAKING.split())
# What puts single files back, so that the others stay staged.
_OF_FILES = re.compile(
    r"git (?:-C \S+ )?(?:restore(?!.* (?:--staged|-S)\b)|reset(?: -q| HEAD| --)* [^\s-]*\w\.\w"
    r"|checkout (?:HEAD )?(?:-- )?[\w./-]+\.[a-z]{1,4}(?!\S))"
)
_CREATES = re.compile(rf"{_CHANGE}.* (?:create|fork|open)\b")
_IS_SILENT = re.compile(rf"(?!{_CHANGE}(?!git ))")
_WORD = re.compile(r"[\w-]+")
_LOG = re.compile(r"git log(?!.*[&;])")
# What leads a result, and the words in place of one.
_RESULT = " => "
_SIGN = re.compile(rf"{_RESULT}|; (?={STARTED}|{NO_RESULT})")
# What is not quoted before the first command of several.
_LEADS = re.compile(r"cd |\w+=\S*$")
# What a command of several begins behind.
_BEGINS = re.compile(r"[;&|]+ ")
# The mark of a step that files were changed after.
_SINCE, _GONE = "; changed since: ", " (deleted)"


class _Step(NamedTuple):
    """A command that is quoted."""

    command: str
    outcome: str
    """Words of its result."""
    message: int
    keys: frozenset[str]
    """The kinds of what it runs; what was created is like no other."""
    since: str = ""
    """The names of the files that were changed after it."""

    @property
    def checks(self) -> set[str]:
        """The kinds of checks that it runs, unless it changes something other than files."""
        alters = any(re.match(rf"{_CHANGE}(?!git add$|.* of files$)", one) for one in self.keys)
        return {key for key in self.keys if key.startswith(_CHECK) and not alters}

    @property
    def is_change(self) -> bool:
        """Whether it changes something other than files of the work."""
        return any(key.startswith(_CHANGE) for key in self.keys)

    @property
    def goes_on(self) -> bool:
        """Whether it was started in the background, and nothing said that it ended."""
        return self.outcome.startswith(STARTED)

    @property
    def is_made(self) -> bool:
        """Whether it created something that stands behind any number of others."""
        return any(map(_CREATES.match, self.keys))

    @property
    def is_void(self) -> bool:
        """Whether it is of no use behind another step: it failed, or showed something."""
        is_silent = all(map(_IS_SILENT.match, self.keys)) and self.outcome.startswith(UNQUOTED)
        # What git refused, or could not put together, is open until git says more.
        stays = self.checks or _COMMIT in self.keys or _CONFLICT.search(self.outcome)
        return is_silent or (NOT_MADE.match(self.outcome) is not None and not stays)

    def is_settled_by(self, later: _Step) -> bool:
        """Whether it is run again, of several checks at least one."""
        if later.outcome == NO_RESULT != self.outcome:
            return False
        if self.keys == {_ADD}:
            # What was added stays so until git takes it in or out.
            return not (later.keys.isdisjoint(_TAKES_IN) or NOT_MADE.match(later.outcome))
        return self.keys - {_ADD} <= later.keys or bool(self.checks & later.keys)

    def quoted(self, files: Sequence[FileState] | None, moves: Mapping[str, int]) -> Quote:
        """Return its line, with the names of what changed files after it.

        That is the names of the `files`, and of git's commands that put others in their place.
        """
        at = max(self.message, -1)
        names = [] if files is None else [*filter(None, self.since.split(", "))]
        names += (one for one, last in moves.items() if files is not None and last > at)
        # When a file that was only staged was changed is not known.
        known = (one for one in files or () if one.is_changed and one.state != "staged")
        changed = (one for one in known if one.message > at)
        names += (f"{one.name}{_GONE * (one.state == 'deleted')}" for one in changed)
        names = [*{name.removesuffix(_GONE): name for name in names}.values()]
        since = ", ".join(names[:_MOST_NAMES] + ["…"] * (len(names) > _MOST_NAMES))
        sign = "; " if self.outcome.startswith((STARTED, NO_RESULT)) else _RESULT
        text = f"{self.command}{sign if self.outcome else ''}{self.outcome}"
        return _fact(f"{text}{_SINCE if since else ''}{since}", self.message)


def _step(command: str, outcome: str, message: int, since: str = "") -> _Step:
    parts = command_parts(command.removeprefix(GAP))
    keys = frozenset(key for part in parts if (key := _key_of(part)))
    is_made = _COMMIT in keys or any(map(_CREATES.match, keys))
    # Of two here documents the text is not known.
    if not NOT_MADE.match(outcome) if is_made else "<<" in command:
        keys |= {f"{_CHANGE if is_made else _OTHER}{command}{_RESULT}{outcome}"}
    return _Step(command, outcome, message, keys, since)


def work_of(
    steps_before: Iterable[Quote],
    looks_before: Iterable[Quote],
    calls: Sequence[Call],
    files: Sequence[FileState],
    ends: tuple[int, int],
) -> tuple[tuple[Quote, ...], tuple[Quote, ...]]:
    """Return the commands that did more than show something, and what other calls showed.

    Each has words of its result. The commands are in order, so what one takes back of another is
    seen. A command leaves when all that it ran was run again; what was created stays longer. A
    check and the last commit name the files that were changed after them. What was shown before a
    change leaves. `ends` are the positions of the last message that is quoted, and of the last of a
    turn that has ended; negative for an earlier summary.
    """
    steps = [_read(one) for one in steps_before]
    looks = {_SIGN.split(one.text, 1)[0]: one for one in looks_before}
    all_begun = [*_each_begun(calls)]
    answered = next((one for one, _ in reversed(all_begun) if one.result is not None), None)
    changed = max((one.message for one in files if one.is_new), default=-1)
    own = frozenset(one.path for one in files if one.is_new)
    moves = dict[str, int]()
    for i, (call, first) in enumerate(all_begun):
        moves |= dict.fromkeys(_moved_by(call), call.message)
        command, at, began, since = _command_of(call), _asked_for(call, steps, first), first, ""
        step = _step(command, "", call.message)
        if call.message <= changed or step.is_change:
            # What is staged changes no file, and a changed file no commit.
            is_add = step.keys == {_ADD} and call.message > changed
            left = (one for one in looks if ("git " not in one if is_add else _LOG.match(one)))
            looks = {one: looks[one] for one in left if is_add or not step.is_change}
        if at is not None:
            command = steps[at].command
            outcome = outcome_of(call, command, _LONGEST_WHOLE * (not call.tool))
            # That the tool itself failed says nothing of the command.
            is_its_own = (call.result or "").startswith(f"{call.tool} failed")
            if is_its_own or outcome in {STARTED, NO_OUTPUT, UNQUOTED, NO_RESULT}:
                continue
            if outcome.startswith(STARTED):
                # What goes on stands where it was started, under its new id.
                steps[at] = steps[at]._replace(outcome=outcome)
                continue
            # What was changed while it ran is not in its result.
            began, since = steps[at].message, steps[at].since
            del steps[at]
        elif step.keys or _ids_begun(call):
            command = command or _named(call)
            is_whole = not call.tool or (call is answered and not (step.checks or step.is_change))
            outcome = outcome_of(call, command, _LONGEST_WHOLE * is_whole)
        else:
            is_new = call.message > changed and i >= len(calls) - _MANY
            is_new = is_new and (call.failed or not _looks_at(call, own))
            is_of_tasks = _listed(call) is not None or _OF_ONE.search(" ".join(call.name_words))
            if is_new and call.tool and not is_of_tasks:
                given = command or _given(call)
                words = shown_of(call, command) or UNQUOTED * _alters(call)
                looks.pop(given, None)
                sign = "; " if call.result is None else _RESULT
                looks |= {given: _fact(f"{given}{sign}{words}", call.message)} if words else {}
            continue
        step = _step(command.replace(_RESULT, " "), outcome, began, since)
        steps = [one for one in steps if not one.is_settled_by(step)]
        steps.append(step)
        if len(steps) > 2 * _MANY:
            old = [one for one in steps[:_MANY] if one.goes_on or one.is_made or one.checks]
            steps[:_MANY] = old[-_MOST_ENDED:]
    steps = _chosen(steps, *ends)
    commits = [step for step in steps if _COMMIT in step.keys][-1:]
    quoted = (
        one.quoted(files if one.checks or one in commits else None, moves if one.checks else {})
        for one in steps
    )
    return tuple(quoted), tuple(looks.values())[-_MOST_LOOKS:]


def _alters(call: Call) -> bool:
    """Whether the name of a tool says that it changes something other than a file."""
    says = None if call.command or call.path else _SAYS.match(" ".join(call.name_words))
    return says is not None and says["alters"] is not None


def _looks_at(call: Call, paths: Collection[str]) -> bool:
    """Whether a call shows a part of one of these files."""
    bare = [part for part in command_parts(call.command or "") if not part.startswith("git ")]
    words = " ".join(bare or [call.path or ""]).split()
    is_check = any(map(CHECKING.fullmatch, call.name_words))
    ends = [f"/{word.removeprefix('./')}" for word in words]
    return not is_check and any(
        f"/{path}".endswith(end) or end.endswith(f"/{path}") for end in ends for path in paths
    )


def _moved_by(call: Call) -> Iterator[str]:
    """Yield the commands of git by which a call put other files in place."""
    result = call.result or ""
    is_made = call.result is not None and not _NOTHING_NEW.search(result[:LOOKED_AT])
    if is_made and (not call.failed or _CONFLICT.search(result)):
        bare = " | ".join(command_parts(call.command or ""))
        yield from (f"git {one}" for one in _MOVES.findall(bare))


def _given(call: Call) -> str:
    """Return the tool of a call with its input, such as a path and lines, or a program."""
    given = (f"{key}={one}" if isinstance(one, int) else one for key, one in call.fields.items())
    texts = " ".join(one for one in given if isinstance(one, str))
    text = texts if call.fields else call.text[:LOOKED_AT].removeprefix("{}")
    return one_line(f"{call.tool} {shortened(text, _LONGEST_LINE)}").replace(_RESULT, " ")


_MOST_ENDED = 6
_SHOWS_NOTHING = re.compile(rf"(?:exit code 0(?: of the last command)?|{NO_OUTPUT}|{UNQUOTED})?$")
# The steps of each kind that are listed at most, the newest. What was said of a check is read
# beside its last run.
_MOST: Sequence[tuple[Callable[[_Step], object], int]] = (
    (lambda one: one.goes_on, 8),
    (lambda one: not one.goes_on, _MOST_ENDED),
    (lambda one: one.is_made, 4),
    (lambda one: one.checks, 2),
    (lambda one: one.checks and NOT_MADE.match(one.outcome), 2),
)


def _chosen(steps: Sequence[_Step], said: int, ended: int) -> list[_Step]:
    """Return the steps that are still of use.

    Before the last message of a turn that has `ended` these are those of a known kind, and before
    the last note of one that goes on those that showed something too.
    """
    known = [
        one
        for one in steps
        if one.checks
        or one.is_change
        or not 0 <= (said if _SHOWS_NOTHING.match(one.outcome) else ended) > one.message
    ]
    known = [one for one in known if one is steps[-1] or not one.is_void]
    left = [one for one in steps if one.goes_on or one.outcome == NO_RESULT or one in known]
    kept = {id(one) for is_one, most in _MOST for one in [*filter(is_one, left)][-most:]}
    return [one for one in left if id(one) in kept]


def _read(one: Quote) -> _Step:
    """Return the step of a line in an earlier summary."""
    text, _, since = one.text.partition(_SINCE)
    command, outcome = (*_SIGN.split(text, 1), "")[:2]
    return _step(command, outcome, one.message, since)


def _each_begun(calls: Iterable[Call]) -> Iterator[tuple[Call, int]]:
    """Yield the calls, each with the position of the message that began its command.

    A call with an empty command waits for the one before it of its tool, and one with `is_input`
    types into it: that command is yielded with the call's result.
    """
    begun: dict[str, tuple[Call, str]] = {}
    for call in calls:
        result = call.result or ""
        is_typed = str(call.fields.get("is_input")).lower() == "true"
        goes_on = call.command is not None and (is_typed or not call.command.strip())
        of, last = begun.get(call.tool, (call, ""))
        of = of if goes_on and _WAITS.search(last[-LOOKED_AT:]) else call
        if not _NOT_RUN.search(result[-LOOKED_AT:]):
            begun[call.tool] = of, result
        yield of._replace(message=call.message, result=call.result, failed=call.failed), of.message


def _asked_for(call: Call, steps: Sequence[_Step], began: int) -> int | None:
    """Return the position of the step that a call goes on with, or asks about by an id."""
    if began < call.message:
        at = began, _command_of(call).replace(_RESULT, " ")
        return next((i for i, one in enumerate(steps) if (one.message, one.command) == at), None)
    if call.command is not None and not call.command.strip():
        # The command is in an earlier summary.
        waits = (i for i, one in enumerate(steps) if _WAITS.search(one.outcome))
        return max(waits, default=None)
    if call.command is not None:
        return None
    named = set(_WORD.findall(call.text[:LOOKED_AT]))
    ids = (ID_SAID.search(step.outcome) for step in steps)
    return next((i for i, one in enumerate(ids) if one is not None and one[1] in named), None)


def _command_of(call: Call) -> str:
    """Return the command of a call in one line: without a `cd` before it, a long one cut inside.

    A `cd` to a folder for scratch stays, since a check there says little of the work.
    """
    folder, command = call.fields.get("workdir"), call.command or ""
    if isinstance(folder, str) and SCRATCH.search(f"{folder}/"):
        command = f"cd {folder} && {command}"
    parts = [(separator, one_line(given)) for separator, _, given in parts_in(command)]
    # The steps of a long one are not to be in what is cut out.
    is_long = sum(len(one) for _, one in parts) > _LONGEST_COMMAND
    gap = ""
    while len(parts) > 1:
        first = parts[0][1]
        is_lead = _LEADS.match(first) and not SCRATCH.search(f"{first[3:]}/")
        if not is_lead and not (is_long and _key_of(first)[:5] not in {_CHECK[:5], _CHANGE[:5]}):
            break
        gap = gap if is_lead else GAP
        del parts[0]
    text = "".join(f"{' ' * (sign != ';')}{sign} {one}" for sign, one in parts)
    text, quarter = text.lstrip("&|; "), _LONGEST_COMMAND // 4
    if len(text) <= _LONGEST_COMMAND or not parts[1:]:
        return gap + shortened(text, _LONGEST_COMMAND)
    # The end of one command behind the beginning of another would look like one that was run.
    begins, (sign, last) = _BEGINS.search(text, len(text) - quarter), parts[-1]
    end = text[begins.start() :] if begins else f"{sign} {last[:quarter].rstrip()} …"
    return f"{gap}{text[: 3 * quarter].rstrip()} … {end}"


def _ids_begun(call: Call) -> list[str]:
    """Return the ids that a result gives to what goes on in the background."""
    start = "" if call.path else (call.result or "")[:LONGEST_WORDS]
    # A poll has the id in its input.
    ids = ID_SAID.findall(start) if RUNS_ON.search(start) else []
    return [] if any(one in call.text for one in ids) else ids


def _named(call: Call) -> str:
    """Return the tool of a call with its path, or the words that say what it is for."""
    given = (call.fields.get(key) for key in _TASK_TEXT if not call.path)
    said = next((one for one in given if isinstance(one, str)), call.path or "")
    return one_line(f"{call.tool} {shortened(said, _LONGEST_LINE)}") if said else _given(call)


def _key_of(part: str) -> str:
    """Return the kind of a command, equal for two runs of it; empty if it only shows something."""
    runs = _RUNS.match(part)
    bare = " ".join(part[runs.end() if runs else 0 :].split())
    if git := GIT.match(bare):
        return f"{_CHANGE}git {git[1]}{' of files' * bool(_OF_FILES.match(bare))}"
    words = [word for word in bare.split() if "=" not in word and not word.startswith("-")]
    program = words[0].rpartition("/")[2] if words else ""
    says = _SAYS.search(" ".join(bare.split()[: 2 * _FIRST_WORDS]))
    if not words or SHOWS.match(bare) or (says and says["shows"]):
        return ""
    if says and says["alters"]:
        return f"{_CHANGE}{bare}"
    names = [*_PARTS_OF_NAME.split(program)]
    names += [word.rpartition("/")[2].rpartition(":")[2] for word in bare.split()[1:_FIRST_WORDS]]
    if not any(map(CHECKING.fullmatch, names)):
        return f"{_OTHER}{bare}"
    is_one = CHECKING.fullmatch(program) and program != "make"
    return f"{_CHECK}{program if is_one else ' '.join(words[:2])}"
