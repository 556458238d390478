"""What failed: the line that says it, what was tested with which values, and what became of it.

A failure that was wanted tells nothing: a test that was written before the code, or what reproduces
an error. The agent says so beside the call or right after it. Where tests failed, the first of them
is named, with what it expected and what it got.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.digest import ToolFailure
from policyctx.compaction.extractive.sentences import one_line, shortened
from policyctx.compaction.extractive.statements import AGENT
from policyctx.compaction.extractive.work import (
    ABSOLUTE,
    CHANGED,
    EXCEPTION,
    LOOKED_AT,
    REPORTS,
    command_parts,
    files_of,
    shows_text,
    subject_of,
    tells_failure,
    words_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.work import Call

_LONGEST_ERROR = 240
# The label above what a program printed, which stands below what the tool says of it.
_PRINTED = re.compile(r"\s*(?:output|stdout|stderr):\s*", re.IGNORECASE)
# Words of a line that tells why something failed, if nothing else marks it.
_LEAST_WORDS = 3
_ONLY_EXIT = re.compile(r"\W*exit(?:ed)?[ _](?:with )?(?:code|status)\W{0,3}\d+\W*", re.IGNORECASE)
# A line that a compiler or a linter calls an error, with the place before it or not.
_ERROR_LINE = re.compile(r"(?:^|[\s:])(?:fatal )?error(?:\[\w+\]|\s+[A-Z]+\d+)?: \S")
# A line of a linter: the place and what is wrong there.
_LOCATED = re.compile(r"\s*[\w./-]+\.\w+:\d+(?::\d+)?:? (?!warning|note)\S")
# How programs name a test that failed: the group that is not None; `why` may be there as well.
_FAILED_TEST = re.compile(
    r"^(?:FAILED (?P<pytest>\S+?::\S.*?)(?: - (?P<why>.+))?"
    r"|(?:FAIL|ERROR): (?P<unittest>\w+ \([\w.]+\))"
    r"|\s*--- FAIL: (?P<go>\S+).*|\s*● (?P<jest>.+ \u203a .+)|\s*[×✕]\s+(?P<listed>[^\W\d].*)"
    r"|\s*FAIL\s+(?P<vitest>\S+\.(?:test|spec)\.\w+.*)|\s+\d+\) (?P<mocha>test \S.*|.+:)"
    r"|test (?P<rust>\S+) \.\.\. FAILED|not ok \d+ -? ?(?P<tap>.+)"
    r"|\[  FAILED  \] (?P<gtest>\w[\w/]*\.\w[\w/]*).*|rspec (?P<rspec>\./\S+:\d+.*)"
    r"|_{4,} (?P<header>\S.*?) _{4,})\s*$",
    re.MULTILINE,
)
# What was expected and what came, on two lines or on one.
_EXPECTED = re.compile(
    r"^\W*(?P<name>expected|want|wanted|left|actual|received|got|right)\b[\w ]{0,12}[:=]\s*"
    r"(?P<value>\S.*)",
    re.IGNORECASE | re.MULTILINE,
)
_PAIRED = 200
_ASSERTED = re.compile(
    r"^E\s+(?P<pytest>(?:assert\b|\w*(?:Error|Exception)\b).*)"
    r"|^\s*(?P<error>AssertionError\b:? ?\[?.*|Assertion failed:? .+|assertion .*failed.*)"
    r"|^\s*(?P<place>[\w./-]+\.\w+:\d+: (?:.*\b(?:want|expected|got)\b).*)",
    re.MULTILINE,
)


def error_in(text: str, cues: Cues) -> str:
    """Return the line of a failed result that tells most.

    That is the test that failed with its values, else the exception at the end of a traceback, else
    the first line that a compiler or a linter calls an error, else the last one that begins like a
    failure.
    """
    if test := _failed_test(text[-LOOKED_AT * 20 :]):
        return shortened(one_line(test), _LONGEST_ERROR)
    lines = [line for line in text[-LOOKED_AT * 20 :].split("\n") if line.strip()]
    printed = next((i for i, line in enumerate(lines) if _PRINTED.fullmatch(line)), -1)
    lines = lines[printed + 1 :] or lines
    line = (
        next((line for line in reversed(lines) if EXCEPTION.match(line, words_at(line))), None)
        or next((line for line in lines if _ERROR_LINE.search(line)), None)
        or next((line for line in reversed(lines) if tells_failure(line, cues)), None)
        or next((line for line in reversed(lines) if REPORTS.search(line)), None)
        or next((line for line in lines if _LOCATED.match(line)), None)
        or next((line for line in lines if _says_why(line)), None)
        or (lines[0] if lines else "failed")
    )
    return shortened(one_line(line), _LONGEST_ERROR)


def _failed_test(text: str) -> str:
    """Return the first test that failed, how many more did, and the values; empty without one."""
    names: dict[str, str] = {}
    for found in _FAILED_TEST.finditer(text):
        groups = {key: value for key, value in found.groupdict().items() if value and key != "why"}
        name = next(iter(groups.values())).rstrip(": ")
        # The header above a test's own report is only its name without the file.
        if "header" not in groups or not names:
            names[name] = found["why"] or names.get(name, "")
    if not names:
        return ""
    named = next(filter(None, ([n for n in names if sign in n] for sign in ("::", " \u203a ", ""))))
    values = _values_of(text) or names[named[0]]
    more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
    return f"{named[0]}{more}: {values}" if values else f"{named[0]}{more}"


def _values_of(text: str) -> str:
    """Return what the first test that failed expected and got."""
    asserted = _ASSERTED.search(text)
    line = next(filter(None, asserted.groups())).strip() if asserted else ""
    pairs = islice(_EXPECTED.finditer(text), 2)
    near = [one for one in pairs if not line or asserted is None or one.start() > asserted.start()]
    if len(near) == 2 and near[1].start() - near[0].end() < _PAIRED:  # noqa: PLR2004
        values = "; ".join(f"{one['name'].lower()}: {one['value'].strip(' ,')}" for one in near)
        return values if "=" in line or not line else f"{line}; {values}"
    return line


def _says_why(line: str) -> bool:
    return len(line.split()) >= _LEAST_WORDS and not _ONLY_EXIT.fullmatch(line)


# Files that a resolution names.
_MOST_FILES = 3
# Calls before the one that succeeded that are looked through for changes.
_MOSTLOOKED_AT = 40
_LONGEST_REASON = 240
# Sentences at the beginning and the end of a message that say what a call is for.
_FIRST_SENTENCES = 2


def failures_of(
    earlier: Iterable[ToolFailure], calls: Sequence[Call], said: Sequence[Said], cues: Cues
) -> tuple[ToolFailure, ...]:
    """Return the failures, those of earlier summaries first; one call with one error is one.

    A failure is resolved when the same call, by its name, succeeded later. How is told by what was
    changed in between and by what the agent `said` then; an error that comes back is open again.
    What was wanted to fail is left out.
    """
    failures = {(failure.call, failure.error): failure for failure in earlier}
    open_ones: dict[str, list[tuple[str, str]]] = {}
    for key, failure in failures.items():
        if not failure.resolved:
            open_ones.setdefault(_things_of(failure.call)[-1], []).append(key)
    failed_at: dict[str, int] = {}
    wanted = _Wanted(said, cues)
    for i, call in enumerate(calls):
        *others, thing = _things_of(call.name)
        if call.failed and wanted.has(call):
            continue
        if call.failed:
            key = (call.name, error_in(call.result or "", cues))
            before = failures.pop(key, ToolFailure(*key, times=0))
            failures[key] = before._replace(
                times=before.times + 1, resolved="", source=call.message
            )
            open_ones.setdefault(thing, []).append(key)
            failed_at[thing] = i
            continue
        succeeded = () if call.result is None else (*others, thing)
        for done in (one for one in succeeded if one in open_ones):
            how = _resolution(calls, failed_at.pop(done, 0), i, said)
            for key in open_ones.pop(done):
                failures[key] = failures[key]._replace(resolved=how)
    return tuple(failures.values())


class _Wanted:
    """What the agent wanted to fail: it says so beside the call, or first of all after it."""

    def __init__(self, said: Iterable[Said], cues: Cues) -> None:
        self._spoken: list[int] = []
        self._messages: dict[int, bool] = {}
        texts: dict[int, list[str]] = {}
        for one in said:
            if one.speaker == AGENT:
                texts.setdefault(one.message, []).append(one.text)
        for message, sentences in sorted(texts.items()):
            self._spoken.append(message)
            told = sentences[:_FIRST_SENTENCES] + sentences[-_FIRST_SENTENCES:]
            self._messages[message] = any(map(cues.wanted_failures.found_in, told))

    def has(self, call: Call) -> bool:
        """Whether a call that failed was wanted to; only programs are run for that."""
        if call.command is None:
            return False
        after = bisect_right(self._spoken, call.message)
        near = [call.message, *self._spoken[after : after + 1]]
        return any(self._messages.get(message, False) for message in near)


def _things_of(name: str) -> list[str]:
    """Return what a call tried by its name, so that another way to try it has the same name.

    Of several commands each is one; which of them failed is not known, and taken as the last.
    """
    tool, _, command = name.partition(" ")
    if not ABSOLUTE.match(command):
        parts = command_parts(command)
        ran = [part for part in parts if not shows_text(part) or part.startswith("git ")]
        if ran:
            return [f"{tool} {subject_of(part)}" for part in ran]
    return [name]


def _resolution(calls: Sequence[Call], start: int, end: int, said: Sequence[Said]) -> str:
    """Say how what failed with call `start` came to succeed with call `end`."""
    between = calls[max(start, end - _MOSTLOOKED_AT) : end]
    changed = [file.path for file in files_of((), between, {}) if file.last in CHANGED]
    after = f", after a change of {', '.join(changed[:_MOST_FILES])}" if changed else ""
    how = f"succeeded later{after}"
    reason = _reason(said, calls[start].message, calls[end].message)
    return f"{how}. {reason}" if reason else how


def _reason(said: Sequence[Said], first: int, last: int) -> str:
    """Return what the agent said last between two messages that tells a choice or a finding."""
    start = bisect_right(said, first, key=_message)
    for one in reversed(said[start : bisect_right(said, last, key=_message)]):
        if one.speaker == AGENT and one.tells and len(one.text) <= _LONGEST_REASON:
            return one.text
    return ""


def _message(said: Said) -> int:
    return said.message
