"""What the compactions of a recorded session lost, and what later turns show of it.

The points of all messages before a compaction are compared with everything that the first request
after it held, which is more than the summary: messages that were kept, files that came back. A
point that an earlier compaction lost counts there alone. What only its provider can read is never
counted as lost.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from policyctx.compaction.assembly import History
from policyctx.compaction.comparison import plain, stems_of
from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.extractive.files import Call, calls_in, command_parts, files_of
from policyctx.compaction.extractive.languages import cues_of
from policyctx.compaction.extractive.said import is_unreadable, quotes_in
from policyctx.compaction.extractive.texts import one_line, shortened
from policyctx.compaction.points import HistoryPoint, PointKind, Seen, points_of
from policyctx.definitions.items import Item, Message, author_of
from policyctx.messages.reading import Reading, items_of
from policyctx.policy.models.compaction import Summary
from policyctx.replay.recording import Recording

EXTRACTIVE = "extractive"
# Characters of a call that is shown.
_LONGEST = 160
# Programs whose second word says what they do, behind what a shell takes before a command.
_WITH_COMMANDS = re.compile(
    r"(?:[(){}!\s]|\w+=\S*\s|(?:if|then|else|do|while|sudo|env|time|exec|nohup|timeout \S+)\s)*+"
    r"(?:\S*/)?((?:apt(?:-get)?|brew|cargo|docker|gh|git|go|helm|kubectl|make|npm|pip|pnpm|poetry"
    r"|terraform|uv|yarn)\s.*)"
)
# The beginnings of words that do not say what is forbidden.
_LITTLE = frozenset(("an", "any", "branch", "in", "it", "of", "on", "run", "the", "to", "use"))
_LEAST_WORDS = 2
# Options before the second word: of one letter most take the next word as their value.
_TAKES_VALUE = re.compile(r"-[^-gikqsvy]")

How: TypeAlias = Literal["before", "said again", "read again", "done"]


@dataclass(frozen=True, slots=True)
class Later:
    """What the user said or the agent did later on what a point is about."""

    how: How
    """`before` is said before the compaction; all others come after it."""
    call: int
    """The first call, from 1, whose request has it."""
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A point that the first request after a compaction lacks."""

    kind: PointKind
    text: str
    """The quotation, the task, or the path."""
    call: int
    """The first call, from 1, whose request had it."""
    at: float | None
    """When that call was made, in seconds since 1970."""
    values: tuple[str, ...] = ()
    """The exact values that are missing."""
    state: str = ""
    later: tuple[Later, ...] = ()

    @property
    def is_missed(self) -> bool:
        """Whether a later turn shows that it was missed."""
        return any(one.how != "before" for one in self.later)


@dataclass(frozen=True, slots=True)
class AuditedCompaction:
    """One compaction, compared with what was before it."""

    call: int
    """The first call after it, from 1."""
    at: float | None
    replaced: int
    """The messages that were there before and not after it."""
    points: Mapping[str, int]
    """How many points of each kind there were before it."""
    findings: tuple[Finding, ...]
    """Those that are missing, in their order; none if the summary cannot be read."""
    is_unreadable: bool = False
    beside: int = 0
    """Points that are there beside a summary that cannot be read."""

    def missing(self, kind: str) -> int:
        """Return how many points of a kind are missing."""
        return sum(one.kind == kind for one in self.findings)

    @property
    def missed(self) -> int:
        """How many of them a later turn shows."""
        return sum(one.is_missed for one in self.findings)


@dataclass(frozen=True, slots=True)
class AuditedSession:
    """The compactions of one recorded session."""

    name: str
    format: str
    path: str
    project: str
    calls: int
    compactions: tuple[AuditedCompaction, ...]


def audited(recording: Recording, path: str, *, by: str = "") -> AuditedSession:
    """Return what the compactions of the recording at `path` lost.

    `by` is a text that is compared in place of each summary, or `extractive` for the summary that
    needs no model; empty for what the host wrote.
    """
    session = _AllMessages(recording)
    found = tuple(session.compaction(cut, by) for cut in session.cuts)
    calls = len(recording.calls)
    return AuditedSession(recording.name, recording.format, path, recording.project, calls, found)


