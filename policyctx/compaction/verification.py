"""What a model's summary lacks of the user's orders, limits and exact values, appended to it.

The lines come under a heading of their own, in room that the model was not told of, in the form of
the extractive summary, which reads them back in the next round.

They are compared with what the extractive summary holds of the history. A text says an order in its
own words if a line, or two in a row, has most of the words that the order is about, and a negation
exactly where the order has one. An exact value has to be there to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policyctx.compaction.assembly import History, Verified
from policyctx.compaction.comparison import negates, plain, stems_of
from policyctx.compaction.extractive.fitting import Unit
from policyctx.compaction.extractive.said import ASKED
from policyctx.compaction.extractive.summary import ranked_units
from policyctx.compaction.extractive.texts import values_in
from policyctx.compaction.extractive.writing import Group
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.encoders import words_in

# A line says an order if it has this share of the words that the order is about.
_ENOUGH = 0.6
# So many lines in a row may say it together.
_TOGETHER = 2
_STATE = re.compile(r"^\[[^\]]*\](?: #\d+)? ")


def lacking(text: str, record: Iterable[Unit]) -> list[Unit]:
    """Return the units of a record that a text does not say, in their order.

    Of what somebody said only orders and exact values are looked for.
    """
    said = Said.of(text)
    return [unit for unit in record if said.lacks(unit)]


@dataclass(frozen=True, slots=True)
class _Line:
    words: frozenset[str]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Said:
    """What a text says."""

    folded: str
    lines: Sequence[_Line]

    @classmethod
    def of(cls, text: str) -> Said:
        """Return what a text says."""
        lines = [line for line in text.split("\n") if line.strip()]
        runs = (
            " ".join(lines[i : i + count])
            for count in range(1, _TOGETHER + 1)
            for i in range(len(lines) - count + 1)
        )
        return cls(plain(text), [_Line(stems_of(run), negates(run)) for run in runs])

    def lacks(self, unit: Unit) -> bool:
        """Return whether the text does not say what a unit says."""
        line = unit.text.partition(ASKED)[0].removeprefix("- ")
        if unit.group is Group.FILES:
            return not self.has(line.partition(": ")[0])
        if unit.group is Group.TASKS:
            return not self.tells(_STATE.sub("", line), negated=None)
        if any(not self.has(value) for value in values_in(line)):
            return True
        return unit.hard and not self.tells(line, negated=negates(line))

    def has(self, value: str) -> bool:
        """Return whether the text has a value to the letter, in any case and without Markdown."""
        escaped = re.escape(plain(value))
        return re.search(rf"(?<![\w.]){escaped}(?!\w)", self.folded) is not None

    def tells(self, line: str, *, negated: bool | None, enough: float = _ENOUGH) -> bool:
        """Return whether lines in a row say what a line says, by this share of its words.

        `negated` is whether they have a negation, None if that does not matter.
        """
        words = stems_of(line)
        if not words:
            return plain(line) in self.folded
        return any(
            negated in {None, one.is_negated} and len(words & one.words) >= enough * len(words)
            for one in self.lines
        )


HEADING = "## Not said above"

_LOOKED_FOR = (Group.USER, Group.EARLIER)


def units_of(history: History, settings: Summary) -> list[Unit]:
    """Return what the user said, and what an earlier summary holds, the most important first.

    Of an earlier summary in other words than the extractive one's, only what binds is returned.
    """
    found = [unit for unit in ranked_units(history, settings) if unit.group in _LOOKED_FOR]
    wanted = (unit for unit in found if unit.hard or unit.user)
    return sorted(wanted, key=lambda unit: not unit.hard)


def verified(
    summary: str, units: Iterable[Unit], most_words: int, beside: Iterable[str] = ()
) -> Verified:
    """Return the summary, with the lines of `units` that it lacks, in `most_words` words more.

    `beside` are texts that will be beside the summary: it need not say them. `units` come in the
    order of their importance. Those that neither bind nor hold an exact value are not looked for.
    """
    missing = lacking("\n".join([summary, *beside]), units)
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
