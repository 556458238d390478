"""Where the work stands, as calls and results say: the tasks, and the commands that changed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from policyctx.compaction.extractive.files import (
    EXCEPTION,
    REPORTED,
    Call,
    command_parts,
    parts_in,
)
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.texts import one_line, shortened

_MOST_TASKS, _MOST_STEPS = 30, 10
_LONGEST_LINE, _LONGEST_PART, _LONGEST_COMMAND, _LONGEST_WORDS = 160, 120, 240, 240
# A command beside the steps that is longer is left out.
_SHORT_PART = 60
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
_CLOSED = {"deleted", "cancelled", "canceled"}


def tasks_of(earlier: Iterable[Quote], calls: Sequence[Call]) -> tuple[Quote, ...]:
    """Return the tasks as the agent's own tool for tasks has them: `[in_progress] Write the test`.

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
    return tuple(tasks.values())[-_MOST_TASKS:]


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
    said = {True: "done", False: "open"}.get(state, state) if isinstance(state, bool) else state
    return f"[{one_line(str(said))}] {shortened(one_line(str(text)), _LONGEST_LINE)}"


def _follow(tasks: dict[str, Quote], call: Call) -> None:
    given = call.fields
    number = next((str(given[key]) for key in ("taskId", "task_id", "id") if key in given), "")
    state = given.get("status")
    if "create" in call.name_words and isinstance(given.get("subject"), str):
        named = _TASK_NUMBER.search(call.result or "")
        text = shortened(one_line(str(given["subject"])), _LONGEST_LINE)
        text = f"[pending] #{named[1]} {text}" if named else f"[pending] {text}"
        tasks[named[1] if named else text] = _fact(text, call.message)
    elif "update" in call.name_words and state in _CLOSED:
        tasks.pop(number, None)
    elif "update" in call.name_words and number in tasks:
        was, _, subject = tasks[number].text.partition(f" #{number} ")
        said = f"[{one_line(str(state))}]" if state else was
        subject = one_line(str(given.get("subject") or subject))
        text = shortened(f"{said} #{number} {subject}", _LONGEST_LINE)
        tasks[number] = _fact(text, call.message)


# Commands that change or check the work: git and its hosts, processes, scripts, tests and builds.
_GIT = re.compile(
    r"git (?:-\S+ (?:\S*/\S* )?)*(commit|push|checkout|switch|merge|rebase|reset|restore|revert"
    r"|cherry-pick|stash|tag|branch(?! -(?:a|r|-all|-show-current))|pull|am|status"
    r"|worktree(?! list))\b"
)
_REQUESTS = re.compile(r"(?:gh|glab) (?:pr|mr|issue|release) (?!view|list|diff|checks|status)\w")
_PROCESSES = re.compile(
    r".*[^&>]&$|(?:nohup|setsid|kill|pkill|killall|systemctl"
    r"|docker(?:[ -]compose)? (?:up|down|run|stop))\b"
)
_SCRIPT = re.compile(r"(?:(?:ba|z)?sh\s+|\./)(?!-)\S+\.sh\b")
_CHECKING = re.compile(
    r"(?:py|unit)?tests?|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|check|lint|eslint|ruff"
    r"|flake8|mypy|pyright|tsc|clippy|vet|credo|typecheck|build|compile|verify|make|ninja"
    r"|gradlew?|mvn|msbuild|xcodebuild",
    re.IGNORECASE,
)
# What a check that passes says nothing about: a linter of tests, and tests of what is linted.
_LINTS = re.compile(r"lint|ruff|flake8|mypy|pyright|clippy|\bvet\b|credo|typecheck")
_NO_TEST = re.compile(rf"{_LINTS.pattern}|build|compile|\btsc\b")
_NO_LINT = re.compile(r"test|jest|mocha|spec|phpunit|build|compile")
_ENDS_WORK = frozenset(("finish", "submit", "complete", "kill", "stop"))
_SUBMITS = re.compile(r"submit\b|echo \W?COMPLETE_TASK")
# What puts files back: what was run before it in the same command says nothing of the work.
_PUTS_BACK = re.compile(
    r"git (?:-\S+ )*(?:stash (?:pop|apply)|restore\b|checkout (?:.* )?(?:-- |\S+\.\w+$))"
)
# What runs another program, which is what counts.
_RUNS = re.compile(r"(?:(?:env|sudo|time|npx|\w+=\S*|(?:\w+ )?(?:exec|run)(?: --)?)\s+)+")
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9]+")
_FIRST_WORDS = 4
_SHOWS_TEXT = frozenset(
    {"awk", "cat", "cd", "diff", "echo", "find", "grep", "head", "ls", "rg", "sed", "sort", "tail"}
)
_OF_GIT = re.compile(r"(?:git|gh|glab) ")
# Commands that change no file and print nothing of their own.
_IS_SILENT = re.compile(r"(?:cd|echo|export|set|source|\.|sleep|(?:ba|z)?sh -\w*c)\b|\w+=\S*$")
_CUT = "…"
_RESULT, _COMMIT, _STATUS = " => ", "git commit", "git status"
_ID_SAID = re.compile(r"\b(?:ID|id):? ([\w-]*\d[\w-]*|[\w-]{6,})")
# The mark of a step that files were changed after.
_SINCE = "; files edited since"

