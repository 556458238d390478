"""What a model's summary lacks: orders, limits and exact values of the user.

The extractive summary finds them by the structure of the history. What the model's text does not
say is appended under a heading of its own, in room that the model was not told of. The lines have
the form of the extractive summary, which reads them back in the next round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.cues import cues_of
from policyctx.compaction.extractive.digest import Group
from policyctx.compaction.extractive.languages import SHIPPED
from policyctx.compaction.extractive.revisions import subject_words
from policyctx.compaction.extractive.statements import values_in
from policyctx.compaction.extractive.summary import ranked_units
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.compaction.assembly import History
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.ranking import Unit
    from policyctx.policy.models.compaction import Summary

HEADING = "## Not said above"

# The share of the words asked for that is reserved.
_RESERVED = Fraction(15, 100)
# A line says what the user said if it has this share of the words that a sentence is about.
_ENOUGH = 0.6
# So many lines in a row may say it together.
_TOGETHER = 2

# The endings of a word of which enough is left.
_ENDING = re.compile(r"(?<=[a-z]{4})(?:ing|ed|es|ly|ion|ions|e)$")

_LOOKED_FOR = (Group.TOLD, Group.CARRIED)

_NEGATED = re.compile(
    r"\b(?:not|never|no|nor|without|avoid\w*|forb[ia]\w*|stop|refrain|except|unless|prohibit\w*"
    r"|off[- ]limits|hands off|cannot|exclud\w*|leave \w+ (?:alone|as is|untouched))\b|n't\b"
    r"|[不别勿禁无非]|没有|严禁|除了|除非",
    re.IGNORECASE,
)


def units_of(history: History, settings: Summary) -> list[Unit]:
    """Return what the user said, and what an earlier summary holds, the most important first.

    Of an earlier summary in other words than the extractive one's, only what binds is returned.
    """
    cues = cues_of(SHIPPED)
    found = [
        unit._replace(hard=unit.hard or _binds(unit.text, cues))
        for unit in ranked_units(history, settings)
        if unit.group in _LOOKED_FOR
    ]
    wanted = (unit for unit in found if unit.hard or unit.group is Group.TOLD)
    return sorted(wanted, key=lambda unit: not unit.hard)


def _binds(text: str, cues: Cues) -> bool:
    """Return whether a line has the words of an order or a limit."""
    return cues.orders.found_in(text) or _NEGATED.search(text) is not None


class Verified(NamedTuple):
    """A summary that was compared with the extractive one."""

    text: str
    appended: int
    """Lines that the summary lacked and that were appended."""
    left_out: int
    """Lines that it lacked, and for which there was no room."""


def reserved(words: int) -> int:
    """Return how many of a summary's words are kept free for what a model's text lacks."""
    return int(words * _RESERVED)


def verified(
    summary: str, units: Iterable[Unit], most_words: int, beside: Iterable[str] = ()
) -> Verified:
    """Return the summary, with the lines of `units` that it lacks, in `most_words` words more.

    `beside` are texts that will be beside the summary: it need not say them. `units` come in the
    order of their importance. Those that neither bind nor hold an exact value are not looked for.
    """
    said = _Said.of("\n".join([summary, *beside]), cues_of(SHIPPED))
    missing = [unit for unit in units if said.lacks(unit)]
    left = most_words - words_in(HEADING) - sum(words_in(group) for group in _LOOKED_FOR)
    taken: dict[Group, list[str]] = {group: [] for group in _LOOKED_FOR}
    for unit in missing:
        words = words_in(unit.text)
        if words <= left:
            taken[unit.group].append(unit.text)
            left -= words
    count = sum(map(len, taken.values()))
    if not count:
        return Verified(summary, 0, len(missing))
    lines = [line for group, texts in taken.items() if texts for line in (str(group), *texts)]
    text = "\n".join([f"{summary.rstrip()}\n\n{HEADING}", *lines])
    return Verified(text, count, len(missing) - count)


@dataclass(frozen=True, slots=True)
class _Line:
    words: frozenset[str]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class _Said:
    """What a summary says."""

    folded: str
    lines: Sequence[_Line]
    cues: Cues

    @classmethod
    def of(cls, summary: str, cues: Cues) -> _Said:
        lines = [line for line in summary.split("\n") if line.strip()]
        runs = (
            " ".join(lines[i : i + count])
            for count in range(1, _TOGETHER + 1)
            for i in range(len(lines) - count + 1)
        )
        read = [_Line(_stems(run, cues), bool(_NEGATED.search(run))) for run in runs]
        return cls(_plain(summary), read, cues)

    def lacks(self, unit: Unit) -> bool:
        """Return whether the summary does not say what a unit says."""
        statement = unit.text.partition("\n")[0].removeprefix("- ")
        values = [value.text for value in values_in(statement)]
        if any(not self._has(value) for value in values):
            return True
        return unit.hard and not self._tells(statement)

    def _has(self, value: str) -> bool:
        plain = re.escape(_plain(value))
        return re.search(rf"(?<![\w.]){plain}(?!\w)", self.folded) is not None

    def _tells(self, statement: str) -> bool:
        """Return whether a line is about the same and has a negation where the statement has."""
        words = _stems(statement, self.cues)
        is_negated = bool(_NEGATED.search(statement))
        if not words:
            return _plain(statement) in self.folded
        return any(
            line.is_negated == is_negated and len(words & line.words) >= _ENOUGH * len(words)
            for line in self.lines
        )


def _stems(text: str, cues: Cues) -> frozenset[str]:
    """Return what a text is about, its words without their endings."""
    return frozenset(_ENDING.sub("", word) for word in subject_words(text, cues))


def _plain(text: str) -> str:
    """Return the text without case, Markdown and runs of blanks; with commas out of numbers."""
    bare = re.sub(r"[`*\"“”]", "", text.casefold())
    return " ".join(re.sub(r"(?<=\d),(?=\d{3})", "", bare).split())
