"""Where the work stands, as calls and results say: tasks, repository, processes, checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyctx.compaction.extractive.files import (
    EXCEPTION,
    REPORTED,
    Call,
    begins_failure,
    command_parts,
)
from policyctx.compaction.extractive.languages import Cues
from policyctx.compaction.extractive.texts import one_line, shortened

_MOST_TASKS, _MOST_COMMITS, _MOST_LINKS, _MOST_RUNNING, _MOST_CHECKS = 30, 5, 5, 8, 4
_LONGEST_LINE, _LONGEST_COMMAND, _LONGEST_ERROR = 160, 100, 240
# Of a result only the beginning and the end are looked through.
_LOOKED_AT = 2_000


class Fact(NamedTuple):
    """A line that was read from a call or from its result."""

    text: str
    message: int = -1
    """0-based position of the message; -1 if it is of an earlier summary."""
    minor: bool = False
    """Whether it is kept only where room is plentiful."""


# Words in the name of a tool for tasks, or the field with its list.
_OF_TASKS = frozenset(("plan", "task", "tasks", "todo", "todos"))
# What an entry of a list of tasks is called, and what its state is.
_TASK_TEXT = ("content", "step", "title", "task", "text", "subject", "description", "name")
_TASK_STATE = ("status", "state", "done", "completed")
_TASK_NUMBER = re.compile(r"#(\d+)")
_NUMBERED = re.compile(r"\[[^\]]*\] #(\d+) ")
_CLOSED = {"deleted", "cancelled", "canceled"}


def tasks_of(earlier: Iterable[Fact], calls: Sequence[Call]) -> tuple[Fact, ...]:
    """Return the tasks as the agent's own tool for tasks has them: `[in_progress] Write the test`.

    A call with a whole list replaces the list. Tools that make or change one task at a time are
    followed by the number that the result, or the input, names.
    """
    tasks: dict[str, Fact] = {}
    for one in earlier:
        number = _NUMBERED.match(one.text)
        tasks[number[1] if number else one.text] = one
    for call in calls:
        if call.failed:
            continue
        listed = _listed(call)
        if listed is not None:
            tasks = {text: Fact(text, call.message) for text in listed}
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


def _follow(tasks: dict[str, Fact], call: Call) -> None:
    given = call.fields
    number = next((str(given[key]) for key in ("taskId", "task_id", "id") if key in given), "")
    state = given.get("status")
    if "create" in call.name_words and isinstance(given.get("subject"), str):
        named = _TASK_NUMBER.search(call.result or "")
        text = shortened(one_line(str(given["subject"])), _LONGEST_LINE)
        text = f"[pending] #{named[1]} {text}" if named else f"[pending] {text}"
        tasks[named[1] if named else text] = Fact(text, call.message)
    elif "update" in call.name_words and state in _CLOSED:
        tasks.pop(number, None)
    elif "update" in call.name_words and number in tasks:
        was, _, subject = tasks[number].text.partition(f" #{number} ")
        said = f"[{one_line(str(state))}]" if state else was
        subject = one_line(str(given.get("subject") or subject))
        text = shortened(f"{said} #{number} {subject}", _LONGEST_LINE)
        tasks[number] = Fact(text, call.message)


_BRANCH = "branch "
_BRANCH_MADE = re.compile(r"\bgit (?:checkout -[bB]|switch -[cC])\s+([\w./-]+)")
_BRANCH_SAID = re.compile(
    r"^(?:Switched to (?:a new )?branch '([^']+)'|On branch (\S+))", re.MULTILINE
)
_BRANCH_GONE = re.compile(r"^Deleted branch (\S+) \(was ", re.MULTILINE)
_EFFECTS = re.compile(
    r"\b(?:gh (?:pr|issue)|glab (?:mr|issue)) (?:merge|edit|close|ready|comment|review|reopen)\b"
    r"(?:(?!\s\d?>)[^|;&\n\"'$<])*"
)
_DELETES_BRANCH = re.compile(r"\bmerge\b.*\s(?:--delete-branch|-d|--remove-source-branch)\b")
_MOVES_BRANCH = re.compile(r"\bgit (?:checkout|switch|rebase|bisect)\b")
_PATH_RESTORED = re.compile(r"^Updated \d+ paths?|\bgit checkout [^;&|\n]*-- ")
# What takes commits back.
_REWRITES = re.compile(
    r"\bgit (?:commit\b[^;&|\n]* --amend|rebase|reset (?:--(?:soft|hard|mixed)|HEAD[~^])"
    r"|pull\b[^;&|\n]* --?r)"
)
_COMMIT = re.compile(r"^\[(\S+)(?: \([^)\n]*\))? ([0-9a-f]{7,40})\] ([^\n]*)", re.MULTILINE)
_NO_ID = ", no id printed: "
_QUIET_COMMIT = re.compile(r"\bgit commit\b(?=[^;&|\n]* (?:-\w*q|--quiet|>))[^\n]*")
_PUSHED = re.compile(
    r"(?:[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}|\[new (?:branch|tag)\])\s+\S+\s+->\s+\S+"
)
_MAKES_REQUEST = re.compile(r"\bcreate\b|\bgit push\b")
_LINK = re.compile(r"https?://[^\s<>\"'()]+/(?:pull|pulls|issues|merge_requests)/\d+")


# A call that hands the work in.
_HANDS_IN = frozenset(("finish", "submit", "complete"))
_SUBMITS = re.compile(r"submit\b|echo \W?COMPLETE_TASK")


def repository_of(
    earlier: Iterable[Fact], calls: Sequence[Call], changes: Changes
) -> tuple[Fact, ...]:
    """Return the branch, its last commits, the last push, requests opened and merged, a hand-in.

    The last commit names the files that were changed after it.
    """
    branch: list[Fact] = []
    kept = {kind: dict[str, Fact]() for kind in ("commit", "pushed", "ran", "link", "called")}
    for one in earlier:
        if one.text.startswith(_BRANCH):
            branch = [one]
        else:
            kind = one.text.partition(" ")[0]
            kept[kind if kind in kept else "link"][one.text] = one
    for call in calls:
        command, printed = call.command, _ends_of(call.result or "")
        if command is not None and not call.failed:
            branch, stays = _branch_after(command, printed, call.message, branch)
            if not stays:
                kept["commit"], kept["pushed"] = {}, {}
            for kind, text in _done_in(command, printed):
                # Only the last push counts.
                kept[kind] = {} if kind == "pushed" else kept[kind]
                kept[kind][text] = Fact(text, call.message)
            gone = [f" on {name}: " for name in _BRANCH_GONE.findall(printed)]
            before = kept["commit"].items()
            kept["commit"] = {t: one for t, one in before if not any(name in t for name in gone)}
        if not _HANDS_IN.isdisjoint(call.name_words) or _SUBMITS.match(command or ""):
            kept["called"] = {"": Fact(f"called {call.name}", call.message)}
        if "create" in call.name_words or (command and _MAKES_REQUEST.search(command)):
            for link in _LINK.findall(printed):
                kept["link"][link] = Fact(link, call.message)
    made, links, ran = ([*kept[kind].values()] for kind in ("commit", "link", "ran"))
    on = [f" on {one.text.removeprefix(_BRANCH)}: " for one in branch] + [_NO_ID]
    commits = [one for one in made if any(name in one.text for name in on)] or made
    older = commits[-_MOST_COMMITS:-1]
    return (
        *branch,
        *(one._replace(text=one.text.partition(_AFTER)[0]) for one in older),
        *(changed_after(one, changes) for one in commits[-1:]),
        *kept["pushed"].values(),
        *links[-_MOST_LINKS:],
        *ran[-_MOST_LINKS:],
        *(changed_after(one, changes) for one in kept["called"].values()),
    )


def _branch_after(
    command: str, printed: str, message: int, before: list[Fact]
) -> tuple[list[Fact], bool]:
    """Return the branch that a command leaves, if it is known, and whether commits stay."""
    deletes = any(map(_DELETES_BRANCH.search, _EFFECTS.findall(command)))
    stays = not deletes and not _REWRITES.search(command)
    named = [one or other for one, other in _BRANCH_SAID.findall(printed) if "git" in command]
    if made := named or _BRANCH_MADE.findall(command):
        return [Fact(_BRANCH + made[-1], message)], stays
    moves = _MOVES_BRANCH.search(command) and not _PATH_RESTORED.search(f"{printed}\n{command}")
    return [] if deletes or moves else before, stays


def _done_in(command: str, printed: str) -> Iterator[tuple[str, str]]:
    """Yield what a command did in the repository, with its kind: commits, a push, merges."""
    for name, commit, subject in _COMMIT.findall(printed) if "git" in command else ():
        text = f"commit {commit} on {name}: {subject}"
        yield "commit", shortened(one_line(text), _LONGEST_LINE)
    if not _COMMIT.search(printed) and (quiet := _QUIET_COMMIT.search(command)) is not None:
        yield "commit", shortened(one_line(f"commit{_NO_ID}{quiet[0]}"), _LONGEST_LINE)
    if "git push" in command and (pushed := _PUSHED.search(printed)) is not None:
        yield "pushed", f"pushed {one_line(pushed[0])}"
    for effect in _EFFECTS.findall(command):
        yield "ran", f"ran {shortened(one_line(effect), _LONGEST_COMMAND)}"


def _ends_of(text: str) -> str:
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


_IN_BACKGROUND = re.compile(
    r"(?<![&>|])&(?![&>\d])\s*(?:$|\n|;|\)|disown|echo\b|sleep\b)|\bnohup\s|\bsetsid\s"
    r"|\bscreen -\w*d\w*\s|\btmux new(?:-session)?\s"
    r"|\bdocker(?:[ -]compose)? (?:up|run)\b[^\n]*\s-d\b|\bsystemctl start\s"
)
_STOPS = re.compile(r"kill|stop|terminate|\bdown\b", re.IGNORECASE)
# It may have ended any.
_KILLS_BY_NAME = re.compile(r"\b(?:pkill|killall)\b")
_ID_SAID = re.compile(
    r"\b(?:id|pid|shell|process|task)\b\W{1,3}([\w-]*\d[\w-]*|[\w-]{6,})", re.IGNORECASE
)
_JOB = re.compile(r"^\[\d+\]\s+(\d+)\s*$", re.MULTILINE)
_PORT = re.compile(
    r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):(\d{2,5})|--?p(?:ort)?[ =](\d{2,5})"
    r"|\bport (\d{2,5})|\bPORT=(\d{2,5})"
)
_ANY_KEY = re.compile(r"[\w-]+")
_KEY = re.compile(r"\bid ([^\s,)]+)|\bport (\d+)")
_ENDED = re.compile(r"completed|exited|failed|finished|killed|stopped|not running", re.IGNORECASE)


def running_of(
    earlier: Iterable[Fact], calls: Sequence[Call], notices: Iterable[str]
) -> tuple[Fact, ...]:
    """Return what was started in the background and is not known to have ended.

    A later call stops it, or one of `notices`, the texts that came from outside, names its id and
    says that it ended. Of an earlier summary only what listens on a port is taken to run on.
    """
    running = [one for one in earlier if " port " in one.text or "(port " in one.text]
    for call in calls:
        if running and _may_end(call):
            by_name = _KILLS_BY_NAME.search(call.command or "")
            named = _named_in(call.text)
            running = [one for one in running if not by_name and named.isdisjoint(_keys_of(one))]
        if (started := _started(call)) is not None:
            # What takes the port, or the id, takes the place of what was there.
            keys = _keys_of(started) | {started.text}
            running = [one for one in running if keys.isdisjoint({*_keys_of(one), one.text})]
            running.append(started)
    said = (text[:_LOOKED_AT] for text in notices if _ENDED.search(text))
    ended = {key for text in said for key in _named_in(text) if len(key) > 3}  # noqa: PLR2004
    running = [one for one in running if ended.isdisjoint(_keys_of(one, ports=False))]
    return tuple(running[-_MOST_RUNNING:])


def _may_end(call: Call) -> bool:
    if _STOPS.search(call.tool) or (call.command and _STOPS.search(call.command)):
        return not call.failed
    return call.command is None and _ENDED.search((call.result or "")[:_LOOKED_AT]) is not None


def _started(call: Call) -> Fact | None:
    command = call.command or ""
    flagged = any("background" in name and value is True for name, value in call.fields.items())
    if call.failed or not (flagged or (command and _IN_BACKGROUND.search(command))):
        return None
    printed = (call.result or "")[:_LOOKED_AT]
    keys = [*_JOB.findall(printed), *_ID_SAID.findall(printed)][:1]
    ports = dict.fromkeys("".join(found) for found in _PORT.findall(f"{command}\n{printed}"))
    notes = [*(f"id {key}" for key in keys), *(f"port {port}" for port in [*ports][:2])]
    parts = re.split(r"&&|;|\n", command)
    subject = next((part for part in parts if _IN_BACKGROUND.search(part)), command).strip()
    text = shortened(one_line(subject), _LONGEST_COMMAND) or call.name
    return Fact(f"{text} ({', '.join(notes)})" if notes else text, call.message)


def _named_in(text: str) -> frozenset[str]:
    return frozenset(_ANY_KEY.findall(text))


def _keys_of(one: Fact, *, ports: bool = True) -> frozenset[str]:
    return frozenset(key for pair in _KEY.findall(one.text) for key in pair[: 1 + ports] if key)


_CHECKING = re.compile(
    r"(?:py|unit)?tests?|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|check|lint|eslint|ruff"
    r"|flake8|mypy|pyright|tsc|clippy|vet|credo|typecheck|build|compile|verify|make|ninja"
    r"|gradlew?|mvn|msbuild|xcodebuild",
    re.IGNORECASE,
)
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9]+")
_FIRST_WORDS = 4
_SHOWS_TEXT = frozenset(
    {"awk", "cat", "cd", "diff", "echo", "find", "grep", "head", "ls", "rg", "sed", "sort", "tail"}
)
_RESULT = " => "
# What programs print of a test that failed, and of what it expected.
_ERROR_LINE = re.compile(
    r"^(?:FAILED .+|E\s+\S.*|\s*--- FAIL: .+|\s*[×✕●] .+|not ok \d+.*|AssertionError.*"
    r"|.*\berror(?:\[\w+\]|\s+[A-Z]+\d+)?: \S.*|\s*[\w./-]+\.\w+:\d+(?::\d+)?:? \S.*)$",
    re.MULTILINE,
)
_MOST_ERROR_LINES = 3


def checks_of(
    earlier: Iterable[Fact], calls: Iterable[Call], changes: Changes, cues: Cues
) -> tuple[Fact, ...]:
    """Return the last run of each test, lint and build: what came of it, and what was edited since.

    A check is a command, or a tool, that is named for testing, building or linting. A later run of
    the same program and subcommand takes the place of an earlier one. Of several commands any may
    be the one that failed, so a line of the result has to say that a check did.
    """
    checks = [(one, _keys_in(one.text.partition(_RESULT)[0])) for one in earlier]
    for call in calls:
        command = _check_in(call)
        if not command or call.result is None:
            continue
        keys = _keys_in(command)
        checks = [(one, its) for one, its in checks if its.isdisjoint(keys)]
        is_one = call.command is None or len(command_parts(call.command)) == 1
        error = error_in(call.result, cues, is_certain=is_one) if call.failed else ""
        if error or not call.failed:
            outcome = f"failed: {error}" if error else _passed(call, is_one=is_one)
            if outcome:
                checks.append((Fact(f"{command}{_RESULT}{outcome}", call.message), keys))
    return tuple(changed_after(one, changes) for one, _ in checks)[-_MOST_CHECKS:]


_EXIT_CODE = re.compile(r"\bexit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}0\b", re.IGNORECASE)
# A line that counts what was checked, or says that all is well.
_COUNTED = re.compile(
    r"\b\d+ (?:\w+ )?(?:passed|passing|(?:tests?|files?)(?![/\w]| changed))\b"
    r"|^ok\b|[Aa]ll checks|SUCCESS|[Ss]uccessful"
)
_LONGEST_COUNT = 120
# A line that only surrounds what was printed.
_FRAME = re.compile(r"<|.*:$|Wall time|\S+:\d+:")


def _passed(call: Call, *, is_one: bool) -> str:
    """Return what a result says that is not flagged as failed: its exit code, and its last line.

    Empty for a program that prints neither an exit code nor a count: nothing flags its commands.
    """
    result = call.result or ""
    end = result[-_LOOKED_AT:]
    lines = [one_line(line) for line in end.split("\n") if re.search(r"[A-Za-z]{2}", line)]
    said = [line for line in lines if not _EXIT_CODE.search(line) and not _FRAME.match(line)]
    counted = [line for line in said if _COUNTED.search(line)]
    if not (call.fields or counted or _EXIT_CODE.search(_ends_of(result))):
        return ""
    outcome = "exit code 0" if _EXIT_CODE.search(_ends_of(result)) else "no error flagged"
    # Of several commands any may have printed the last line.
    last = (counted or (said if is_one else []))[-1:]
    return f"{outcome}: {shortened(last[0], _LONGEST_COUNT)}" if last else outcome


Changes = Sequence[tuple[int, str]]
_AFTER, _MOST_AFTER = "; after it edited: ", 5


def changed_after(fact: Fact, changes: Changes) -> Fact:
    """Return the fact with the files that were changed after it."""
    text, _, before = fact.text.partition(_AFTER)
    paths = [path.rpartition("/")[2] for message, path in changes if message > fact.message]
    names = [*dict.fromkeys([*filter(None, before.split(", ")), *paths])][-_MOST_AFTER:]
    return fact._replace(text=f"{text}{_AFTER}{', '.join(names)}" if names else text)


_REDIRECTED = re.compile(r"\s+(?:\d?>\S+|(?:-{1,2}\w+[ =])?''+)(?=\s|$)")


def _check_in(call: Call) -> str:
    """Return the part of a call that checks something; empty if none does."""
    if call.command is None:
        named = any(map(_CHECKING.fullmatch, call.name_words))
        return shortened(call.name, _LONGEST_COMMAND) if named else ""
    parts = [one_line(part) for part in command_parts(call.command) if _checks(part)]
    command = _REDIRECTED.sub("", " && ".join(parts))
    return shortened(command, _LONGEST_COMMAND).replace(_RESULT, " ")


# What runs another program, which is what counts.
_RUNS = re.compile(r"(?:(?:env|sudo|time|npx|\w+=\S*|(?:\w+ )?(?:exec|run)(?: --)?)\s+)+")


def _checks(part: str) -> bool:
    part = _RUNS.sub("", part, count=1) if _RUNS.match(part) else part
    program, *others = (word.rpartition("/")[2] for word in part.split()[:_FIRST_WORDS])
    names = [*_PARTS_OF_NAME.split(program), *(word.rpartition(":")[2] for word in others)]
    return program not in _SHOWS_TEXT and any(map(_CHECKING.fullmatch, names))


def _keys_in(commands: str) -> frozenset[str]:
    return frozenset(map(_key_of, commands.split(" && ")))


def _key_of(command: str) -> str:
    """Return what makes two checks one: the program, and its first word that is not an option."""
    start = _RUNS.match(command)
    command = command[start.end() if start else 0 :]
    words = [word for word in command.split() if "=" not in word and not word.startswith("-")]
    program = words[0].rpartition("/")[2] if words else ""
    return program if _CHECKING.fullmatch(program) and program != "make" else " ".join(words[:2])


def error_in(text: str, cues: Cues, *, is_certain: bool) -> str:
    """Return the lines of a result that say what failed; the last if it is certain that it did."""
    end = text[-20 * _LONGEST_ERROR :]
    found = [one_line(one) for one in _ERROR_LINE.findall(end)][:_MOST_ERROR_LINES]
    if not found:
        lines = [line for line in end.split("\n") if line.strip()]
        said = [line for line in lines if EXCEPTION.search(line)][-1:]
        said = said or [line for line in lines if begins_failure(line, cues)]
        said = said or [line for line in lines if REPORTED.search(line)]
        said = said or ((lines or ["failed"])[-1:] if is_certain else [])
        found = [one_line(line) for line in said[:1]]
    return shortened(" / ".join(dict.fromkeys(found)), _LONGEST_ERROR)
