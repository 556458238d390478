"""Where the work stands, as calls and results say: tasks, repository, processes, checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
_COMMIT = re.compile(r"^\[(\S+)(?: \([^)\n]*\))? ([0-9a-f]{7,40})\] ([^\n]*)", re.MULTILINE)
_PUSHED = re.compile(
    r"(?:[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}|\[new (?:branch|tag)\])\s+\S+\s+->\s+\S+"
)
_MAKES_REQUEST = re.compile(r"\bcreate\b|\bgit push\b")
_LINK = re.compile(r"https?://[^\s<>\"'()]+/(?:pull|pulls|issues|merge_requests)/\d+")


def repository_of(earlier: Iterable[Fact], calls: Sequence[Call]) -> tuple[Fact, ...]:
    """Return the branch, the last commits, the last push, and the requests that calls opened."""
    branch: list[Fact] = []
    kept: dict[str, dict[str, Fact]] = {"commit": {}, "pushed": {}, "link": {}}
    for one in earlier:
        if one.text.startswith(_BRANCH):
            branch = [one]
        else:
            kind = one.text.partition(" ")[0]
            kept[kind if kind in kept else "link"][one.text] = one
    for call in calls:
        command, printed = call.command, _ends_of(call.result or "")
        if command is not None and "git" in command and not call.failed:
            named = [one or other for one, other in _BRANCH_SAID.findall(printed)]
            for name in named or _BRANCH_MADE.findall(command)[-1:]:
                branch = [Fact(_BRANCH + name, call.message)]
            for name, commit, subject in _COMMIT.findall(printed):
                text = shortened(one_line(f"commit {commit} on {name}: {subject}"), _LONGEST_LINE)
                kept["commit"][text] = Fact(text, call.message)
            if "git push" in command and (pushed := _PUSHED.search(printed)) is not None:
                kept["pushed"] = {"": Fact(f"pushed {one_line(pushed[0])}", call.message)}
        if "create" in call.name_words or (command and _MAKES_REQUEST.search(command)):
            for link in _LINK.findall(printed):
                kept["link"][link] = Fact(link, call.message)
    commits, links = [*kept["commit"].values()], [*kept["link"].values()]
    return (*branch, *commits[-_MOST_COMMITS:], *kept["pushed"].values(), *links[-_MOST_LINKS:])


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
_KEY = re.compile(r"\bid ([^\s,)]+)|\bport (\d+)")
_ENDED = re.compile(r"completed|exited|finished|killed|stopped|not running", re.IGNORECASE)


def running_of(earlier: Iterable[Fact], calls: Sequence[Call]) -> tuple[Fact, ...]:
    """Return what was started in the background and that no later call is known to have ended."""
    running = list(earlier)
    for call in calls:
        if running and _may_end(call):
            by_name = _KILLS_BY_NAME.search(call.command or "")
            running = [one for one in running if not (by_name or _names_key_of(call, one))]
        if (started := _started(call)) is not None:
            # What takes the port, or the id, takes the place of what was there.
            keys = _keys_of(started.text)
            running = [
                one for one in running if one.text != started.text and not keys & _keys_of(one.text)
            ]
            running.append(started)
    return tuple(running[-_MOST_RUNNING:])


def _may_end(call: Call) -> bool:
    if _STOPS.search(call.tool) or (call.command and _STOPS.search(call.command)):
        return not call.failed
    return call.command is None and _ENDED.search((call.result or "")[:_LOOKED_AT]) is not None


def _names_key_of(call: Call, one: Fact) -> bool:
    return any(
        re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", call.text) for key in _keys_of(one.text)
    )


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


def _keys_of(text: str) -> frozenset[str]:
    return frozenset(key for pair in _KEY.findall(text) for key in pair if key)


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


def checks_of(earlier: Iterable[Fact], calls: Iterable[Call], cues: Cues) -> tuple[Fact, ...]:
    """Return the tests, lints and builds whose last run failed, each with the lines that say why.

    A check is a command, or a tool, that is named for testing, building or linting. A later run of
    the same program and subcommand takes the place of an earlier one. Of several commands any may
    be the one that failed, so a line of the result has to say that a check did.
    """
    failing = [(one, _keys_in(one.text.partition(_RESULT)[0])) for one in earlier]
    for call in calls:
        command = _check_in(call)
        if not command or call.result is None:
            continue
        keys = _keys_in(command)
        failing = [(one, its) for one, its in failing if its.isdisjoint(keys)]
        is_one = call.command is None or len(command_parts(call.command)) == 1
        error = error_in(call.result, cues, is_certain=is_one) if call.failed else ""
        if error:
            failing.append((Fact(f"{command}{_RESULT}{error}", call.message), keys))
    return tuple(one for one, _ in failing)[-_MOST_CHECKS:]


def _check_in(call: Call) -> str:
    """Return the part of a call that checks something; empty if none does."""
    if call.command is None:
        named = any(map(_CHECKING.fullmatch, call.name_words))
        return shortened(call.name, _LONGEST_COMMAND) if named else ""
    parts = [one_line(part) for part in command_parts(call.command) if _checks(part)]
    return shortened(" && ".join(parts), _LONGEST_COMMAND).replace(_RESULT, " ")


def _checks(part: str) -> bool:
    program, *others = (word.rpartition("/")[2] for word in part.split()[:_FIRST_WORDS])
    names = [*_PARTS_OF_NAME.split(program), *(word.rpartition(":")[2] for word in others)]
    return program not in _SHOWS_TEXT and any(map(_CHECKING.fullmatch, names))


def _keys_in(commands: str) -> frozenset[str]:
    return frozenset(map(_key_of, commands.split(" && ")))


def _key_of(command: str) -> str:
    """Return what makes two checks one: the program, and its first word that is not an option."""
    words = [word for word in command.split() if "=" not in word and not word.startswith("-")]
    program = words[0].rpartition("/")[2] if words else ""
    return program if _CHECKING.fullmatch(program) and program != "make" else " ".join(words[:2])


def error_in(text: str, cues: Cues, *, is_certain: bool) -> str:
    """Return the lines of a result that say what failed; the last if it is certain that it did."""
    end = text[-20 * _LONGEST_ERROR :]
    found = [one_line(one) for one in _ERROR_LINE.findall(end)][:_MOST_ERROR_LINES]
    if not found:
        lines = [line for line in end.split("\n") if line.strip()]
        last = reversed(lines)
        said = next((line for line in last if EXCEPTION.search(line)), None)
        said = said or next((line for line in lines if begins_failure(line, cues)), None)
        said = said or next((line for line in lines if REPORTED.search(line)), None)
        said = said or (is_certain and (lines[-1] if lines else "failed")) or ""
        found = [one_line(said)]
    return shortened(" / ".join(dict.fromkeys(found)), _LONGEST_ERROR)
