"""`extractive_summary`: what was gathered, fitted into the room and written under the sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.compaction.extractive.budget import first_words, fitted, room_for
from policyctx.compaction.extractive.cues import SHIPPED, cues_of
from policyctx.compaction.extractive.gathering import gathered
from policyctx.compaction.extractive.grammar import HEADING, NOTHING, entries_of
from policyctx.compaction.extractive.sections import Layout
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.compaction.extractive.cues import Language
    from policyctx.compaction.extractive.digest import Group
    from policyctx.compaction.extractive.grammar import Entry
    from policyctx.compaction.history import History
    from policyctx.policy.models.compaction import Summary


def extractive_summary(
    history: History, settings: Summary, languages: Sequence[Language] = SHIPPED
) -> str:
    """Return the summary of a history under a policy's `summary` settings.

    The same history gives the same text. It has at most `max_words` words, a CJK character being
    one, and the policy's sections. An earlier summary in the history is read back, not summarised
    again. `languages` are the tables of cues that rank what is said; a sentence in another language
    is ranked by who said it and its exact values alone.

    Raises `MessagesError` for what is no message list.
    """
    cues = cues_of(tuple(languages))
    digest, new_chars = gathered(history, cues)
    layout = Layout(settings.sections, cues)
    entries = [entry for entry in entries_of(digest) if layout.place_of(entry) is not None]
    room = room_for(settings.max_words, new_chars, tuple(history.earlier.values()))
    kept = fitted(entries, room, words_in(_text(layout, entries[:0])), cues)
    return first_words(_text(layout, kept), settings.max_words)


def _text(layout: Layout, entries: Sequence[Entry]) -> str:
    arranged = layout.arranged(entries)
    sections = [
        "\n".join([HEADING + name, *(_lines(arranged.get(place, ())) or [NOTHING])])
        for place, name in enumerate(layout.names)
    ]
    return "\n\n".join(sections or ["\n".join(_lines(arranged.get(0, ())) or [NOTHING])])


def _lines(entries: Sequence[Entry]) -> list[str]:
    return list(_labelled(entries))


def _labelled(entries: Sequence[Entry]) -> Iterator[str]:
    label: Group | None = None
    for entry in entries:
        if entry.group is not label:
            label = entry.group
            yield str(label)
        yield entry.text
