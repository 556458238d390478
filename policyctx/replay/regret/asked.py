"""Which calls of tools ask again for what a result said before, and for which part of it.

A call asks again where its result says once more what an earlier result said, and nothing changed
in between that would make it news. A command that is run again after a change is run for its new
result, and other lines of a file are another part of it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from policyctx.replay.readers.source import value_of
from policyctx.replay.regret.strings import PATCH, Lines, Memo, Range
from policyctx.replay.timeline import Replies, SessionPart

# So many lines in a row that two results share are no chance; fewer are where there are no more.
_RUN = 3
# So much of a new result says what an old one said, if they are the same.
_SAME = 0.9
_HALF = 0.5

_DIGITS = re.compile(r"\d+")
_FILE_NAME = re.compile(r"[^\s/\\]+\.\w+|[^\s/\\]*[/\\]\S*")
_WRITING_KEY = re.compile(r"(?i)new|content|text|patch|diff|edit|replac|insert|body")
_WRITING_TOOL = re.compile(r"(?i)write|edit|create|replace|patch|insert|delete|rename|move|append")
_COMMAND_KEYS = ("command", "cmd", "script", "commands")
# Where a command runs; beside any other path, `command` names what a tool does: `view`.
_FOLDER_KEYS = frozenset({"workdir", "cwd", "working_directory", "dir"})
# Commands that only show what is there.
_READERS = frozenset(
    {"awk", "basename", "cat", "cd", "cut", "diff", "dirname", "echo", "egrep", "fd", "fgrep"}
    | {"file", "find", "grep", "head", "jq", "less", "ls", "nl", "pwd", "rg", "sed", "sort"}
    | {"stat", "tail", "tr", "tree", "type", "uniq", "wc", "which", "xargs"}
)
# Of a repository, they change nothing, but what they show is not only what they name.
_STATE_READERS = re.compile(
    r"(?:\S*/)?git\s+(?:-C\s+\S+\s+|--no-pager\s+|-c\s+\S+\s+)*"
    r"(?:log|show|diff|status|blame|grep|ls-files|rev-parse|describe|branch)\b"
)
_LINE_KEY = re.compile(r"(?i)line|offset|range|start|end|from")
_PRINTED = re.compile(r"\bsed\s+-n\s+[\"']?(\d+),\s?(\d+)p\b[\"']?(?:\s+(\S+))?")
# It writes one line between the parts of files.
_ONE_LINE = re.compile(r"\s*(?:echo|printf)\b")
# Lines that `sed` prints or changes.
_BY_SED = re.compile(r"(?<![\w.])(\d+)(?:,\s?(\d+))?(?:[pdaic]\b|s[^\w\s])")
_PATCHED = re.compile(r"^\*\*\* \w+ File: (.+)", re.MULTILINE)
_SLASHES = re.compile(r"[/\\]+")
# As `cat -n`, tools that read files and `grep -n` write them before a line.
_NUMBERED = re.compile(r"\s*\d+(?:[\t\u2192:|]|\s?\u2502)")
# A tool that gave a file before may say so instead of giving it again.
_UNCHANGED = re.compile(r"(?i)\b(?:unchanged|not (?:been )?(?:changed|modified))\b")
_SHORT = 400
# The folder in which the rest of a command runs is not a file that it names.
_ENTERED = re.compile(r"(?:^|&&|[;\n(])[^\S\n]*cd\s+[^\s;&)]+|\bgit\s+-C\s+\S+")
# What a host writes about a run before what it said.
_HEAD = re.compile(r"(?:[A-Z]\w*:? [^\n]*\n){1,6}Output:\n")
# Commands that may change any file: of a repository, or to format it.
_SWEEPING = re.compile(r"\bgit\b|fmt\b|(?<!-)\bformat\b|--(?:fix|write)\b")
_SEGMENTS = re.compile(r"\|\||&&|[|;\n]")
_REDIRECT = re.compile(r"(?<![0-9&=-])>>?\s*(?!/dev/null|&)\S|\bsed\s+(?:-\w+\s+)*-i|\btee\b")
_VARIABLE = re.compile(r"\w+=\S*$")


class AskedAgain(NamedTuple):
    """A call of a tool that asked for what an earlier result had said."""

    reply: int
    """The position of the call."""
    call: int
    """The number of the model's call that it is a reply to."""
    result: int
    """The position of the earlier result."""
    ranges: tuple[Range, ...]
    """Of the earlier result: what the call asked for again."""
    own: tuple[Range, ...]
    """Of these, what no newer result that was out has as well."""


