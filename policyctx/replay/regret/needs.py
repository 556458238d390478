"""What shows that an agent needed an item: it asked again, or it used what only the item held."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from policyctx.errors import present
from policyctx.replay.regret.asked import asked_again
from policyctx.replay.regret.cited import Citations, Cited
from policyctx.replay.regret.sent import SentStrings, SentText, TextPlace, Texts
from policyctx.replay.regret.strings import Lines, Memo, Range, start_of, without
from policyctx.replay.simulated import Need
from policyctx.replay.timeline import SessionPart

# So many strings are shown for one item and one call.
_SHOWN = 3


class Lost(NamedTuple):
    """An item that was out of the context, and one time in which it was."""

    position: int
    absence: int
    """Which of the item's absences, from 0 on."""


def needs_of(
    part: SessionPart, tokens: Callable[[str], int], memo: Memo | None = None
) -> Mapping[Lost, Sequence[Need]]:
    """Return what was needed of a part's items while they were out; `tokens` counts a text.

    `memo` has what was found in the texts of the same recording before.
    """
    memo = memo or Memo()
    since = min((a.since for of_one in part.absences.values() for a in of_one), default=None)
    if since is None:
        return {}
    replies = list(part.replies(since))
    found: dict[int, list[_Found]] = defaultdict(list)
    for one in (*_asked_again(part, replies, memo), *_used(part, replies, memo)):
        found[one.position].append(one)
    needs: dict[Lost, list[Need]] = defaultdict(list)
    for position, of_item in found.items():
        text = part.items[position].counted
        had: list[Range] = []
        for one in sorted(of_item, key=lambda one: one.need.call):
            absence = part.absence_number(position, one.need.call)
            absence = present(absence)
            left = without(one.own, had)
            had += one.own
            counted = sum(tokens(text[start:end]) for start, end in left)
            needs[Lost(position, absence)].append(replace(one.need, tokens=counted))
    return needs


class _Found(NamedTuple):
    """A need of the item at a position, and which of its ranges no newer item has."""

    position: int
    need: Need
    own: tuple[Range, ...]


def _asked_again(
    part: SessionPart, replies: Sequence[tuple[int, int]], memo: Memo
) -> Iterator[_Found]:
    for again in asked_again(part, replies, memo):
        item = part.items[again.reply]
        need = Need("asked again", again.call, item.item_id, (item.text,), again.ranges)
        yield _Found(again.result, need, again.own)


def _used(part: SessionPart, replies: Sequence[tuple[int, int]], memo: Memo) -> Iterator[_Found]:
    """Yield the items that alone held what a reply says, each reply by itself."""
    texts, lines_in = Texts(part, memo), memo.of(Lines)
    knowledge, sent = SentText(part, texts, memo), SentStrings(part, texts, replies)
    citations = Citations(part, texts, knowledge, memo)
    for reply, call in replies:
        lost: dict[int, list[str]] = defaultdict(list)
        for holder, said in sent.lost(reply, call):
            if not knowledge.has_parts(said, call):
                lost[holder].append(said)
        cited: dict[int, list[Cited]] = defaultdict(list)
        for line in citations.of(reply, call):
            cited[line.position].append(line)
        newer: set[str] = set()
        for holder in sorted({*lost, *cited}, reverse=True):
            lines = lines_in(texts.shown(holder))
            shared = dict(_shared(texts, lines, reply, holder) if holder in lost else ())
            placed = dict(_in_blocks_of(lost[holder], shared, lines))
            lined = {line.text: lines.around(line.start, line.end) for line in cited[holder]}
            signs = (*_longest(lost[holder], placed), *lined)
            placed |= lined
            ranges = lines.joined(placed.values())
            own = lines.joined(placed[text] for text in placed.keys() - newer)
            newer.update(placed)
            shown = tuple(dict.fromkeys(signs))[:_SHOWN]
            yield _Found(holder, Need("used", call, part.items[reply].item_id, shown, ranges), own)


def _shared(texts: Texts, lines: Lines, reply: int, holder: int) -> Iterator[tuple[str, Range]]:
    """Yield the rare strings of a reply that an item holds, and what is to be read for each."""
    written = texts.strings_written(reply)
    held = texts.held(TextPlace(holder), written.keys())
    for key, said in written.items():
        if key in held:
            yield said, _place(lines, held[key])


def _in_blocks_of(
    lost: Sequence[str], shared: Mapping[str, Range], lines: Lines
) -> Iterator[tuple[str, Range]]:
    """Yield the lost strings, and what else a reply says of the lines around them.

    Who reads a lost string again reads these lines too, and not what is far from it.
    """
    blocks = {lines.block_of(shared[text]) for text in lost}
    for text, place in shared.items():
        if lines.block_of(place) in blocks:
            yield text, place


def _place(lines: Lines, held: str) -> Range:
    """Return what is to be read again for a string; JSON may have it with escapes."""
    for form in (held, json.dumps(held, ensure_ascii=False)[1:-1]):
        # An escaped end of a line before it looks like a letter of it.
        start = max(start_of(form, lines.text), lines.text.find(form))
        if start >= 0:
            return lines.around(start, start + len(form))
    return lines.whole()


def _longest(lost: Sequence[str], places: Mapping[str, Range]) -> Iterator[str]:
    """Yield the strings without the parts of a longer one at the same place."""
    longest: dict[Range, str] = {}
    for text in lost:
        longest[places[text]] = max(text, longest.get(places[text], ""), key=len)
    for text in lost:
        if text == longest[places[text]] or text not in longest[places[text]]:
            yield text
