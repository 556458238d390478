"""`extractive_summary`: quote what was said, read where the work stands, and write what fits.

Nothing is concluded from words in common: a line is a quotation, or a fact read from a call.
`ranked_units` gives all contents in one order, the one that is kept longest first. A summary is a
prefix of that order, written in sections and in the order of the conversation.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.files import calls_in, files_of
from policyctx.compaction.extractive.fitting import (
    Limit,
    SummaryLine,
    Unit,
    entries_of,
    first_words,
    fitted,
    ranked,
    with_room,
)
from policyctx.compaction.extractive.languages import SHIPPED, Cues, Language, cues_of
from policyctx.compaction.extractive.said import (
    REFUSED,
    REPLY,
    UNREADABLE,
    Quote,
    ends_of,
    is_answer,
    place_of,
    quotes_in,
    replies_in,
)
from policyctx.compaction.extractive.state import tasks_of, work_of
from policyctx.compaction.extractive.texts import lines_in, pieces_of
from policyctx.compaction.extractive.writing import (
    NOTHING,
    Contents,
    Group,
    Layout,
    read_back,
    with_archive,
)
from policyctx.messages.reading import Reading, items_of
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import TokenCounter, counter_for
from policyctx.tokens.encoders import words_in

# A title in a summary of another writer, and that of the list of what its user said.
_TITLE = re.compile(r"#+ .*|\d+\. .*[:：]|\*\*.*\*\*:?")
_OF_USER = re.compile(
    r"\buser(?:'s)? (?:messages|requests|words)"
    r"|\b(?:constraints|preferences|instructions)\b|用户(?:消息|原话)|约束|偏好",
    re.IGNORECASE,
)
# Titles over what was done, over what was open, and over aims, which may have been reached since.
_DONE = re.compile(
    r"\b(?:done|(?:complet|accomplish)\w+)\b|^\W*progress\W*$|完成|进展|进度", re.IGNORECASE
)
_OPEN = re.compile(
    r"\b(?:in progress|blocked|pending|remain(?:s|ing)|next|to[ -]?do|to be done|current"
    r"|stat(?:e|us))\b"
    r"|进行中|剩余|待办|下一步|当前|状态",
    re.IGNORECASE,
)
_AIM = re.compile(r"primary request|\bgoals?\b|\bobjectives?\b|目标", re.IGNORECASE)
_LEADS = (":", "：")
_ORDER = re.compile(
    r"(?:never|always|avoid|do(?: not|n't)|(?:\w+ ){0,3}protocol)\b|不要|别|必须|禁止|不得|严禁",
    re.IGNORECASE,
)
_BINDS = re.compile(rf"{_ORDER.pattern}|.*(?:\bmust\b|必须)", re.IGNORECASE)
# An id before a prompt that is long enough to be known again without it.
_ID = re.compile(r"(?=\S*\d)[0-9a-f][0-9a-f-]{6,}:? (?=.{200})")


def gathered(
    history: History, cues: Cues, *, is_stepped: bool = True, room: int | None = None
) -> Contents:
    """Return what a history holds; raises `MessagesError` if it is not a list of messages.

    Without `is_stepped` no commands are gathered, which takes half of the time. What a summary of
    `room` words cannot hold may be missing.
    """
    reading = Reading(history.shapes)
    reading.extend(history.messages)
    skipped = frozenset(history.earlier) | history.written
    others = _other_summaries(history, reading, skipped)
    before = [read_back(text) for _, text in sorted({**history.earlier, **others}.items())]

    def carried(group: Group) -> list[Quote]:
        return [one for found in before for one in found.contents.said.get(group, ())]

    read = _changing(quotes_in(history, reading, skipped | frozenset(others)))
    quotes = [*read] if room is None else with_room(read, room, cues)
    calls = list(calls_in(reading, skipped, cues))
    new = next((one.text for one in reading.items if one.message not in skipped), "")
    del reading
    files = files_of(
        [file for found in reversed(before) for file in found.contents.files],
        calls,
        history.reads_file,
    )
    users = [one for one in quotes if one.user]
    typed = max((one.message for one in users if one.text != UNREADABLE), default=-1)
    last = [one for one in quotes if one.last]
    is_answered = bool(last) and is_answer(last[-1].text) and not last[-1].working
    told_before = carried(Group.USER)
    users = [*ends_of(told_before, is_newest=typed < 0, is_answered=is_answered), *users]
    said = carried(Group.AGENT)
    said = [one for one in said if not REFUSED.match(new) or one.message != said[-1].message]
    # Notes leave with the user's next words, or the agent's at the end of its work.
    answered = max((one.message for one in quotes if not (one.user or one.working)), default=-1)
    is_ended = any(not one.working for one in last) or (
        0 <= answered < typed and not any(answered <= call.message < typed for call in calls)
    )
    is_over = typed >= 0 or is_ended
    words = Counter[int]()
    for note in said:
        words[note.message] += words_in(note.text)
    short = {message for message, count in words.items() if last and count < REPLY}
    said = [one for one in said if not (one.working and (is_over or one.message in short))]
    said += (one for one in quotes if not (one.user or one.last))
    del quotes
    if not last and typed < 0:
        # Nothing was said since the last summary, where a later message has a lower number.
        end = min((one.message for one in users), default=0)
        last = [one._replace(last=True) for one in said if one.message < end]
        said = [one for one in said if one.message >= end]
    made = [call.message for call in calls if call.tool]

    def dated(one: Quote) -> Quote:
        ago = one.ago + len(made) - bisect_right(made, one.message)
        return one if ago == one.ago else one._replace(ago=ago)  # so that few are held twice

    said, last = [*map(dated, said)], [*map(dated, last)]
    seen = {one.text for one in last}
    told = {one.text for one in users}
    foreign = (one for found in before for one in _orders_in(found.left_over, told))
    replies = replies_in(sorted((*users, *said, *last), key=place_of))
    replies.update(one.message for one in users if one.message < 0)  # these said something new
    users = [*_once(users, replies=replies)]
    left_out = tuple(dict.fromkeys(one for found in before for one in found.contents.left_out))
    if any(one.gap for one in users):
        left_out = with_archive(left_out, history.archive)
    before_them = carried(Group.STEPS), carried(Group.RESULTS)
    ends = (
        max((typed, *(one.message for one in last))),
        max((typed, *(one.message for one in last if not one.working))),
    )
    work = work_of(*before_them, calls, files, ends) if is_stepped else ((), ())
    return Contents(
        {
            Group.USER: users,
            Group.AGENT: [
                *(one._replace(last=False) if one.last else one for one in _once(said, seen)),
                *last,
            ],
            Group.EARLIER: [*_as_it_stood((*carried(Group.EARLIER), *foreign), is_over=is_ended)],
            Group.TASKS: tasks_of(carried(Group.TASKS), calls),
            Group.STEPS: work[0],
            Group.RESULTS: work[1],
        },
        files,
        left_out,
    )


def _other_summaries(history: History, reading: Reading, skipped: frozenset[int]) -> dict[int, str]:
    """Return, by message, the summaries of other writers in the history."""
    found: dict[int, str] = {}
    for item in reading.items:
        is_other = item.kind in ("user_message", "tool_result") and item.message not in skipped
        if is_other and history.author_of(item) == "summary":
            found[item.message] = "\n".join(filter(None, (found.get(item.message), item.text)))
    return found


def _orders_in(text: str, told: Container[str]) -> Iterator[Quote]:
    """Yield the user's words, aims, orders and status in another summary, each under its title.

    Its other statements are quoted only if there are no titles. `told` are the texts that are
    quoted already.
    """
    pieces = list(pieces_of(text))
    is_prose = not any(_TITLE.fullmatch(one.text) for one in pieces)
    section, is_quoted, titles, above = -1, False, list[Quote](), 0
    for one in (one for one in pieces if one.text.strip('"“”') not in told):
        leads = one.text.endswith(_LEADS) and _OF_USER.search(one.text)
        if leads or _TITLE.fullmatch(one.text):
            section, above = section - 1, sys.maxsize
            is_quoted = any(sign.search(one.text) for sign in (_OF_USER, _DONE, _OPEN, _AIM))
            titles = [Quote(one.text, section, user=False)]
        elif not one.pasted and (is_prose or is_quoted or _ORDER.match(one.text)):
            yield from titles
            titles, above = [], min(above, one.depth)
            yield Quote(one.text, section, user=False, depth=1 + one.depth - above)


def _as_it_stood(quotes: Iterable[Quote], *, is_over: bool) -> Iterator[Quote]:
    """Yield what an earlier summary says, with marks on how things stood, and on aims.

    What was open leaves with the agent's answer, except orders, and so do aims, unless the summary
    says what of them is done.
    """
    sections = [[*section] for _, section in groupby(quotes, attrgetter("message"))]
    titles = [
        one.text if _TITLE.fullmatch(one.text) or one.text.endswith(_LEADS) else ""
        for one, *_ in sections
    ]
    is_told = not is_over or any(_DONE.search(one) and not _OPEN.search(one) for one in titles)
    for title, (first, *others) in zip(titles, sections, strict=True):
        # The user's words stay, whatever else their title says.
        of_user = _OF_USER.search(title) is not None
        is_open = not of_user and _OPEN.search(title) is not None
        is_aim = not of_user and _AIM.search(title) is not None
        leaves = (is_aim and not is_told) or (is_open and is_over)
        left = [one for one in others if not leaves or _BINDS.match(one.text)]
        if left or not leaves:
            inner = not leaves and bool(is_open or is_aim or _DONE.search(title))
            yield from (one._replace(inner=inner, last=is_aim) for one in (first, *left))


def _once(
    quotes: Iterable[Quote], seen: Iterable[str] = (), replies: Container[int] = ()
) -> Iterator[Quote]:
    """Yield the quotes without messages that say nothing new beside those `seen`, or reply."""
    known, missing = {*seen}, 0
    for _, group in groupby(quotes, key=lambda one: one.message):
        first, *others = group
        texts = {_bare(one) for one in (first, *others)}
        if texts <= known and first.message not in replies:
            missing += sum(one.gap for one in (first, *others) if one.gap > 1)
            continue
        first = first._replace(gap=(first.gap or 1) + missing) if missing else first
        yield from _changing((first, *others))
        known |= texts
        missing = 0


def _bare(one: Quote) -> str:
    """Return the text without an id before a long prompt."""
    found = _ID.match(one.text)
    return one.text[found.end() :] if found else one.text


def _changing(quotes: Iterable[Quote]) -> Iterator[Quote]:
    """Yield of consecutive quotes of a message with one text the first; the next has a mark."""
    before: Quote | None = None
    is_gap = False
    for one in quotes:
        if before is None or one.message != before.message:
            is_gap = False
        elif _bare(one) == _bare(before) and one.gap <= 1 and not one.last:
            is_gap = True
            continue
        yield one._replace(gap=one.gap or 1) if is_gap else one
        before, is_gap = one, False


def ranked_units(history: History, languages: Sequence[Language] = SHIPPED) -> tuple[Unit, ...]:
    """Return all that a summary can hold of a history, what is kept longest first.

    The summary for any limit is written from a prefix of this order. Raises `MessagesError` for
    what is no message list.
    """
    cues = cues_of(tuple(languages))
    return ranked(entries_of(gathered(history, cues)), cues)


def extractive_summary(
    history: History,
    settings: Summary,
    languages: Sequence[Language] = SHIPPED,
    counter: TokenCounter | None = None,
    *,
    beside: str = "",
) -> str:
    """Return the summary of a history under a policy's settings.

    The same history gives the same text. It has the policy's sections, except those that would be
    empty, and is never longer than `max_words`, `max_tokens`, `max_chars` and `max_share` allow. An
    earlier summary in the history is read back, not summarised again. `languages` are the tables of
    cues that rank what is said; a sentence in another language is ranked by who said it and its
    exact values alone. `counter` counts the tokens, by default those of `o200k_base`. `beside` is
    text that is to be added: the limits hold for both together.

    Raises `MessagesError` for a list that no shape knows.
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
    limits = [limit.without(beside) for limit in limits_of(history, settings, counter)]
    cues = cues_of(tuple(languages))
    contents = gathered(history, cues, room=settings.max_words)
    layout, left_out, entries = Layout(settings.sections), contents.left_out, entries_of(contents)
    del contents
    order = ranked(entries, cues)
    lines = fitted(order, limits, layout, left_out, history.archive)
    return [*lines] or [_shortest(order, layout, limits)]