Keys: TypeAlias = "frozenset[str]"


class _Step(NamedTuple):
    """A command that is quoted, and what it runs."""

    one: Quote
    keys: Keys

    @property
    def is_check(self) -> bool:
        """Whether it only checks the work."""
        keys = self.keys - {_STATUS}
        return bool(keys) and all(
            any(map(_CHECKING.fullmatch, _PARTS_OF_NAME.split(key))) for key in keys
        )

    @property
    def failed(self) -> bool:
        """Whether its result says that it failed."""
        return _NOT_MADE.match(self.one.text.partition(_RESULT)[2]) is not None

    def is_settled_by(self, later: _Step) -> bool:
        """Whether it is run again, or a later command shows that it holds no more."""
        before, now = self.keys, later.keys
        if before == {_STATUS}:
            return any(map(_OF_GIT.match, now))
        if before <= now or not (before.isdisjoint(now) or any(map(_OF_GIT.match, before))):
            return True
        if not (self.is_check and self.failed and later.is_check) or later.failed:
            return False
        others = _NO_LINT if any(map(_LINTS.search, before)) else _NO_TEST
        return not all(map(others.search, now))


def steps_of(earlier: Iterable[Quote], calls: Sequence[Call], last_edit: int) -> tuple[Quote, ...]:
    """Return the commands that changed or checked the work, each with words of its result.

    They are quoted in order, so what one takes back of another is seen. One leaves when all that
    it ran was run again, and a check that failed when another that may cover it passed; a commit
    stays. A call at the end whose result is missing is one of them. `last_edit` is the position of
    the message that changed a file last: checks of before it leave when there is one of after it.
    """
    steps = [_Step(one, _keys_in(one.text)) for one in earlier]
    for call in calls:
        command, is_whole = _step_in(call)
        if not call.command and (at := _asked_for(call, steps)) is not None:
            command = steps.pop(at).one.text.partition(_RESULT)[0]
            is_whole = True
        if not command and call is calls[-1] and call.result is None:
            command = shortened(one_line(call.command or call.name), _LONGEST_COMMAND)
        if not command:
            continue
        outcome = _outcome(call, command, is_whole=is_whole)
        text = f"{command.replace(_RESULT, ' ')}{_RESULT}{outcome or _UNSAID}"
        step = _Step(_fact(text, call.message), _keys_in(text))
        stashed = max((i for i, one in enumerate(steps) if "git stash" in one.keys), default=-1)
        if _PUTS_BACK.match(command) and "git stash" in step.keys and stashed >= 0:
            # What was run on the files without the changes says nothing of them.
            steps[stashed:] = [one for one in steps[stashed + 1 :] if not one.is_check]
            continue
        steps = [one for one in steps if not one.is_settled_by(step)]
        if outcome or not step.is_check:
            steps.append(step)
    commit = max((i for i, step in enumerate(steps) if _COMMIT in step.keys), default=-1)
    steps = [
        step._replace(one=_marked(step.one, last_edit))
        if i == commit or not all(map(_OF_GIT.match, step.keys - {_STATUS}))
        else step
        for i, step in enumerate(steps)
    ]
    if any(step.is_check and not step.one.text.endswith(_SINCE) for step in steps):
        steps = [one for one in steps if not (one.is_check and one.one.text.endswith(_SINCE))]
    return tuple(step.one for step in steps[-_MOST_STEPS:])


