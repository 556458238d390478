"""What was checked last, with its result, and the text of the last edits.

A check is a command, or a tool, that is named for testing, building or linting. A later run takes
the place of an earlier one of the same program and subcommand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.failures import error_in
from policyctx.compaction.extractive.sentences import one_line, shortened
from policyctx.compaction.extractive.work import (
    command_parts,
    shows_text,
    subject_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.places import Places
    from policyctx.compaction.extractive.work import Call

_MOST_CHECKS, _MOST_EDITS = 4, 5
_LONGEST_COMMAND, _LONGEST_RESULT, _LONGEST_EDIT = 100, 160, 240
# Of a result only the end is looked through.
_LOOKED_AT = 4_000
_FIRST_WORDS = 4
_NAMED_FOR_CHECKING = re.compile(
    r"(?:py|unit)?tests?|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|check|lint|eslint|ruff"
    r"|flake8|mypy|pyright|tsc|clippy|vet|credo|dialyzer|typecheck|build|compile|verify|make|ninja"
    r"|gradlew?|mvn|msbuild|xcodebuild",
    re.IGNORECASE,
)
_WITH_TARGETS = frozenset(
    {"make", "ninja", "gradle", "gradlew", "mvn", "msbuild", "xcodebuild", "ruff"}
)
# Programs that only prepare what another one checks.
_PREPARES = frozenset(
    {"rm", "mkdir", "cp", "mv", "touch", "chmod", "ln", "kill", "pkill", "install"}
)
_PARTS_OF_NAME = re.compile(r"[^A-Za-z0-9]+")
_PROGRAM = re.compile(r"(?:\w+=\S*\s+)*[a-z0-9_./~-]+(?:\s+[^\s,;]+)*$")
_TOTALS = re.compile(
    r"\b\d+ (?:passed|passing|failed|failing|failures?|errors?|warnings?|tests?|issues?|problems?)"
    r"\b|^(?:ok|PASS|FAIL|FAILED)\b|\bpassed\b|\bBUILD [A-Z]+|\bno (?:issues|problems|errors)\b",
    re.IGNORECASE,
)
_RESULT, _STALE, _FAILED = " => ", " (before the last edit)", "failed: "
_OLD = re.compile(r"old|search|before|original|find", re.IGNORECASE)
_REDIRECTED = re.compile(r"\s*\d?>&?\s*\S+")
# Lines of a file that was written whole and is shown all the same.
_MOST_LINES_WRITTEN = 6


def checks_of(
    earlier: Iterable[Statement],
    calls: Sequence[Call],
    changed: Sequence[Sequence[str]],
    cues: Cues,
) -> tuple[Statement, ...]:
    """Return the last run of each check with its result, those of earlier summaries first.

    `changed` has for each call the files that it changed, of those that a check may read.
    """
    checks = {_keys_of(one.text.partition(_RESULT)[0]): one for one in earlier}
    for call, paths in zip(calls, changed, strict=True):
        if (command := _check_in(call)) and call.result is not None:
            keys = _keys_of(command)
            checks = {old: one for old, one in checks.items() if not old <= keys}
            text = f"{command}{_RESULT}{_result_of(call, cues)}"
            checks[keys] = Statement(text, source=call.message)
        elif paths:
            checks = {keys: _stale(one) for keys, one in checks.items()}
    return tuple(checks.values())[-_MOST_CHECKS:]


def _stale(one: Statement) -> Statement:
    return one if one.text.endswith(_STALE) else one._replace(text=one.text + _STALE)


def _check_in(call: Call) -> str:
    """Return the part of a call that checks something; empty if none does."""
    if call.command is None:
        named = any(_NAMED_FOR_CHECKING.fullmatch(word) for word in call.tool_words)
        return shortened(call.name, _LONGEST_COMMAND) if named else ""
    parts = [part for part in command_parts(call.command) if _checks(part)]
    said = " && ".join(one_line(_REDIRECTED.sub("", part)) for part in parts)
    return shortened(said, _LONGEST_COMMAND).replace(_RESULT, " = > ")


def _checks(part: str) -> bool:
    if shows_text(part) or not _PROGRAM.match(part):
        return False
    program, *others = (word.rpartition("/")[2] for word in part.split()[:_FIRST_WORDS])
    names = [*_PARTS_OF_NAME.split(program), *(word.rpartition(":")[2] for word in others)]
    return program not in _PREPARES and any(map(_NAMED_FOR_CHECKING.fullmatch, names))


def _keys_of(command: str) -> frozenset[str]:
    return frozenset(map(_key_of, command_parts(command)))


def _key_of(part: str) -> str:
    """Return what makes two checks one: the program, with a subcommand or target if it has any."""
    subject = subject_of(part)
    program = subject.partition(" ")[0]
    is_one_check = _NAMED_FOR_CHECKING.fullmatch(program) and program not in _WITH_TARGETS
    return program if is_one_check else subject


def _result_of(call: Call, cues: Cues) -> str:
    printed = call.result or ""
    if call.failed:
        return shortened(_FAILED + error_in(printed, cues), _LONGEST_RESULT)
    lines = [line for line in printed[-_LOOKED_AT:].split("\n") if line.strip()]
    totals = (line for line in reversed(lines) if _TOTALS.search(line))
    line = next(totals, lines[-1] if lines else "no output")
    return shortened(one_line(line), _LONGEST_RESULT)


def edits_of(
    earlier: Iterable[Statement],
    calls: Iterable[Call],
    changed: Iterable[Sequence[str]],
    restored: Iterable[str],
    places: Places,
) -> tuple[Statement, ...]:
    """Return the new text of the last edit of each file, of the files edited last.

    `changed` has for each call the files that it changed; `restored` are the paths of files that
    come back whole. Files outside of the `places` of the work are left out.
    """
    edits = {one.text.partition(": ")[0]: one for one in earlier}
    for call, paths in zip(calls, changed, strict=True):
        for path in paths:
            edits.pop(path, None)
        if len(paths) == 1 and call.path is not None and (text := _new_text(call)):
            said = f"{paths[0]}: {shortened(text, _LONGEST_EDIT)}"
            edits[paths[0]] = Statement(said, source=call.message)
    shown = set(restored)
    return tuple(
        one for path, one in edits.items() if path not in shown and not places.is_outside(path)
    )[-_MOST_EDITS:]


def _new_text(call: Call) -> str:
    """Return the lines that an edit put into a file, as one line."""
    texts = {
        name: value
        for name, value in call.fields.items()
        if isinstance(value, str) and value != call.path
    }
    old = {line for name, text in texts.items() if _OLD.search(name) for line in text.split("\n")}
    new = [text for name, text in texts.items() if not _OLD.search(name)]
    lines = max(new, key=len, default="").split("\n")
    if not old and len(lines) > _MOST_LINES_WRITTEN:
        return ""
    return " / ".join(_said(lines, old))


def _said(lines: Iterable[str], old: set[str]) -> Iterator[str]:
    yield from (one_line(line) for line in lines if line.strip() and line not in old)