class Input:
    """What a call of a tool was given; most of it is looked at only when somebody asks again."""

    def __init__(self, tool: str | None, text: str) -> None:
        try:
            given = value_of(text)
        except ValueError:
            given = None
        self._given: dict[str, object] = given if isinstance(given, dict) else {"": text}
        self._tool = tool or ""
        words = {key: value for key, value in self._given.items() if not _is_number(value)}
        self.numbers = frozenset(self._given.keys() - words.keys())
        """The fields that hold a number alone."""
        self.command = _command(self._given)
        """The command of a shell."""
        asked = _encode(words or self._given)
        self.asks = self._tool, asked if self.command is None else _DIGITS.sub("#", asked)
        """The tool, and the input without its numbers, which choose a part of the same thing."""

    @cached_property
    def exact(self) -> str:
        """The whole input."""
        return _encode(self._given)

    @cached_property
    def paths(self) -> frozenset[tuple[str, ...]]:
        """The parts of each path that the input names."""
        return frozenset(_paths(self._given, self.command))

    @cached_property
    def files(self) -> frozenset[str]:
        """The last parts of the paths that the input names."""
        return frozenset(path[-1] for path in self.paths)

    @cached_property
    def line_numbers(self) -> Sequence[int]:
        """The numbers of lines at which it begins or ends."""
        found = [
            one
            for key, value in self._given.items()
            if key in self.numbers and _LINE_KEY.search(key)
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, int)
        ]
        for pair in _BY_SED.findall((self.command or "").partition("sed")[2]):
            found += map(int, filter(None, pair))
        return found

    def line_of(self, file: str, number: int) -> int | None:
        """Return which line of its result is this one of a file, None where it does not say."""
        for name, before, numbers in self._printed:
            if number in numbers and name in {"", file}:
                return before + numbers.index(number) + 1
        return None

    @cached_property
    def _printed(self) -> Sequence[tuple[str, int, range]]:
        """The file, how many lines are printed before, and the numbers of each part it prints."""
        offset, limit = (self._given.get(key) for key in ("offset", "limit"))
        if isinstance(offset, int) and isinstance(limit, int):
            return [("", 0, range(offset, offset + limit))]
        found: list[tuple[str, int, range]] = []
        before = 0
        for segment in _SEGMENTS.split(self.command or ""):
            if (part := _PRINTED.search(segment)) is not None:
                numbers = range(int(part[1]), int(part[2]) + 1)
                name = _SLASHES.split((part[3] or "").strip("\"'"))[-1]
                found.append((name, before, numbers))
                before += len(numbers)
            elif _ONE_LINE.match(segment):
                before += 1
        return found

    @cached_property
    def only_shows(self) -> bool:
        """Whether its result is what the files that it names hold."""
        return bool(self.files) and not self.may_write and not self.is_run

    def names_file_of(self, other: Input) -> bool:
        """Whether both name a file of which one has the whole path, or the end of it."""
        return any(
            one[-len(path) :] == path[-len(one) :] for one in self.paths for path in other.paths
        )

    @cached_property
    def may_write(self) -> bool:
        """Whether it may change what it names."""
        if self.command is not None:
            return not _only_reads(self.command, also_state=True)
        if _WRITING_TOOL.search(self._tool) and len(self._given) > 1:
            return "\n" in self.exact or any(map(_WRITING_KEY.search, self._given))
        return PATCH in self.exact or any(
            _WRITING_KEY.search(key) and isinstance(value, str | list)
            for key, value in self._given.items()
        )

    @cached_property
    def is_run(self) -> bool:
        """Whether its result depends on more than what it names: a command that not only reads."""
        return self.command is not None and not _only_reads(self.command, also_state=False)

    def is_sweeping(self, state: Input) -> bool:
        """Whether it may change what a command shows of a repository, whatever files it names."""
        if self.command is not None and _SWEEPING.search(self.command):
            return True
        return not state.files and (self.command is None or bool(_REDIRECT.search(self.command)))


def asked_again(part: SessionPart, replies: Replies, memo: Memo) -> Iterator[AskedAgain]:
    """Yield what calls of tools asked for again while its newest result was out."""
    of_reply = dict(replies)
    yield from _Asking(part, memo).walked(of_reply)