def _marked(one: Quote, last_edit: int) -> Quote:
    is_old = last_edit > one.message and not one.text.endswith(_SINCE)
    return one._replace(text=one.text + _SINCE) if is_old else one


def _asked_for(call: Call, steps: Sequence[_Step]) -> int | None:
    """Return the position of the step that a call asks about by the id that its result names."""
    if call.command is not None:
        # Without a command a shell goes on with the last one.
        return len(steps) - 1 if steps else None
    named = set(re.findall(r"[\w-]+", call.text[:_LOOKED_AT]))
    ids = ((i, _ID_SAID.search(step.one.text)) for i, step in enumerate(steps))
    return next((i for i, found in ids if found is not None and found[1] in named), None)


def _step_in(call: Call) -> tuple[str, bool]:
    """Return the steps of a call as they were given, `…` for what is between them.

    Also return whether no other command of the call may have printed what its result says. A call
    without a step, or that puts files back after it, has an empty text.
    """
    if call.command is None:
        words = call.name_words
        is_step = not _ENDS_WORK.isdisjoint(words) or any(map(_CHECKING.fullmatch, words))
        return call.name if is_step else "", True
    flagged = any("background" in name and value is True for name, value in call.fields.items())
    shown: list[str] = []
    is_whole, checked, has_step = True, False, False
    for separator, plain, given in parts_in(call.command):
        keys = [key for part in command_parts(plain) if (key := _key_of(part))]
        if checked and _PUTS_BACK.match(plain) and _COMMIT not in call.command:
            return "", True
        checked = checked or any(not _OF_GIT.match(key) or key == "git stash" for key in keys)
        has_step = has_step or bool(keys) or flagged
        text = one_line(given)
        if len(text) > _LONGEST_PART and (runner := _RUNS.match(text)):
            text = f"{_CUT} {text[runner.end() :]}"
        text = shortened(text, _LONGEST_PART)
        if not keys and not flagged:
            is_silent = _IS_SILENT.match(plain)
            is_whole = is_whole and bool(is_silent)
            text = text if len(text) <= _SHORT_PART else _CUT
            if [text] == shown[-1:] == [_CUT] or (is_silent and not shown):
                continue
        shown += [separator, text] if shown else [text]
    if not has_step:
        return "", True
    return shortened(re.sub(r" ;", ";", " ".join(shown)), _LONGEST_COMMAND), is_whole


def _keys_in(text: str) -> Keys:
    """Return what a step runs. A commit that was made is like no other."""
    command, _, outcome = text.partition(_RESULT)
    keys = {key for part in command_parts(command) if (key := _key_of(part))} or {command}
    if _COMMIT in keys and not _NOT_MADE.match(outcome):
        keys.add(text)
    return frozenset(keys)


def _key_of(part: str) -> str:
    """Return what is equal for two runs of one command; empty if it is not a step."""
    part = part.removeprefix(_CUT).strip()
    start = _RUNS.match(part)
    bare = part[start.end() if start else 0 :]
    words = [word for word in bare.split() if "=" not in word and not word.startswith("-")]
    program = words[0].rpartition("/")[2] if words else ""
    if git := _GIT.match(bare):
        return f"git {git[1]}"
    if _PROCESSES.match(bare) or _SUBMITS.match(bare):
        return bare
    if _REQUESTS.match(bare):
        return " ".join(words[:4])
    if _SCRIPT.match(bare):
        return " ".join(words[:2])
    names = [*_PARTS_OF_NAME.split(program)]
    names += [word.rpartition("/")[2].rpartition(":")[2] for word in bare.split()[1:_FIRST_WORDS]]
    if program in _SHOWS_TEXT or not any(map(_CHECKING.fullmatch, names)):
        return ""
    return program if _CHECKING.fullmatch(program) and program != "make" else " ".join(words[:2])