def _shortest(order: Sequence[Unit], layout: Layout, limits: Sequence[Limit]) -> SummaryLine:
    """Return what is written where no unit fits with its heading and its label."""
    unit = order[0] if order else None
    text = unit.text if unit else "\n".join(filter(None, (layout.heading(0), NOTHING)))
    for limit in limits:
        if not limit.holds(text):
            text = limit.start(text, limit.most)
    return SummaryLine(text, unit)


def limits_of(history: History, settings: Summary, counter: TokenCounter | None) -> list[Limit]:
    """Return the limits of a summary, as the policy sets them."""
    counter = counter_for("o200k_base") if counter is None else counter
    # The words of one line at a time are in memory.
    words = Limit(settings.max_words, lambda text: sum(map(words_in, lines_in(text))), first_words)
    limits = [words]
    if settings.max_chars is not None:
        limits.append(Limit(settings.max_chars, len, lambda text, most: text[:most]))
    if settings.max_tokens is not None:
        limits.append(Limit(settings.max_tokens, counter.count, counter.truncate))
    if settings.max_share is not None:
        items = items_of(history.messages, history.shapes)
        new = [item.counted for item in items if item.message not in history.earlier]
        # An earlier summary counts whole.
        lines = [f"{line}\n" for text in history.earlier.values() for line in text.split("\n")]
        share = int(settings.max_share * sum(counter.count_many(new)))
        share += sum(counter.count_many(lines))
        limits.append(Limit(max(1, share), counter.count, counter.truncate))
    return limits
