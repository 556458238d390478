"""Which section of the summary each group of lines goes into.

A section is known by the words of its name: a policy may rename, reorder, split or leave out.

1. Each kind of content (what was asked and decided, files, tools, status, errors) goes into the
   section whose name has the most of that kind's words, the first of equals. Where two sections are
   named for what was asked and decided, the user's words go into the first, the rest into the last.
2. A section with a name of its own gets the statements about the words of its name and its `ask`.
3. A kind that no section is named for goes into the first section with a name of its own, else what
   was asked, the status and the errors go into the first section; files and tools are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.compaction.extractive.digest import Group
from policyctx.compaction.extractive.revisions import subject_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.grammar import Entry
    from policyctx.policy.models.compaction import SummarySection

_ASKED = (Group.TOLD, Group.PASTED, Group.AGENT, Group.FOUND, Group.CARRIED)
_BY_USER = (Group.TOLD, Group.PASTED)
_STATUS = (Group.DONE, Group.NEXT, Group.OPEN)


class Layout:
    """The places of groups and statements in a policy's sections."""

    def __init__(self, sections: Sequence[SummarySection], cues: Cues) -> None:
        self.names = tuple(section.name for section in sections)
        self._cues = cues
        kinds = {
            _ASKED: cues.goals,
            (Group.FILES,): cues.files,
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
        left_out = groups in {(Group.FILES,), (Group.TOOLS,)} and self.names
        return None if left_out else 0

    def place_of(self, entry: Entry) -> int | None:
        """Return the position of the section that an entry goes into; None for none."""
        if entry.group in _ASKED and self._own:
            words = subject_words(entry.text, self._cues)
            best = max(self._own, key=lambda i: len(words & self._own[i]))
            if words & self._own[best]:
                return best
        return self._places[entry.group]

    def arranged(self, entries: Sequence[Entry]) -> Mapping[int, list[Entry]]:
        """Return the entries by section, in their order; those that no section is for are out."""
        arranged: dict[int, list[Entry]] = {}
        for entry in entries:
            if (place := self.place_of(entry)) is not None:
                arranged.setdefault(place, []).append(entry)
        return arranged
