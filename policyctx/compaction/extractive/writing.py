"""How a summary is written, and how it is read back.

    ## Goals & Decisions                  a heading, as the policy names it
    User, in order:    the label of a group
    - Keep these:      an entry, or the first line of a message
      a.py             its next line, which is under the line before it
    - [agent] Done.    of the agent, `[agent, 9 calls ago]` if calls came after it

The reader goes by labels, so the names that a policy gives its sections do not matter. A line in
another form was written by someone else and is returned as left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from policyctx.compaction.extractive.files import FileState, listed
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.texts import GAP, one_line
from policyctx.policy.models.compaction import SummarySection


class Group(StrEnum):
    """The groups of lines, each with its label in a summary, in the order of writing.

    The labels are how a summary knows its own: they never change with a policy. What the agent said
    has no label: it is between the user's messages, with a mark.
    """

    USER = "User and [agent], in order:"
    AGENT = "agent"
    EARLIER = "Earlier summary: as things stood then"
    FILES = "Files, changed first:"
    TASKS = "Tasks that were open when the agent last wrote its list:"
    STEPS = "Commands, in order, the last run of each:"
    RESULTS = "What other calls showed, as it was then, the newest last:"

    @property
    def label(self) -> str:
        """The line above it."""
        return str(Group.USER if self is Group.AGENT else self)


# Who speaks under one label: the agent, the user.
SAID = (Group.AGENT, Group.USER)
_LABELS = {group.label: group for group in Group if group is not Group.AGENT}
_LEFT_OUT = re.compile(r"Left out: (?:\d+ )?lines? of the user(?:; archives? (?P<archives>.+))?\.")
_MOST_ARCHIVES = 3

HEADING = "## "
NOTHING = "None."
ENTRY, NOTE = "- ", " "
# The mark of what the agent said, and of what it said before a call.
MARK = re.compile(r"^\[agent(?P<works>, while working)?(?:, (?P<ago>\d+) calls ago)?\] ")
_FILE = re.compile(r"(.+): (edited|written|deleted|staged|read)")
# The beginning of the line of the files that were changed before the last commit.
BEFORE_COMMIT = "Edited before the last commit: "


def with_archive(left_out: Sequence[str], archive: str) -> tuple[str, ...]:
    """Return what holds the lines that were left out, with one more archive."""
    return (*dict.fromkeys((*left_out, *filter(None, (archive,)))),)


def left_out_line(archives: Sequence[str]) -> str:
    """Return the line that says that lines of the user had no room, with what holds them."""
    names = [*archives]
    names = names if len(names) <= _MOST_ARCHIVES else [names[0], "…", names[-1]]
    return f"Left out: lines of the user; archive{'s' * (len(names) > 1)} {', '.join(names)}."


Entry: TypeAlias = "Quote | FileState"


class Contents(NamedTuple):
    """Everything that a summary can hold, each group in the order in which it is written."""

    said: Mapping[Group, Sequence[Quote]]
    """What was said, and what was read from calls, without the files."""
    files: tuple[FileState, ...] = ()
    left_out: tuple[str, ...] = ()
    """The archives with lines of the user that had no room in this summary or those before it."""

    def of(self, group: Group) -> Sequence[Entry]:
        """Return the entries of a group that a summary may have."""
        return listed(self.files) if group is Group.FILES else self.said.get(group, ())


def written(one: Entry, group: Group) -> str:
    """Return an entry of a group as it is written."""
    if isinstance(one, FileState):
        path = one_line(one.path)
        return ENTRY + (f"{BEFORE_COMMIT}{path}" if one.is_committed else f"{path}: {one.state}")
    if group is not Group.AGENT:
        return f"{ENTRY}{one_line(one.text)}"
    # One call is what most words announce.
    ago = f", {one.ago} calls ago" if one.ago > 1 else ""
    return f"{ENTRY}[agent{', while working' * one.working}{ago}] {one_line(one.text)}"


class ReadBack(NamedTuple):
    """What was read: the contents, and the text that is none of its lines."""

    contents: Contents
    left_over: str


def read_back(text: str) -> ReadBack:
    """Read the text of a summary; any text will do."""
    found: dict[Group, list[Quote]] = {group: [] for group in Group}
    left_over: list[str] = []
    group: Group | None = None
    known, entries = False, 1
    left_out: tuple[str, ...] = ()
    for line in text.split("\n"):
        more = _LEFT_OUT.fullmatch(line)
        if line in _LABELS or more is not None:
            known, group = True, _LABELS.get(line, Group.USER)
            if more is not None:
                left_out = tuple(filter(None, (more["archives"] or "").split(", ")))
        elif known and line.startswith(ENTRY):
            entries += 1
            if group is not None:
                one = _quote(group, line.removeprefix(ENTRY), -entries)
                group = SAID[one.user] if group in SAID else group
                found[group].append(one)
        elif known and line.startswith(NOTE):
            if group is not None and found[group]:
                last, bare = found[group][-1], line.lstrip()
                depth = (len(line) - len(bare)) // len(NOTE) - 1
                one = _quote(group, bare.removeprefix(GAP), last.message)
                one = last._replace(text=one.text, pasted=one.pasted, depth=depth)
                one = one._replace(gap=int(bare.startswith(GAP)))
                found[group].append(one)
        else:
            known = False
            if line.strip() not in ("", NOTHING):
                left_over.append(line)
    kept = [line for line in left_over if not line.startswith(HEADING)]
    if kept and not any(found.values()):
        return ReadBack(Contents({}), text)
    states = (one for quote in found.pop(Group.FILES) for one in _files_in(quote.text))
    return ReadBack(Contents(found, tuple(states), left_out), "\n".join(kept))


def _files_in(line: str) -> Iterator[FileState]:
    if line.startswith(BEFORE_COMMIT):
        paths = line.removeprefix(BEFORE_COMMIT).split(", ")
        yield from (FileState(path, "edited", is_committed=True) for path in paths)
    elif found := _FILE.fullmatch(line):
        paths = found[1].split(", ") if found[2] == "read" else [found[1]]
        yield from (FileState(path, found[2]) for path in paths)


def _quote(group: Group, line: str, message: int) -> Quote:
    mark = MARK.match(line) if group in SAID else None
    text = line[mark.end() if mark else 0 :]
    one = Quote(text, message, group in SAID and not mark, text[:1] + text[-1:] == "[]")
    return one._replace(working=bool(mark["works"]), ago=int(mark["ago"] or 0)) if mark else one


_ASKED_FOR = (Group.USER, Group.AGENT, Group.EARLIER)
_STATUS = (Group.TASKS, Group.STEPS, Group.RESULTS)
# Words in the names of sections, in English, Chinese, German and French.
_NAMES_OF = {
    _ASKED_FOR: re.compile(
        r"\b(?:goals?|decisions?|requirements|instructions|constraints|request|intent|preferences"
        r"|rules|objective|facts|context|user|ziele?|entscheidungen|anforderungen|vorgaben"
        r"|objectifs|décisions|exigences)\b|目标|决策|决定|需求|要求|指令|约束|偏好|规则|用户|背景"
    ),
    (Group.FILES,): re.compile(
        r"\b(?:files?|code|paths|artifacts|datei(?:en)?|fichiers)\b|文件|代码|路径"
    ),
    _STATUS: re.compile(
        r"\b(?:status|tasks?|progress|next|current|pending|todo|open|work|state|plan|steps|stand"
        r"|aufgaben?|nächste|état|tâches|statut)\b|状态|任务|进度|进展|下一步|待办|当前|计划"
    ),
}


class Layout:
    """The sections that groups are written in, by the words of the sections' names.

    Each kind of content goes into the section whose name has most of the words of that kind, the
    first of equals; what no section is named for into the first one.
    """

    def __init__(self, sections: Sequence[SummarySection]) -> None:
        self.names = tuple(section.name for section in sections)
        self._places: dict[Group, int] = {}
        for groups, words in _NAMES_OF.items():
            counts = [len(set(words.findall(name.casefold()))) for name in self.names]
            self._places |= dict.fromkeys(groups, counts.index(max(counts)) if counts else 0)

    def place_of(self, group: Group) -> int:
        """Return the position of the section that an entry goes into."""
        return self._places[group]

    def heading(self, place: int) -> str:
        """Return the line above a section; empty where the policy has no sections."""
        return HEADING + self.names[place] if self.names else ""
