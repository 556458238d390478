"""What a model's summary lacks of the user's orders, limits and exact values, appended to it.

The lines come under a heading of their own, in room that the model was not told of, in the form of
the extractive summary, which reads them back in the next round.

They are compared with what the extractive summary holds of the history: an order sentence by
sentence, an exact value to the letter.
"""

from collections.abc import Iterable

from policyctx.compaction.assembly import History, Verified
from policyctx.compaction.comparison import Said
from policyctx.compaction.extractive.fitting import Unit
from policyctx.compaction.extractive.said import ASKED
from policyctx.compaction.extractive.summary import ranked_units
from policyctx.compaction.extractive.texts import values_in
from policyctx.compaction.extractive.writing import Group
from policyctx.tokens.encoders import words_in

HEADING = "## Not said above"

_LOOKED_FOR = (Group.USER, Group.EARLIER)


def lacking(text: str, record: Iterable[Unit]) -> list[Unit]:
    """Return the units of a record whose orders or exact values a text lacks, in their order."""
    said, lacked = Said(text), list[Unit]()
    for unit in record:
        line = unit.text.partition(ASKED)[0].removeprefix("- ")
        has_values = all(map(said.has, values_in(line)))
        if not has_values or (unit.hard and not said.says(line)):
            lacked.append(unit)
    return lacked


def units_of(history: History) -> list[Unit]:
    """Return what the user said, and what an earlier summary holds, the most important first.

    Of an earlier summary in other words than the extractive one's, only what binds is returned.
    """
    found = [unit for unit in ranked_units(history) if unit.group in _LOOKED_FOR]
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