_EXIT_CODE = re.compile(r"\bexit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}(\d+)", re.IGNORECASE)
# A line that counts what was checked, says that all is well, or names a commit, branch or request.
_TELLS = re.compile(
    r"\b\d+ (?:\w+ )?(?:passed|passing|(?:tests?|files?)(?![/\w.]| changed))\b"
    r"|^ok\b|[Aa]ll checks|BUILD SUCCESS|[Ss]uccessful|^\[\S+ (?:\([^)]*\) )?[0-9a-f]{7,40}\] "
    r"|^[0-9a-f]{7,40} \S|^[0-9a-f]{7,40}\.\.\S+ .* -> |^\W+\[new |^## \S+"
    r"|^Switched to|^On branch|^Deleted branch"
    r"|nothing to commit|https?://\S+/(?:pull|pulls|issues|merge_requests)/\d"
)
# A line of a status that names a changed file.
_CHANGED = re.compile(r"(?:modified|new file|deleted|renamed): |(?:[MADRU]{1,2}|\?\?) \S+$")
# A line that only surrounds what was printed.
_FRAME = re.compile(
    r"<|Output:|(?:Wall time|Chunk ID|Original token count|Script completed|Total output lines)\b"
    r"|.*\bwarning: "
)
# What programs print of a test that failed, and of what it expected.
_ERROR = re.compile(
    r"FAILED .+|E \S.*|--- FAIL: .+|[×✕●] .+|not ok \d+.*|AssertionError.*"
    r"|.*\berror(?:\[\w+\]|\s+[A-Z]+\d+)?: \S.*|[\w./-]+\.\w+:\d+(?::\d+)?:? \S.*"
    rf"|.*(?:{EXCEPTION.pattern}|{REPORTED.pattern})",
    re.MULTILINE,
)
_MOST_LINES, _LAST_LINES = 4, 2
_NOT_MADE, _NO_RESULT = re.compile(r"failed|exit code [1-9]"), "result not recorded"
# The words for a result of which nothing is quoted.
_UNSAID = "printed more than is quoted here"


def _outcome(call: Call, command: str, *, is_whole: bool) -> str:
    """Return words of a result: its exit code, and the lines that tell what the command did.

    Other lines are quoted only if the command alone printed them, and all of them.
    """
    if call.result is None:
        return _NO_RESULT
    ends = _ends_of(call.result)
    codes = _EXIT_CODE.findall(ends)
    code = next((f"exit code {one}" for one in reversed(codes) if int(one)), "")
    # Of several commands a shell returns the exit code of the last.
    if codes and not code and "|" not in command and len(codes) > command.count("; "):
        code = "exit code 0"
    lines = [one_line(line) for line in ends.split("\n") if re.search(r"\w", line)]
    said = [line for line in lines if not _EXIT_CODE.search(line) and not _FRAME.match(line)]
    shown = [line for line in said if call.failed and _ERROR.match(line)]
    # A chain ends with the command that failed.
    if not shown and call.failed and (is_whole or not re.search(r"; |\|\|", command)):
        shown = said[-_LAST_LINES:]
    shown = shown or [line for line in said if _TELLS.search(line)]
    changed = [line for line in said if _CHANGED.match(line)] if _COMMIT not in command else []
    if not shown and is_whole and len(said) <= _LAST_LINES:
        shown = said
    shown = [*dict.fromkeys([*shown, *changed])]
    most = _MOST_LINES + len(changed)
    if len(shown) > most:
        shown = [shown[0], _CUT, *shown[1 - most :]]
    words = shortened(" / ".join(shown), _LONGEST_WORDS)
    code = code or ("failed" if call.failed else "")
    return ": ".join(filter(None, (code, words))) or ("" if said else "no output")


def _ends_of(text: str) -> str:
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
