"""`extractive_summary`: gather the contents of a history, fit them to a limit, write the sections.

The words of a section's name decide what it holds, so a policy may rename, reorder, split or omit
sections:

1. Each kind of content (requests and decisions, files, tools, status, errors) goes into the section
   whose name has most of the words of that kind, the first of equals. Where two sections are named
   for requests and decisions, the user's words go into the first and the rest into the last.
2. A section with any other name gets the statements about the words of its name and its `ask`.
3. A kind without a section goes into the first section with a name of its own. Without such a
   section, requests, status and errors go into the first section; files and tools are omitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.budget import first_words, fitted, room_for
from policyctx.compaction.extractive.cues import SHIPPED, cues_of
from policyctx.compaction.extractive.digest import (
    HEADING,
    NOTHING,
    Digest,
    Group,
    Statement,
    entries_of,
    read_summary,
)
from policyctx.compaction.extractive.progress import findings_of, status_of
from policyctx.compaction.extractive.revisions import Told, revised, subject_words
from policyctx.compaction.extractive.sentences import sentences_in
from policyctx.compaction.extractive.statements import AGENT, USER, said_in, values_in
from policyctx.compaction.extractive.work import calls_in, counted, failures_of, files_of
from policyctx.messages.reading import Reading
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.compaction.assembly import History
    from policyctx.compaction.extractive.cues import Cues, Language
    from policyctx.compaction.extractive.digest import DigestEntry
    from policyctx.compaction.extractive.statements import Said
    from policyctx.policy.models.compaction import Summary, SummarySection

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

    def place_of(self, entry: DigestEntry) -> int | None:
        """Return the position of the section that an entry goes into; None for none."""
        if entry.group in _ASKED and self._own:
            words = subject_words(entry.text, self._cues)
            best = max(self._own, key=lambda i: len(words & self._own[i]))
            if words & self._own[best]:
                return best
        return self._places[entry.group]

    def arranged(self, entries: Sequence[DigestEntry]) -> Mapping[int, list[DigestEntry]]:
        """Return the entries by section, in their order; those that no section is for are out."""
        arranged: dict[int, list[DigestEntry]] = {}
        for entry in entries:
            if (place := self.place_of(entry)) is not None:
                arranged.setdefault(place, []).append(entry)
        return arranged


# The agent's sentences that are told of: of this weight or more, and the heaviest only.
_LEAST_WEIGHT, _MOST_SENTENCES = 1.0, 80


class GatheredContents(NamedTuple):
    """What was found in a history."""

    digest: Digest
    new_chars: int
    """Characters that no earlier compaction has written."""


def gathered(history: History, cues: Cues) -> GatheredContents:
    """Return all that a history holds; raises `MessagesError` for what is no message list."""
    reading = Reading(history.shapes)
    reading.extend(history.messages)
    skipped = frozenset(history.earlier) | history.written
    items = [item for item in reading.items if item.message not in skipped]
    calls = list(calls_in(reading, skipped, cues))
    said = list(said_in(items, cues))
    read = {i: read_summary(text) for i, text in sorted(history.earlier.items())}
    before = _joined([found.digest for found in read.values()])
    left_over = [
        Statement(sentence.text)
        for found in read.values()
        for sentence in sentences_in(found.left_over)
    ]
    status = status_of(before, items, said, calls, cues)
    standing = revised(_told({i: found.digest for i, found in read.items()}, said), cues)
    results = [item for item in items if item.kind == "tool_result"]
    digest = Digest(
        told=tuple(one.statement for one in standing if one.user),
        pasted=_once([*before.pasted, *(one.statement for one in said if one.pasted)]),
        agent=tuple(one.statement for one in standing if not one.user),
        found=_once([*before.found, *findings_of(results, said, calls, cues)]),
        carried=_once([*before.carried, *left_over]),
        files=files_of(before.files, calls, history.reads_file),
        tools=counted(before.tools, calls),
        done=status.done,
        next=status.next,
        open=status.open,
        failures=failures_of(before.failures, calls, said, cues),
    )
    return GatheredContents(digest, sum(len(item.counted) for item in items))


def _joined(digests: Sequence[Digest]) -> Digest:
    """Return several digests as one; where the work stands is what the last of them says."""
    if len(digests) <= 1:
        return digests[0] if digests else Digest()
    return Digest(
        pasted=tuple(one for digest in digests for one in digest.pasted),
        found=tuple(one for digest in digests for one in digest.found),
        carried=tuple(one for digest in digests for one in digest.carried),
        files=tuple(one for digest in reversed(digests) for one in digest.files),
        tools=tuple(one for digest in digests for one in digest.tools),
        done=digests[-1].done,
        next=digests[-1].next,
        open=tuple(one for digest in digests for one in digest.open),
        failures=tuple(one for digest in digests for one in digest.failures),
    )


def _told(earlier: Mapping[int, Digest], said: Sequence[Said]) -> list[Told]:
    """Return what user and agent said, in order; what an earlier summary holds is at its place."""
    placed = [
        (place, Told(statement, -1, user, values_in(statement.text)))
        for place, digest in earlier.items()
        for user, statements in ((True, digest.told), (False, digest.agent))
        for statement in statements
    ]
    weights = ((one.weight, one) for one in said if one.speaker == AGENT)
    heavy = [pair for pair in weights if pair[0] >= _LEAST_WEIGHT]
    heaviest = sorted(heavy, key=lambda pair: -pair[0])[:_MOST_SENTENCES]
    worth = {id(one) for _, one in heaviest}
    placed += [
        (one.message, Told(one.statement, one.message, one.speaker == USER, one.values))
        for one in said
        if (one.speaker == USER and not one.pasted) or id(one) in worth
    ]
    return [told for _, told in sorted(placed, key=lambda pair: pair[0])]


def _once(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements, those with one text once, where it stands last."""
    latest: dict[str, Statement] = {}
    for statement in statements:
        latest.pop(statement.text, None)
        latest[statement.text] = statement
    return tuple(latest.values())


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


def _text(layout: Layout, entries: Sequence[DigestEntry]) -> str:
    arranged = layout.arranged(entries)
    sections = [
        "\n".join([HEADING + name, *(_lines(arranged.get(place, ())) or [NOTHING])])
        for place, name in enumerate(layout.names)
    ]
    return "\n\n".join(sections or ["\n".join(_lines(arranged.get(0, ())) or [NOTHING])])


def _lines(entries: Sequence[DigestEntry]) -> list[str]:
    return list(_labelled(entries))


def _labelled(entries: Sequence[DigestEntry]) -> Iterator[str]:
    label: Group | None = None
    for entry in entries:
        if entry.group is not label:
            label = entry.group
            yield str(label)
        yield entry.text
