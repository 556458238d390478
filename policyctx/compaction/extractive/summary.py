"""`extractive_summary`: gather the contents of a history, rank them, and write what there is room
for.

`ranked_units` gives all contents in one order, the one that is kept longest first. A summary is a
prefix of that order, written in sections and in the order of the conversation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from policyctx.compaction.extractive.budget import (
    Fitted,
    chars_limit,
    fitted,
    tokens_limit,
    words_limit,
)
from policyctx.compaction.extractive.checks import checks_of, edits_of
from policyctx.compaction.extractive.cues import cues_of
from policyctx.compaction.extractive.digest import (
    NOTHING,
    Digest,
    FileRead,
    Group,
    LeftOut,
    Statement,
    entries_of,
    read_summary,
)
from policyctx.compaction.extractive.failures import failures_of
from policyctx.compaction.extractive.foreign import read_foreign
from policyctx.compaction.extractive.languages import SHIPPED
from policyctx.compaction.extractive.layout import Layout, SummaryLine
from policyctx.compaction.extractive.objections import objected
from policyctx.compaction.extractive.outdated import up_to_date
from policyctx.compaction.extractive.outside import repository_of, running_of
from policyctx.compaction.extractive.places import places_of
from policyctx.compaction.extractive.progress import findings_of, status_of
from policyctx.compaction.extractive.ranking import ranked
from policyctx.compaction.extractive.references import resolved
from policyctx.compaction.extractive.reports import closed_of, still_true
from policyctx.compaction.extractive.revisions import Told, revised
from policyctx.compaction.extractive.sentences import sentences_in, shortened
from policyctx.compaction.extractive.statements import (
    AGENT,
    PROGRAM,
    USER,
    Said,
    said_in,
    values_in,
)
from policyctx.compaction.extractive.work import (
    calls_in,
    changed_in,
    counted,
    files_of,
)
from policyctx.messages.reading import Reading
from policyctx.tokens.counter import counter_for
from policyctx.tokens.words import CJK

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from fractions import Fraction

    from policyctx.compaction.assembly import History
    from policyctx.compaction.extractive.budget import Limit
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import DigestEntry
    from policyctx.compaction.extractive.languages import Language
    from policyctx.compaction.extractive.ranking import Unit
    from policyctx.definitions.items import Item, Path
    from policyctx.policy.models.compaction import Summary
    from policyctx.tokens.counter import TokenCounter

# The agent's sentences that are mentioned: of this weight or more, and the heaviest only.
_LEAST_WEIGHT, _MOST_SENTENCES = 1.0, 80


# Characters that a note has at most which only points to another statement.
_LONGEST_POINTER = 40
# Sentences of what programs put into the user's messages: a program can say them again.
_MOST_OF_PROGRAMS = 6
# Characters that a note has at most of what the agent took back.
_LONGEST_OF_AGENT = 120

# Sentences of a message in which a single word is a label, not an order.
_MANY_SENTENCES = 4

# What comes before a line that is quoted.
_QUOTES = "> "
_SENTENCE_ENDS = (".", "!", "。", "！")
# What a file may show as well.
_IN_FILES = (Group.FOUND, Group.PASTED)

# What counts where no counter is given.
_TOKENIZER = "o200k_base"


def gathered(history: History, cues: Cues) -> Digest:
    """Return all that a history holds; raises `MessagesError` for what is no message list."""
    reading = Reading(history.shapes)
    reading.extend(history.messages)
    skipped = frozenset(history.earlier) | history.written
    items, others = _items_in(history, reading, skipped)
    calls = list(calls_in(reading, skipped, cues))
    changed = [changed_in(call, history.reads_file) for call in calls]
    said = resolved(list(said_in(items, cues, _inputs(items, reading))), items, cues)
    said, rejected = objected(_without_fragments(said), cues)
    read = {i: read_summary(text) for i, text in history.earlier.items()}
    read |= {i: _read_other(text, cues) for i, text in others.items()}
    read = dict(sorted(read.items()))
    read = {
        i: found._replace(digest=up_to_date(found.digest, calls, said, history.reads_file, cues))
        for i, found in read.items()
    }
    before = _joined([found.digest for found in read.values()])
    left_over = [
        Statement(sentence.text)
        for found in read.values()
        for sentence in sentences_in(found.left_over)
    ]
    spoken = [one for one in said if one.speaker != PROGRAM]
    places = places_of(calls, [path for paths in changed for path in paths], spoken)
    sources = [[path for path in paths if places.is_source(path)] for paths in changed]
    report, tasks = closed_of(before, items, spoken, calls, cues, rejected)
    reported = {one.source for one in report if one.source >= 0}
    status = status_of(before, items, spoken, calls, cues)
    told = _told({i: _with_done_told(found.digest) for i, found in read.items()}, said)
    standing = [_pointing(_with_source(one)) for one in revised(told, cues)]
    tasks = still_true(tasks, told, standing)
    results = [item for item in items if item.kind == "tool_result"]
    in_status = {one.text for one in (*status.done, *status.next)}
    pasted = _once([*before.pasted, *(_with_source(one).statement for one in _pasted(said))])
    said_elsewhere = (*(one.statement for one in standing), *report, *status.done, *status.next)
    elsewhere = {one.text for one in said_elsewhere}
    return Digest(
        told=tuple(one.statement for one in standing if one.user),
        pasted=tuple(one for one in pasted if one.text.removeprefix(_QUOTES) not in elsewhere),
        agent=tuple(
            one.statement
            for one in standing
            if not one.user and one.statement.text not in in_status and one.message not in reported
        ),
        found=_once([*before.found, *findings_of(results, spoken, calls, cues)]),
        carried=_once([*before.carried, *left_over]),
        files=files_of(before.files, calls, history.reads_file, places),
        tools=counted(before.tools, calls),
        repository=repository_of(before.repository, calls, spoken),
        running=running_of(before.running, calls),
        edits=edits_of(before.edits, calls, changed, history.restored, places),
        checks=checks_of(before.checks, calls, sources, cues),
        report=report,
        tasks=tasks,
        done=tuple(one for one in status.done if one.source not in reported),
        next=status.next,
        open=status.open,
        failures=failures_of(before.failures, calls, said, cues),
        left_out=before.left_out,
    )


def _items_in(
    history: History, reading: Reading, skipped: Container[int]
) -> tuple[list[Item], dict[int, str]]:
    """Return the items, each with its author, and by message the summaries of other writers."""
    items: list[Item] = []
    others: dict[int, str] = {}
    for item in reading.items:
        if item.message in skipped:
            continue
        author = history.author_of(item)
        if author == "summary" and item.kind in ("user_message", "tool_result"):
            others[item.message] = "\n".join(filter(None, (others.get(item.message), item.text)))
        elif author == USER and item.kind not in ("user_message", "tool_result"):
            items.append(item)
        else:
            items.append(item if author == item.author else item._replace(author=author))
    return items, others


def _pasted(said: Sequence[Said]) -> list[Said]:
    """Return what was pasted; of what programs added only that with most values, the newest."""
    added = (one for one in said if one.speaker == PROGRAM)
    most = sorted(added, key=lambda one: (len(one.values), one.message))[-_MOST_OF_PROGRAMS:]
    kept = {id(one) for one in most}
    return [one for one in said if one.pasted and (one.speaker != PROGRAM or id(one) in kept)]


def _inputs(items: Iterable[Item], reading: Reading) -> dict[tuple[int, Path], str]:
    """Return the input of each call whose result holds the user's words, by the result's place."""
    wanted = {(item.message, item.path) for item in items if item.author == USER}
    if not wanted:
        return {}
    found: dict[tuple[int, Path], str] = {}
    for position, item in enumerate(reading.items):
        place = item.message, item.path
        if place in wanted and item.kind == "tool_result" and position in reading.partners:
            found[place] = reading.items[reading.partners[position]].text
    return found


def _read_other(text: str, cues: Cues) -> FileRead:
    """Read a summary that the history does not know as one of its own."""
    found = read_summary(text)
    return FileRead(read_foreign(text, cues), "") if found.digest == Digest() else found


def _begun(text: str) -> str:
    """Return the beginning of a statement that stands whole elsewhere, enough to find it."""
    most = _LONGEST_POINTER // 2 if CJK.search(text) else _LONGEST_POINTER
    if len(text) <= most:
        return text
    begun = text[: most - 2]
    return f"{begun[: begun.rfind(' ')] if ' ' in begun else begun} …"


_T = TypeVar("_T", Told, Said)


def _with_source(one: _T) -> _T:
    """Return a statement with the message that it is from."""
    return one._replace(statement=one.statement._replace(source=one.message))


def _pointing(one: Told) -> Told:
    """Return a statement with no more of the one that it may replace than what finds it.

    The agent's statements are in order, and nobody but the agent is bound by them.
    """
    statement = one.statement
    if not one.user:
        replaces = shortened(statement.replaces, _LONGEST_OF_AGENT)
        return one._replace(statement=statement._replace(replaces=replaces, unresolved=""))
    return one._replace(statement=statement._replace(unresolved=_begun(statement.unresolved)))


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
        repository=tuple(one for digest in digests for one in digest.repository),
        running=tuple(one for digest in digests for one in digest.running),
        edits=tuple(one for digest in digests for one in digest.edits),
        checks=tuple(one for digest in digests for one in digest.checks),
        report=tuple(one for digest in reversed(digests) for one in digest.report),
        tasks=tuple(one for digest in reversed(digests) for one in digest.tasks),
        done=digests[-1].done,
        next=digests[-1].next,
        open=tuple(one for digest in digests for one in digest.open),
        failures=tuple(one for digest in digests for one in digest.failures),
        left_out=LeftOut(
            sum(digest.left_out.orders for digest in digests),
            tuple(dict.fromkeys(name for one in digests for name in one.left_out.archives)),
        ),
    )


def _with_done_told(digest: Digest) -> Digest:
    """Return an earlier digest whose last words of the agent are among what it said.

    Where the work stands is told anew, and what was said then would be lost.
    """
    # The name of a call ends like no sentence.
    told = [one for one in digest.done if one.text.endswith(_SENTENCE_ENDS)]
    return replace(digest, agent=(*digest.agent, *told))


def _told(earlier: Mapping[int, Digest], said: Sequence[Said]) -> list[Told]:
    """Return what user and agent said, in order; what an earlier summary holds is at its place."""
    placed = [
        (place, Told(statement, -1, user, values_in(statement.text)))
        for place, digest in earlier.items()
        for user, statements in ((True, digest.told), (False, digest.agent))
        for statement in statements
    ]
    weights = ((one.weight, one) for one in said if one.speaker == AGENT and not one.leads)
    heavy = [pair for pair in weights if pair[0] >= _LEAST_WEIGHT]
    heaviest = sorted(heavy, key=lambda pair: -pair[0])[:_MOST_SENTENCES]
    worth = {id(one) for _, one in heaviest}
    placed += [
        (one.message, Told(one.statement, one.message, one.speaker == USER, one.values))
        for one in said
        if (one.speaker == USER and not one.pasted) or id(one) in worth
    ]
    return [told for _, told in sorted(placed, key=lambda pair: pair[0])]


def _without_fragments(said: Sequence[Said]) -> list[Said]:
    """Leave out words that stand alone between sentences, such as a label: they say nothing.

    All of a message is never a fragment, and neither is an answer or an exact value.
    """
    typed = Counter(one.message for one in said if one.speaker == USER and not one.pasted)
    return [
        one
        for one in said
        if one.speaker != USER
        or typed[one.message] < _MANY_SENTENCES
        or one.values
        or one.answered
        or one.statement.answers
        or not (one.text.isascii() and len(one.text.split()) == 1)
    ]


def _once(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements, those with one text once, where it stands last."""
    latest: dict[str, Statement] = {}
    for statement in statements:
        latest.pop(statement.text, None)
        latest[statement.text] = statement
    return tuple(latest.values())


