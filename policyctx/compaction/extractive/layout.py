"""Where the entries of a summary stand: the sections of a policy, and the labels of groups.

The words of a section's name decide what it holds, so a policy may rename, reorder, split or omit
sections:

1. Each kind of content (requests and decisions, files, tools, status, errors) goes into the section
   whose name has most of the words of that kind, the first of equals. Where two sections are named
   for requests and decisions, the user's words go into the first and the rest into the last.
2. A section with any other name gets the statements about the words of its name and its `ask`.
3. A kind without a section goes into the first section with a name of its own. Without such a
   section, requests, status and errors go into the first section; files and tools are omitted.

A section that holds nothing is not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import HEADING, Group, label_of
from policyctx.compaction.extractive.revisions import subject_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import DigestEntry, LeftOut
    from policyctx.compaction.extractive.ranking import Unit
    from policyctx.policy.models.compaction import SummarySection

_ASKED = (Group.TOLD, Group.PASTED, Group.AGENT, Group.FOUND, Group.CARRIED)
_BY_USER = (Group.TOLD, Group.PASTED)
_STATUS = (
    Group.REPOSITORY, Group.RUNNING, Group.CHECKS, Group.REPORT, Group.TASKS, Group.DONE,
    Group.NEXT, Group.OPEN,
)  # fmt: skip
_FILES = (Group.FILES, Group.EDITS)


class SummaryLine(NamedTuple):
    """A line of a summary, or an entry of several lines; a heading or a label has no unit."""

    text: str
    unit: Unit | None = None
    """Where the line comes from; the text of the last unit in rank may be shortened."""


class Layout:
    """The places of groups and statements in a policy's sections."""

    def __init__(self, sections: Sequence[SummarySection], cues: Cues) -> None:
        self.names = tuple(section.name for section in sections)
        self._cues = cues
        kinds = {
            _ASKED: cues.goals,
            _FILES: cues.files,
            (Group.TOOLS,): cues.tools,
            _STATUS: cues.status,
            (Group.FAILURES,): cues.errors,
        }
        hits = {
            groups: [len(pattern.findall(name)) for name in self.names]
            for groups, pattern in kinds.items()
        }
        self._own = {
            i: subject_words(f"{section.name} {section.ask}", cues)
            for i, section in enumerate(sections)
            if not any(counts[i] for counts in hits.values())
        }
        self._places: dict[Group, int | None] = {}
        for groups, counts in hits.items():
            self._places |= dict.fromkeys(groups, self._place(groups, counts))
        asked = [i for i, count in enumerate(hits[_ASKED]) if count and count == max(hits[_ASKED])]
        if len(asked) > 1:
            self._places |= dict.fromkeys(_BY_USER, asked[0])
            self._places |= dict.fromkeys(_ASKED[len(_BY_USER) :], asked[-1])

    def _place(self, groups: tuple[Group, ...], counts: Sequence[int]) -> int | None:
        if any(counts):
            return counts.index(max(counts))
        if self._own:
            return min(self._own)
        left_out = groups in {_FILES, (Group.TOOLS,)} and self.names
        return None if left_out else 0

    def place_of(self, entry: DigestEntry | Unit) -> int | None:
        """Return the position of the section that an entry goes into; None for none."""
        if entry.group in _ASKED and self._own:
            words = subject_words(entry.text, self._cues)
            best = max(self._own, key=lambda i: len(words & self._own[i]))
            if words & self._own[best]:
                return best
        return self._places[entry.group]

    def heading(self, place: int) -> str:
        """Return the line above a section; empty where the policy has no sections."""
        return HEADING + self.names[place] if self.names else ""

    def lines(self, units: Iterable[Unit], left_out: LeftOut) -> Iterator[SummaryLine]:
        """Yield the lines of a summary of these units, section by section, in their order."""
        sections: dict[int, list[Unit]] = {}
        for unit in sorted(units, key=lambda one: one.place):
            if (place := self.place_of(unit)) is not None:
                sections.setdefault(place, []).append(unit)
        for i, place in enumerate(sorted(sections)):
            if i:
                yield SummaryLine("")
            if heading := self.heading(place):
                yield SummaryLine(heading)
            yield from _labelled(sections[place], left_out)


def _labelled(units: Sequence[Unit], left_out: LeftOut) -> Iterator[SummaryLine]:
    label: Group | None = None
    for unit in units:
        if unit.group is not label:
            label = unit.group
            yield SummaryLine(label_of(label, left_out))
        yield SummaryLine(unit.text, unit)