class _Asking:
    def __init__(self, part: SessionPart, memo: Memo) -> None:
        self._part = part
        self._input, self._shown_in = memo.of(Input), memo.of(_Shown)
        self._inputs: dict[int, Input] = {}

    def walked(self, of_reply: Mapping[int, int]) -> Iterator[AskedAgain]:
        part = self._part
        same: dict[tuple[str, str], list[int]] = defaultdict(list)
        shown: dict[str, list[int]] = defaultdict(list)
        calls: list[int] = []
        for position, item in enumerate(part.items):
            if item.kind != "tool_call":
                continue
            given = self._inputs[position] = self._input(item.tool, item.text)
            call = of_reply.get(position)
            earlier = set(same[given.asks])
            same[given.asks].append(position)
            if given.only_shows:
                for file in given.files:
                    earlier.update(shown[file])
                    shown[file].append(position)
            if call is not None and earlier:
                yield from self._asked(position, call, sorted(earlier, reverse=True), calls)
            calls.append(position)

    def _asked(
        self, position: int, call: int, earlier: Sequence[int], calls: Sequence[int]
    ) -> Iterator[AskedAgain]:
        """Yield the results of earlier calls, the newest first, that would have served."""
        part, given = self._part, self._inputs[position]
        answer = part.partners.get(position)
        new = None if answer is None else self._shown(answer)
        gone: list[tuple[int, int]] = []
        there: list[tuple[int, int]] = []
        for asked in earlier:
            result = part.partners.get(asked)
            if result is None or result >= part.had(call):
                continue
            if given.asks == self._inputs[asked].asks or given.names_file_of(self._inputs[asked]):
                is_there = part.absence(result, call) is None
                (there if is_there else gone).append((asked, result))
        if not gone:
            return
        if new is None or new.says_unchanged:
            if not any(self._shared_unseen(*one, given) for one in there):
                yield from self._served(
                    position, call, gone, calls, lambda one, _: self._shared_unseen(*one, given)
                )
            return

        def shared(one: tuple[int, int], without: AbstractSet[str]) -> tuple[Range, ...]:
            asked, result = one
            old = self._shown(result).like(new)
            says = new.like(old)
            left = says.telling.difference(
                without, *(self._shown(result).like(says).telling for _, result in there)
            )
            is_exact = self._inputs[asked].exact == given.exact
            return old.shared(says, left, is_exact=is_exact, is_run=given.is_run)

        yield from self._served(position, call, gone, calls, shared)

    def _served(
        self,
        position: int,
        call: int,
        gone: Sequence[tuple[int, int]],
        calls: Sequence[int],
        shared: Callable[[tuple[int, int], AbstractSet[str]], tuple[Range, ...]],
    ) -> Iterator[AskedAgain]:
        """Yield those of the results that were out which say what is asked for, unchanged."""
        newer: set[str] = set()
        for asked, result in gone:
            ranges = shared((asked, result), frozenset())
            if not ranges or self._is_changed(asked, position, self._inputs[position], calls):
                continue
            if self._part.items[result].error:
                continue
            own = shared((asked, result), newer) if newer else ranges
            newer |= self._shown(result).telling
            yield AskedAgain(position, call, result, ranges, own)

    def _shared_unseen(self, asked: int, result: int, given: Input) -> tuple[Range, ...]:
        """Return what is asked for by a call without a result: the same, or a part of a whole."""
        earlier = self._inputs[asked]
        is_whole = earlier.asks == given.asks and not earlier.numbers and given.command is None
        is_same = is_whole or earlier.exact == given.exact
        return (self._shown(result).lines.whole(),) if is_same else ()

    def _is_changed(self, earlier: int, position: int, given: Input, calls: Sequence[int]) -> bool:
        """Whether a call in between may have changed what is asked for."""
        for between in reversed(calls):
            if between <= earlier:
                return False
            other = self._inputs[between]
            if between >= position or not other.may_write:
                continue
            if given.is_run and (given.may_write or other.is_sweeping(given)):
                return True
            if given.files & other.files:
                return True
            if other.command is not None and any(one in other.command for one in given.files):
                return True
        return False

    def _shown(self, result: int) -> _Shown:
        return self._shown_in(self._part.items[result].counted)