def ranked_units(
    history: History, settings: Summary, languages: Sequence[Language] = SHIPPED
) -> tuple[Unit, ...]:
    """Return all that the policy's sections can hold of a history, what is kept longest first.

    The summary for any limit is written from a prefix of this order. Raises `MessagesError` for
    what is no message list.
    """
    return _ranking(history, settings, cues_of(tuple(languages))).order


class _Ranking(NamedTuple):
    order: tuple[Unit, ...]
    digest: Digest
    layout: Layout


def _ranking(history: History, settings: Summary, cues: Cues) -> _Ranking:
    digest, layout = gathered(history, cues), Layout(settings.sections, cues)
    restored = [" ".join(text.split()) for text in history.restored.values()]
    entries = [
        entry
        for entry in entries_of(digest)
        if layout.place_of(entry) is not None and not _is_in(entry, restored)
    ]
    return _Ranking(ranked(entries, cues), digest, layout)


def _is_in(entry: DigestEntry, restored: Sequence[str]) -> bool:
    """Return whether a file that comes back shows what was found in a result or pasted."""
    if entry.group not in _IN_FILES:
        return False
    text = " ".join(entry.text.partition("\n")[0].removeprefix("- ").split())
    return any(text in content for content in restored)


def extractive_summary(
    history: History,
    settings: Summary,
    languages: Sequence[Language] = SHIPPED,
    counter: TokenCounter | None = None,
    *,
    beside: str = "",
) -> str:
    """Return the summary of a history under a policy's `summary` settings.

    The same history gives the same text. It has the policy's sections, except those that would be
    empty, and is never longer than `max_words`, `max_tokens`, `max_chars` and `max_share` allow. An
    earlier summary in the history is read back, not summarised again. `languages` are the tables of
    cues that rank what is said; a sentence in another language is ranked by who said it and its
    exact values alone. `counter` counts the tokens, by default those of `o200k_base`. `beside` is
    text that is to be added: the limits hold for both together.

    Raises `MessagesError` for what is no message list.
    """
    lines = summary_lines(history, settings, languages, counter, beside=beside)
    return "\n".join(line.text for line in lines)


