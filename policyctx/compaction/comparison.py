"""What a text lacks of a record: its orders, exact values, tasks and files.

The record is what the extractive summary holds of a history. A text says an order in its own words
if a line, or two in a row, has most of the words that the order is about, and a negation exactly
where the order has one. An exact value has to be there to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policyctx.compaction.extractive.fitting import Unit
from policyctx.compaction.extractive.languages import cues_of
from policyctx.compaction.extractive.texts import values_in
from policyctx.compaction.extractive.writing import Group
from policyctx.tokens.encoders import CJK

# A line says an order if it has this share of the words that the order is about.
_ENOUGH = 0.6
# So many lines in a row may say it together.
_TOGETHER = 2
_WORD = re.compile(r"[^\W_][\w'-]+")
_ENDING = re.compile(r"(?<=[a-z]{4})(?:ing|ed|es|ly|ion|ions|e)$")
_STATE = re.compile(r"^\[[^\]]*\](?: #\d+)? ")


def lacking(text: str, record: Iterable[Unit]) -> list[Unit]:
    """Return the units of a record that a text does not say, in their order.

    Of what somebody said only orders and exact values are looked for.
    """
    said = _Said.of(text)
    return [unit for unit in record if said.lacks(unit)]


@dataclass(frozen=True, slots=True)
class _Line:
    words: frozenset[str]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class _Said:
    """What a text says."""

    folded: str
    lines: Sequence[_Line]

    @classmethod
    def of(cls, text: str) -> _Said:
        lines = [line for line in text.split("\n") if line.strip()]
        runs = (
            " ".join(lines[i : i + count])
            for count in range(1, _TOGETHER + 1)
            for i in range(len(lines) - count + 1)
        )
        return cls(_plain(text), [_Line(_stems(run), _negates(run)) for run in runs])

    def lacks(self, unit: Unit) -> bool:
        """Return whether the text does not say what a unit says."""
        line = unit.text.partition("\n")[0].removeprefix("- ")
        if unit.group is Group.FILES:
            return not self._has(line.partition(": ")[0])
        if unit.group is Group.TASKS:
            return not self._tells(_STATE.sub("", line), negated=None)
        if any(not self._has(value) for value in values_in(line)):
            return True
        return unit.hard and not self._tells(line, negated=_negates(line))

    def _has(self, value: str) -> bool:
        plain = re.escape(_plain(value))
        return re.search(rf"(?<![\w.]){plain}(?!\w)", self.folded) is not None

    def _tells(self, line: str, *, negated: bool | None) -> bool:
        words = _stems(line)
        if not words:
            return _plain(line) in self.folded
        return any(
            negated in {None, one.is_negated} and len(words & one.words) >= _ENOUGH * len(words)
            for one in self.lines
        )


def _negates(text: str) -> bool:
    return cues_of().negations.found_in(text)


def _stems(text: str) -> frozenset[str]:
    """Return what a text is about: its words without their endings, and pairs of CJK characters."""
    cues = cues_of()
    bare = cues.negations.removed_from(
        cues.orders.removed_from(cues.revisions.removed_from(_plain(text)))
    )
    found = {_ENDING.sub("", word) for word in _WORD.findall(CJK.sub(" ", bare))}
    for run in re.findall(rf"(?:{CJK.pattern})+", bare):
        found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return frozenset(found)


def _plain(text: str) -> str:
    """Return the text without case, Markdown and runs of blanks; with commas out of numbers."""
    bare = re.sub(r"[`*\"“”]", "", text.casefold())
    return " ".join(re.sub(r"(?<=\d),(?=\d{3})", "", bare).split())