class _Shown:
    """The lines of a result, to be compared with those of another."""

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self._is_inside = (inside := _inside(text)) is not None
        self._said: Sequence[str] = self.lines.lines if inside is None else inside.splitlines()
        if (head := _HEAD.match(text)) is not None:
            about = head[0].count("\n")
            self._said = [*[""] * about, *self._said[about:]]

    @cached_property
    def telling(self) -> frozenset[str]:
        """The lines with at least one letter or digit."""
        return frozenset(line for line in self._said if any(map(str.isalnum, line)))

    @cached_property
    def says_unchanged(self) -> bool:
        """Whether it says only that the file is as it was read before."""
        text = self.lines.text
        return len(text) <= _SHORT and _UNCHANGED.search(text) is not None

    def like(self, other: _Shown) -> _Shown:
        """Return it with line numbers only if another result has them too."""
        return self._unnumbered if self._is_numbered and not other._is_numbered else self

    @cached_property
    def _is_numbered(self) -> bool:
        numbered = sum(_NUMBERED.match(line) is not None for line in self._said)
        return numbered >= _HALF * len(self._said)

    @cached_property
    def _unnumbered(self) -> _Shown:
        found = _Shown("")
        found.lines, found._is_inside = self.lines, self._is_inside
        found._said = [_NUMBERED.sub("", line, count=1) for line in self._said]
        return found

    def shared(
        self, new: _Shown, left: AbstractSet[str], *, is_exact: bool, is_run: bool
    ) -> tuple[Range, ...]:
        """Return the parts that a newer result says again, of those of its lines that are `left`.

        What was run again says the same only as a whole.
        """
        if not new.telling or not self.telling:
            return ()
        common = self.telling & left
        if is_run or is_exact:
            is_same = len(common) >= _SAME * max(len(new.telling), len(self.telling))
            if is_run or is_same:
                return (self.lines.whole(),) if is_same else ()
        wanted = min(_RUN, len(new.telling))
        if wanted < _RUN and len(common) < len(new.telling):
            return ()
        runs = [
            (first, last)
            for first, last, telling in self._runs(common)
            if telling >= wanted or telling >= _HALF * len(new.telling)
        ]
        if self._is_inside:
            return (self.lines.whole(),) if runs else ()
        return self.lines.joined(self.lines.between(first, last) for first, last in runs)

    def _runs(self, common: AbstractSet[str]) -> Iterator[tuple[int, int, int]]:
        """Yield the first and last line of each run of common lines, and how many tell."""
        first = last = telling = 0
        for number, line in enumerate(self._said, 1):
            if line in common:
                first, last, telling = first or number, number, telling + 1
            elif line in self.telling and first:
                yield first, last, telling
                first = telling = 0
        if first:
            yield first, last, telling


def _inside(text: str) -> str | None:
    """Return the one text of several lines in a result that is JSON on one line."""
    if not text.startswith(("{", "[")) or "\n" in text.strip():
        return None
    try:
        found = [said for _, said in _texts(value_of(text)) if "\n" in said]
    except ValueError:
        return None
    return found[0] if len(found) == 1 else None


_encode = json.JSONEncoder(sort_keys=True).encode


def _texts(given: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of an input, and the name of its field."""
    if isinstance(given, str):
        yield key, given
    elif isinstance(given, list):
        for one in given:
            yield from _texts(one, key)
    elif isinstance(given, dict):
        for name, one in given.items():
            yield from _texts(one, name)


def _is_number(value: object) -> bool:
    numbers = value if isinstance(value, list) and value else [value]
    return all(isinstance(one, int | float) for one in numbers)


def _command(given: Mapping[str, object]) -> str | None:
    """Return the command of a shell among the fields of an input, None where there is none."""
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return str(value[-1])
        if isinstance(value, str):
            others = (inner for other, inner in given.items() if other not in _FOLDER_KEYS)
            if " " in value or not any(map(_is_path, others)):
                return value
    return None


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "\n" not in value and _FILE_NAME.fullmatch(value) is not None


def _paths(given: Mapping[str, object], command: str | None) -> Iterator[tuple[str, ...]]:
    folders = _FOLDER_KEYS if command is not None else frozenset()
    said = [str(value) for key, value in given.items() if _is_path(value) and key not in folders]
    bare = [word.strip("\"'`;,()") for word in _ENTERED.sub(" ", command or "").split()]
    said += filter(_FILE_NAME.fullmatch, bare)
    for _, text in _texts(given):
        said += _PATCHED.findall(text) if PATCH in text else ()
    for path in said:
        parts = [part for part in _SLASHES.split(path) if part not in {"", "."}]
        if parts:
            yield tuple(parts)


def _only_reads(command: str, *, also_state: bool) -> bool:
    """Whether a command only shows what is there: files, and `also_state` of a repository."""
    if _REDIRECT.search(command) is not None:
        return False
    return all(
        _reads_files(segment) or (also_state and _STATE_READERS.match(segment.strip()) is not None)
        for segment in _SEGMENTS.split(command)
    )


def _reads_files(segment: str) -> bool:
    said = [word for word in segment.split() if not _VARIABLE.match(word)]
    return not said or said[0].lstrip("(").rsplit("/")[-1] in _READERS or said[0].startswith("#")