def summary_lines(
    history: History,
    settings: Summary,
    languages: Sequence[Language] = SHIPPED,
    counter: TokenCounter | None = None,
    *,
    beside: str = "",
) -> list[SummaryLine]:
    """Return the lines of `extractive_summary`, each with the unit that it was written from."""
    order, digest, layout = _ranking(history, settings, cues_of(tuple(languages)))
    limits = [limit.without(beside) for limit in _limits(history, settings, counter)]
    found = fitted(order, limits, layout, digest.left_out, history.archive)
    while found.units:
        lines = list(layout.lines(found.units, found.left_out))
        # Of tokens the whole can have more than its lines, as where two lines meet.
        text = "\n".join(line.text for line in lines)
        if all(limit.holds(text) for limit in limits):
            return lines
        found = Fitted(found.units[:-1], found.left_out)
    return [_shortest(order, layout, limits)]


def _shortest(order: Sequence[Unit], layout: Layout, limits: Sequence[Limit]) -> SummaryLine:
    """Return what is written where no unit fits with its heading and its label."""
    unit = order[0] if order else None
    heading = layout.heading(0) if not order else ""
    text = "\n".join(filter(None, (heading, NOTHING))) if unit is None else unit.text
    for limit in limits:
        if not limit.holds(text):
            text = limit.start(text, limit.most)
    return SummaryLine(text, unit)


def _limits(history: History, settings: Summary, counter: TokenCounter | None) -> list[Limit]:
    limits = [words_limit(settings.max_words)]
    if settings.max_chars is not None:
        limits.append(chars_limit(settings.max_chars))
    most = settings.max_tokens
    if settings.max_share is not None:
        counter = counter_for(_TOKENIZER) if counter is None else counter
        share = _share_of(history, settings.max_share, counter)
        most = share if most is None else min(most, share)
    if most is not None:
        limits.append(tokens_limit(most, counter_for(_TOKENIZER) if counter is None else counter))
    return limits


def _share_of(history: History, share: Fraction, counter: TokenCounter) -> int:
    """Return the tokens that a share of a history has, in which an earlier summary counts whole."""
    reading = Reading(history.shapes)
    reading.extend(history.messages)
    texts = [item.counted for item in reading.items if item.message not in history.earlier]
    tokens = int(share * sum(counter.count_many(texts)))
    # Line by line, as a limit of tokens is applied.
    lines = [f"{line}\n" for text in history.earlier.values() for line in text.split("\n")]
    return max(1, tokens + sum(counter.count_many(lines)))