def conversation_of(recording: Recording) -> list[Message]:
    """Return all messages that were not taken back, in order; of a compaction those before it."""
    session = _AllMessages(recording)
    found = (session.messages[position] for position in session.alive)
    return [message for message in found if not _is_summary(message)]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a compaction is in the order of all messages."""

    call: int
    """Its position among the calls."""
    before: tuple[int, ...]
    """The positions of all messages before it that were not taken back."""
    since: int
    """How many of these were there at the compaction before."""
    end: int
    """The position of the first message that came later than the request after it."""


class _AllMessages:
    """All messages of a recording, each once, in the order in which they came."""

    def __init__(self, recording: Recording) -> None:
        self._calls = recording.calls
        self.messages: list[Message] = []
        self._at: list[int] = []
        """By message, the number of the first call with it."""
        self._known: dict[int, int] = {}
        """By the identity of a message, its position."""
        self.alive: list[int] = []
        """The positions of those that were not taken back."""
        self.cuts: list[_Cut] = []
        since, kept = 0, {-1}
        for number, call in enumerate(recording.calls, 1):
            if call.why_anew == "compaction":
                self._take(call.left, number)
                before, earlier, since = tuple(self.alive), since, len(self.alive)
                kept = {-1, *before}
                self._take(call.new, number)
                self.cuts.append(_Cut(number - 1, before, earlier, len(self.messages)))
                continue
            if call.anew:
                # What it goes on from stays, as what there was before the compaction does.
                again = [self._known.get(id(one), -1) for one in call.new]
                self.alive[since:] = [one for one in again if one not in kept]
            self._take(call.new, number)
        self._take(recording.after, len(recording.calls) + 1)
        self._later: _LaterTurns | None = None
        self._lost: set[str] = set()
        """The texts of the points that the compactions so far lost."""

    def _take(self, new: Iterable[Message], call: int) -> None:
        for message in new:
            if id(message) not in self._known:
                self._known[id(message)] = len(self.messages)
                self.alive.append(len(self.messages))
                self.messages.append(message)
                self._at.append(call)

    def compaction(self, cut: _Cut, by: str) -> AuditedCompaction:
        """Return what a compaction lost."""
        call = self._calls[cut.call]
        said = [position for position in cut.before if not _is_summary(self.messages[position])]
        points = points_of(History([self.messages[position] for position in said]))
        if self._lost:
            newer = {*cut.before[cut.since :]}
            since = [self.messages[one] for one in said if one in newer]
            again = {point.text for point in points_of(History(since))}
            points = [one for one in points if one.text in again or one.text not in self._lost]
        after = items_of(call.new)
        text = _text(after, call.system)
        unreadable = not by and any(map(is_unreadable, after))
        if by:
            kept = (one for one in after if one.author != "summary" and not is_unreadable(one))
            text = f"{self._other(cut, by)}\n{_text(kept, call.system)}"
        seen = Seen(text)
        missing = [point for point in points if seen.lacks(point)]
        self._lost = (self._lost - {point.text for point in points}) | {
            point.text for point in missing if not unreadable
        }
        new = {id(message) for message in call.new}
        return AuditedCompaction(
            cut.call + 1,
            call.at,
            sum(id(self.messages[one]) not in new for one in cut.before[cut.since :]),
            dict(Counter(str(point.kind) for point in points)),
            () if unreadable else tuple(self._finding(one, said, seen, cut) for one in missing),
            unreadable,
            len(points) - len(missing) if unreadable else 0,
        )

    def _other(self, cut: _Cut, by: str) -> str:
        if by != EXTRACTIVE:
            return by
        return extractive_summary(History([self.messages[one] for one in cut.before]), Summary())

    def _finding(self, point: HistoryPoint, said: Sequence[int], seen: Seen, cut: _Cut) -> Finding:
        position = said[point.message]
        call = self._at[position]
        if self._later is None:
            self._later = _LaterTurns(self.messages, self._at)
        lacked = seen.lacked_values(point)
        at = self._calls[call - 1].at if call <= len(self._calls) else None
        later = tuple(self._later.of(point, lacked, position, cut.end))
        return Finding(point.kind, point.text, call, at, lacked, point.state, later)


class _LaterTurns:
    """What the user said and the agent called in a whole session."""

    def __init__(self, messages: Sequence[Message], at: Sequence[int]) -> None:
        reading = Reading(messages=messages)
        summaries = frozenset(i for i, one in enumerate(messages) if _is_summary(one))
        quotes = quotes_in(History(messages), reading, summaries)
        typed = (one for one in quotes if one.user and not one.pasted)
        self._said = [(one, Seen(one.text)) for one in typed]
        self._calls = list(calls_in(reading, summaries, cues_of()))
        self._at = at

    def of(
        self, point: HistoryPoint, lacked: Sequence[str], position: int, end: int
    ) -> Iterator[Later]:
        """Yield what came later on what a point is about; from `end` on, after the compaction."""
        about = replace(point, kind=PointKind.VALUE, values=(*lacked,)) if lacked else point
        for one, seen in self._said:
            # The same words before the compaction say nothing more.
            is_new = one.message >= end or one.text != point.text
            is_later = one.message > position and is_new
            if is_later and (seen.is_on_the_same(about) or seen.is_on_the_same(point)):
                how: How = "before" if one.message < end else "said again"
                yield Later(how, self._at[one.message], one.text)
        calls = (call for call in self._calls if call.message >= end)
        if point.kind is PointKind.FILE:
            found = (call for call in calls if _reads(call, point.text))
            how = "read again"
        else:
            found = (call for call in calls if point.forbids and _does(call, point))
            how = "done"
        for call in found:
            subject = shortened(one_line(call.path or call.command or ""), _LONGEST)
            yield Later(how, self._at[call.message], f"{call.tool} {subject}")
            return


def _reads(call: Call, path: str) -> bool:
    return any(file.state == "read" and file.path == path for file in files_of((), [call], {}))


def _does(call: Call, point: HistoryPoint) -> bool:
    """Whether a call changes a file, or runs a command, that a prohibition names."""
    if call.failed:
        return False
    changed = [file.path for file in files_of((), [call], {}) if file.is_changed]
    ran = command_parts(call.command or "")
    clauses = point.forbidden
    values = [one for one in point.values if any(plain(one) in clause for clause in clauses)]
    return (
        any(f"/{path}".endswith(f"/{value}") for value in values for path in changed)
        or any(one.startswith(value) for value in values if " " in value for one in ran)
        # Whether a condition holds, nobody sees here.
        or (
            not cues_of().conditions.found_in(point.text)
            and any(_is_run(clause, one) for clause in clauses for one in ran)
        )
    )


def _is_run(clause: str, command: str) -> bool:
    """Whether the command of a program has all words of a clause that forbids it."""
    wanted, found = stems_of(clause) - _LITTLE, _WITH_COMMANDS.match(command)
    if len(wanted) < _LEAST_WORDS or found is None:
        return False
    words = [word.lstrip("-") for word in re.split(r"[\s:=()]+", found[1])]
    named = stems_of(" ".join(_names(found[1].split()))) & wanted
    if not named or "dry-run" in words:
        return False
    return wanted <= stems_of(" ".join(filter(str.isalnum, words)))


def _names(words: Sequence[str]) -> Iterator[str]:
    """Yield a program, and the words behind its options, one of which says what it does.

    A word behind a long option may be its value or not.
    """
    yield words[0]
    before = ""
    for word in words[1:]:
        is_option = word[0] in "-+"
        if not is_option and not _TAKES_VALUE.fullmatch(before):
            yield word
            if not before.startswith("--") or before.startswith("--no-") or "=" in before:
                return
        before = word if is_option else ""


def _is_summary(message: Message) -> bool:
    return author_of(message) == "summary"


def _text(items: Iterable[Item], system: object) -> str:
    texts = [item.text for item in items]
    return "\n".join([*texts, *_system(system)])


def _system(system: object) -> Iterator[str]:
    if isinstance(system, str):
        yield system
    for block in system if isinstance(system, list) else ():
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            yield block["text"]
