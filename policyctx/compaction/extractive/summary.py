"""`extractive_summary`: quote what was said, read where the work stands, and write what fits.

Nothing is concluded from words in common: a line is a quotation, or a fact read from a call.
`ranked_units` gives all contents in one order, the one that is kept longest first. A summary is a
prefix of that order, written in sections and in the order of the conversation.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.files import calls_in, files_of
from policyctx.compaction.extractive.fitting import (
    END_OF_LAST,
    Limit,
    SummaryLine,
    Unit,
    first_words,
    fitted,
    ranked,
)
from policyctx.compaction.extractive.languages import SHIPPED, Cues, Language, cues_of
from policyctx.compaction.extractive.said import (
    UNREADABLE,
    Quote,
    quotes_in,
    with_briefs,
    with_middle,
)
from policyctx.compaction.extractive.state import steps_of, tasks_of
from policyctx.compaction.extractive.texts import pieces_of
from policyctx.compaction.extractive.writing import (
    NOTHING,
    Contents,
    Group,
    Layout,
    LeftOut,
    read_back,
)
from policyctx.messages.reading import Reading, items_of
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import TokenCounter, counter_for
from policyctx.tokens.encoders import words_in

# How many of the agent's last messages are quoted while it is still working.
_LAST_MESSAGES = 2
# A title in a summary of another writer, and that of the list of what its user said.
_TITLE = re.compile(r"#+ .*|\d+\. .*[:：]|\*\*.*\*\*:?")
_OF_USER = re.compile(
    r"\buser(?:'s)? (?:messages|requests|words)|primary request"
    r"|\b(?:goals?|constraints|preferences|instructions)\b|用户(?:消息|原话)|约束|偏好",
    re.IGNORECASE,
)
_LEADS = (":", "：")
_ORDER = re.compile(
    r"(?:never|always|avoid|do(?: not|n't)|(?:\w+ ){0,3}protocol)\b|不要|别|必须|禁止|不得|严禁",
    re.IGNORECASE,
)
# A text that fits where room is left for what the agent said before its calls.
_PLENTY = "word " * 1_800
# What counts where no counter is given.
_TOKENIZER = "o200k_base"


def gathered(
    history: History, cues: Cues, *, working: bool = False, is_stepped: bool = True
) -> Contents:
    """Return what a history holds, with what the agent said before its calls if `working`.

    Without `is_stepped` no commands are gathered, which takes half of the time. Raises
    `MessagesError` if it is not a list of messages.
    """
    reading = Reading(history.shapes)
    reading.extend(history.messages)
    skipped = frozenset(history.earlier) | history.written
    others = _other_summaries(history, reading, skipped)
    summaries = {**history.earlier, **others}
    before = [read_back(summaries[i]) for i in sorted(summaries)]

    def carried(group: Group) -> list[Quote]:
        return [one for found in before for one in found.contents.said.get(group, ())]

    spoken = quotes_in(history, reading, skipped | frozenset(others), _LAST_MESSAGES)
    quotes = [*_of_templates(spoken)]
    calls = list(calls_in(reading, skipped, cues))
    files = files_of(
        [file for found in reversed(before) for file in found.contents.files],
        calls,
        history.reads_file,
    )
    users = [*carried(Group.USER), *(one for one in quotes if one.user)]
    said = carried(Group.AGENT)
    said += (one for one in quotes if not (one.user or one.last or one.pasted))
    last = [one for one in quotes if one.last]
    del quotes
    typed = max((one.message for one in users if one.text != UNREADABLE), default=-1)
    if not last and typed < 0:
        # Nothing was said since the last summary, where a later message has a lower number.
        end = min((one.message for one in users), default=0)
        last = [one._replace(last=1) for one in said if one.message < end]
        said = [one for one in said if one.message >= end]
    newest = max(last[0].message if last else typed, -1)
    begins = newest if last or said else None
    if not working:
        is_at_work = any(one.working for one in last)
        said = [*_without_notes(said, since=typed if is_at_work else len(history.messages))]
    seen = {one.text for one in last}
    told = {one.text for one in users}
    goes_on = bool(users) and users[-1].message >= 0
    users = [*with_briefs(_once(users), cues, goes_on=goes_on)]
    foreign = (one for found in before for one in _orders_in(found.left_over, told))
    steps, since = (
        steps_of(carried(Group.STEPS), carried(Group.SINCE), calls, files, begins)
        if is_stepped
        else ((), ())
    )

    return Contents(
        {
            Group.USER: users,
            Group.AGENT: [*with_middle(_once(said, seen)), *last],
            Group.EARLIER: [*carried(Group.EARLIER), *foreign],
            Group.TASKS: tasks_of(carried(Group.TASKS), calls),
            Group.STEPS: steps,
            Group.SINCE: since,
        },
        files,
        LeftOut(
            sum(found.contents.left_out.lines for found in before),
            tuple(dict.fromkeys(n for found in before for n in found.contents.left_out.archives)),
        ),
    )  # fmt: skip


# Words of a note of the agent that says more than what it does next, and how many of them are kept.
_LONG_NOTE, _MOST_NOTES = 25, 6


def _without_notes(said: Sequence[Quote], since: int) -> Iterator[Quote]:
    """Yield the quotes without what the agent said before its calls.

    Of what it said there after a position the newest long notes stay.
    """
    kept = deque[int](maxlen=_MOST_NOTES)
    notes = (one for one in said if one.working and (since < 0 or one.message > since))
    for message, pieces in groupby(notes, key=lambda one: one.message):
        if sum(words_in(one.text) for one in pieces) >= _LONG_NOTE:
            kept.append(message)
    yield from (one for one in said if not one.working or one.message in kept)


def _other_summaries(history: History, reading: Reading, skipped: frozenset[int]) -> dict[int, str]:
    """Return, by message, the summaries of other writers in the history."""
    found: dict[int, str] = {}
    for item in reading.items:
        is_other = item.kind in ("user_message", "tool_result") and item.message not in skipped
        if is_other and history.author_of(item) == "summary":
            found[item.message] = "\n".join(filter(None, (found.get(item.message), item.text)))
    return found


# Of a message with more pieces than somebody types, the first and the last are kept, and rules
# between them.
_TYPED_PIECES, _FIRST, _RULES = 40, 4, 8
_RULE = re.compile(
    r"\b(?:MUST|NEVER|ALWAYS|REQUIRED|D[Oo] NOT|do NOT|FORBIDDEN|CRITICAL|[Nn]on-negotiable)\b"
    r"|必须|禁止|不得|严禁"
)


def _orders_in(text: str, told: Container[str]) -> Iterator[Quote]:
    """Yield the user's words, aims and orders in another summary, each under its title.

    Its other statements may be out of date, so they are quoted only if there are no titles. `told`
    are the texts that are quoted already.
    """
    pieces = list(pieces_of(text))
    is_prose = not any(_TITLE.fullmatch(one.text) for one in pieces)
    section, title, titles = -1, "", list[Quote]()
    for one in (one for one in pieces if one.text.strip('"“”') not in told):
        leads = one.text.endswith(_LEADS) and _OF_USER.search(one.text)
        if leads or _TITLE.fullmatch(one.text):
            section, title = section - 1, one.text
            titles = [Quote(title, section, user=False)]
        elif not one.pasted and (is_prose or _OF_USER.search(title) or _ORDER.match(one.text)):
            yield from titles
            titles = []
            yield Quote(one.text, section, user=False, depth=1)


def _of_templates(quotes: Iterable[Quote]) -> Iterator[Quote]:
    """Yield the quotes; of a long message of the user its ends and rules, and how many are not."""
    for (_, user), group in groupby(quotes, key=lambda one: (one.message, one.user)):
        if not user:
            yield from group
            continue
        first = list(islice(group, _TYPED_PIECES + 1))
        kept = len(first) if len(first) <= _TYPED_PIECES else _FIRST
        yield from first[:kept]
        last = deque[Quote]()
        rules = more = 0
        for one in chain(first[kept:], group):
            last.append(one)
            if len(last) <= END_OF_LAST:
                continue
            rule = last.popleft()
            if rules < _RULES and _RULE.search(rule.text):
                rules += 1
                yield rule
            else:
                more += 1
        if last:
            yield last.popleft()._replace(more=more)
        yield from last


# Pieces of a message that is quoted whole if it adds something to what was said before.
_RETYPED = 12


def _once(quotes: Iterable[Quote], seen: Iterable[str] = ()) -> Iterator[Quote]:
    """Yield the quotes without those `seen`, and without messages that say nothing new.

    Of a long message that says something new only that is quoted, of one with equal lines in a row
    the first.
    """
    left_out, known = frozenset(seen), set[str]()
    for _, group in groupby(quotes, key=lambda one: one.message):
        pieces = [one for one in group if one.text not in left_out]
        texts = {one.text for one in pieces}
        if texts <= known or len(pieces) > _RETYPED:
            pieces = [one for one in pieces if one.text not in known]
        known |= texts
        yield from (next(same) for _, same in groupby(pieces, key=lambda one: one.text))


def ranked_units(
    history: History, settings: Summary, languages: Sequence[Language] = SHIPPED
) -> tuple[Unit, ...]:
    """Return all that the policy's sections can hold of a history, what is kept longest first.

    The summary for any limit is written from a prefix of this order. Raises `MessagesError` for
    what is no message list.
    """
    return _ranking(history, settings, cues_of(tuple(languages)), working=True)[0]


def _ranking(
    history: History, settings: Summary, cues: Cues, *, working: bool
) -> tuple[tuple[Unit, ...], Contents, Layout]:
    contents = gathered(history, cues, working=working)
    layout = Layout(settings.sections)
    order = tuple(
        unit for unit in ranked(contents, cues) if layout.place_of(unit.group) is not None
    )
    return order, contents, layout


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
    plenty = all(limit.holds(_PLENTY) for limit in limits)
    cues = cues_of(tuple(languages))
    order, contents, layout = _ranking(history, settings, cues, working=plenty)
    lines = fitted(order, limits, layout, contents, history.archive)
    return lines or [_shortest(order, layout, limits)]


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
    counter = counter_for(_TOKENIZER) if counter is None else counter
    limits = [Limit(settings.max_words, words_in, first_words)]
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
