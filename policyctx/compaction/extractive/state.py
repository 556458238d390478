"""Where the work stands, as calls and results say: the tasks, and the commands that changed it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from policyctx.compaction.extractive.files import (
    EXCEPTION,
    REPORTED,
    Call,
    command_parts,
    without_here_documents,
)
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.texts import one_line, shortened

_MOST_TASKS, _MOST_STEPS = 30, 10
_LONGEST_LINE, _LONGEST_COMMAND, _LONGEST_WORDS = 160, 160, 200
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
_ENDS_WORK = frozenset(("finish", "submit", "complete", "kill", "stop"))
_SUBMITS = re.compile(r"submit\b|echo \W?COMPLETE_TASK")
# What runs another program, which is what counts.
_RUNS = re.compile(r"(?:(?:env|sudo|time|npx|\w+=\S*|(?:\w+ )?(?:exec|run)(?: --)?)\s+)+")
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9]+")
_FIRST_WORDS = 4
_SHOWS_TEXT = frozenset(
    {"awk", "cat", "cd", "diff", "echo", "find", "grep", "head", "ls", "rg", "sed", "sort", "tail"}
)
_OF_GIT = re.compile(r"(?:git|gh|glab) ")
# Commands before the first step that change no file.
_IS_SILENT = re.compile(r"(?:cd|echo|export|set|source|\.|sleep|(?:ba|z)?sh -\w*c)\b|\w+=\S*$")
_CUT = "… "
_RESULT, _COMMIT, _STATUS = " => ", "git commit", "git status"
_ID_SAID = re.compile(r"\b(?:ID|id):? ([\w-]*\d[\w-]*|[\w-]{6,})")


def steps_of(
    earlier: Iterable[Quote], calls: Sequence[Call], changes: Changes
) -> tuple[Quote, ...]:
    """Return the commands that changed or checked the work, each with words of its result.

    They are quoted in order, so what one takes back of another is seen. One leaves when all that
    it ran was run again; a commit stays. A call at the end whose result is missing is one of them.
    """
    steps = [(one, _keys_in(one.text)) for one in earlier]
    for call in calls:
        command = _step_in(call)
        if not call.command and (at := _asked_for(call, steps)) is not None:
            command = steps[at][0].text.partition(_RESULT)[0]
            del steps[at]
        if not command and call is calls[-1] and call.result is None:
            command = shortened(one_line(call.command or call.name), _LONGEST_COMMAND)
        outcome = _outcome(call) if command else ""
        if outcome:
            text = f"{command.replace(_RESULT, ' ')}{_RESULT}{outcome}"
            keys = _keys_in(text)
            steps = [(one, its) for one, its in steps if not _is_run_again(its, keys)]
            steps.append((_fact(text, call.message), keys))
    steps = steps[-_MOST_STEPS:]
    commit = max((i for i, (_, keys) in enumerate(steps) if _COMMIT in keys), default=-1)
    return tuple(
        changed_after(one, changes) if i == commit or not _is_of_git(keys) else one
        for i, (one, keys) in enumerate(steps)
    )


def _asked_for(call: Call, steps: Sequence[tuple[Quote, frozenset[str]]]) -> int | None:
    """Return the position of the step that a call asks about by the id that its result names."""
    if call.command is not None:
        # Without a command a shell goes on with the last one.
        return len(steps) - 1 if steps else None
    named = set(re.findall(r"[\w-]+", call.text[:_LOOKED_AT]))
    ids = ((i, _ID_SAID.search(one.text)) for i, (one, _) in enumerate(steps))
    return next((i for i, found in ids if found is not None and found[1] in named), None)


def _is_run_again(before: frozenset[str], now: frozenset[str]) -> bool:
    """Whether all of a step is run again, part of one that only checked, or a status is old."""
    if before == {_STATUS}:
        return any(map(_OF_GIT.match, now))
    return before <= now or not (before.isdisjoint(now) or any(map(_OF_GIT.match, before)))


def _is_of_git(keys: Iterable[str]) -> bool:
    return all(map(_OF_GIT.match, keys))


def _step_in(call: Call) -> str:
    """Return the command of a call from its first step on; empty for a call without a step."""
    if call.command is None:
        words = call.name_words
        ends = not _ENDS_WORK.isdisjoint(words)
        return call.name if ends or any(map(_CHECKING.fullmatch, words)) else ""
    flagged = any("background" in name and value is True for name, value in call.fields.items())
    parts = command_parts(call.command)
    first = next((part for part in parts if flagged or _key_of(part)), None)
    if first is None:
        return ""
    start = max(0, call.command.find(first.partition("''")[0].strip()))
    left_out = (one for one in command_parts(call.command[:start]) if one.strip())
    mark = _CUT if any(not _IS_SILENT.match(one.strip()) for one in left_out) else ""
    command = without_here_documents(call.command[start:])
    return mark + shortened(one_line(command), _LONGEST_COMMAND)


def _keys_in(text: str) -> frozenset[str]:
    """Return what a step runs. A commit that was made is like no other."""
    command, _, outcome = text.partition(_RESULT)
    parts = command_parts(command.removeprefix(_CUT))
    keys = {key for part in parts if (key := _key_of(part))} or {command}
    if _COMMIT in keys and not _NOT_MADE.match(outcome):
        keys.add(text)
    return frozenset(keys)


def _key_of(part: str) -> str:
    """Return what is equal for two runs of one command; empty if it is no step."""
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
    r"|^ok\b|[Aa]ll checks|SUCCESS|[Ss]uccessful|^\[\S+ (?:\([^)]*\) )?[0-9a-f]{7,40}\] "
    r"|^[0-9a-f]{7,40} \S|^[0-9a-f]{7,40}\.\.\S+ .* -> |^\W+\[new |^## \S+\.\.\."
    r"|^Switched to|^On branch|^Deleted branch"
    r"|nothing to commit|https?://\S+/(?:pull|pulls|issues|merge_requests)/\d"
)
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
_MOST_LINES, _LAST_LINES = 3, 2
_NOT_MADE, _NO_RESULT = re.compile(r"failed|exit code [1-9]"), "result not recorded"


def _outcome(call: Call) -> str:
    """Return words of a result: its exit code, and the lines that tell most, or the last ones."""
    if call.result is None:
        return _NO_RESULT
    ends = _ends_of(call.result)
    code = next((f"exit code {code}" for code in reversed(_EXIT_CODE.findall(ends))), "")
    lines = [one_line(line) for line in ends.split("\n") if re.search(r"\w", line)]
    said = [line for line in lines if not _EXIT_CODE.search(line) and not _FRAME.match(line)]
    tells = [line for line in said if call.failed and _ERROR.match(line)][:_MOST_LINES]
    tells = tells or [line for line in said if _TELLS.search(line)]
    shown = [*tells[:1], *tells[1:][1 - _MOST_LINES :]] or said[-_LAST_LINES:]
    words = shortened(" / ".join(dict.fromkeys(shown)), _LONGEST_WORDS)
    code = code or ("failed" if call.failed else "")
    return ": ".join(filter(None, (code, words))) or "no output"


def _ends_of(text: str) -> str:
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


Changes = Sequence[tuple[int, str]]
_AFTER, _MOST_AFTER = "; after it edited: ", 5


def changed_after(fact: Quote, changes: Changes) -> Quote:
    """Return the fact with the files that were changed after it."""
    text, _, before = fact.text.partition(_AFTER)
    paths = [path.rpartition("/")[2] for message, path in changes if message > fact.message]
    names = [*dict.fromkeys([*filter(None, before.split(", ")), *paths])][-_MOST_AFTER:]
    return fact._replace(text=f"{text}{_AFTER}{', '.join(names)}" if names else text)
