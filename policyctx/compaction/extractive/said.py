"""What user and agent said, as pieces to be quoted, each with what its weight depends on.

- The user ranks above the agent. Nobody else can repeat what a user asked, forbade or limited,
  while the agent's words follow from it.
- An order, recognised by its words, binds all later work; so does an exact value.
- The user's first words hold the task, the last words its current form. The agent's last messages
  say where the work stands; the words before its calls are mostly narration.
- A question binds nothing. A sentence of one or two words without a value says little by itself.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.languages import Cues, cues_of
from policyctx.compaction.extractive.texts import (
    GAP,
    NAME,
    Piece,
    one_line,
    pieces_of,
    shortened,
    values_in,
    words_of,
)
from policyctx.definitions.items import MEDIA_TYPES, Item
from policyctx.messages.reading import Reading

# Characters of a question of a tool that asks, and of the answer.
_LONGEST_QUESTION, _LONGEST_ANSWER = 300, 480
_QUESTION_MARK = ("?", "？")
_TAG = re.compile(r"</?[A-Za-z][\w -]*>")
# Characters of a name that are shown.
_LONGEST_NAME = 80
# Characters of the beginning of an earlier answer, and of its end; pieces that are kept of either.
_BEGINNING, _END, _MOST_PIECES = 300, 500, 125
_TABLE = re.compile(r"\||.*[\u2500-\u257f]{3}")
# The words before the question of a tool behind its answer.
ASKED = " [answers: "
# Characters of a system message that is quoted, and of one in an element of its client.
_LONGEST_SYSTEM, _LONGEST_ELEMENT = 2_000, 300
# A summary that only its provider can read, and the line that stands for it.
_COMPACTION = re.compile(r'"type": ?"(?:\w+_)?compaction(?:_summary)?"')
UNREADABLE = (
    "[compaction that only its provider can read: of what stood before it only the user's words"
    " are here]"
)
# Where the names of an attachment are looked for: at the ends of its block.
_ENDS = 1_000
_NAMES = re.compile(
    r'"(?:title|filename|file_name|name|file_id|file_uri|mime_type|url)": ?"'
    r'((?!data:)(?:[^"\\]|\\.){1,200})"'
)


class Quote(NamedTuple):
    """A piece of what somebody said."""

    text: str
    message: int
    """0-based position of its message in the history; -1 if it is of an earlier summary."""
    user: bool
    pasted: bool = False
    """Whether it only stands for what was pasted, attached, or added by a program."""
    last: int = 0
    """Of the agent's last messages, how many came after it plus 1; 0 for an earlier message."""
    working: bool = False
    """Whether the agent said it before its calls."""
    more: int = 0
    """How many pieces before it were left out, since no room is for them."""
    depth: int = 0
    """How many titles and leads of its message it is under."""
    is_middle: bool = False
    """Whether it is in the middle of a long answer."""
    brief: bool = False
    """Whether it is a short reply of the user that is settled, as far as its words tell."""


def quotes_in(
    history: History, reading: Reading, skipped: frozenset[int], last_messages: int
) -> Iterator[Quote]:
    """Yield what was said, in order."""
    spoken, working, turn = _spoken(history, reading, skipped)
    # An answer says all; of a turn that goes on the last messages say what is in hand.
    newest = spoken[-1:] if not working.intersection(spoken[-1:]) else spoken[-last_messages:]
    newest = [one for one in newest if one in turn]
    # What the user interrupted is quoted as an answer.
    working -= set() if newest else set(spoken[-1:])
    after = {message: len(newest) - i for i, message in enumerate(newest)}
    for position, item in enumerate(reading.items):
        if item.message in skipped:
            continue
        author = history.author_of(item)
        if item.kind == "assistant_message":
            last, works = after.get(item.message, 0), item.message in working
            pieces = pieces_of(item.text, of_agent=True)
            for one in pieces if last else _ends_of(pieces):
                yield Quote(
                    one.text, item.message, user=False, last=last, working=works, depth=one.depth
                )
            continue
        yield from _not_agents(item, author, reading, position)


def _ends_of(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield the first and the last pieces of a text, with a mark where others are left out."""
    yield from islice(pieces, _MOST_PIECES)
    rest = deque(pieces, _MOST_PIECES + 1)
    if len(rest) > _MOST_PIECES:
        rest.popleft()
        rest[0] = rest[0]._replace(text=GAP + rest[0].text)
    yield from rest


def with_middle(quotes: Iterable[Quote]) -> Iterator[Quote]:
    """Yield the quotes of earlier messages, those marked that are neither beginning nor end.

    A row of a table is marked as well.
    """
    for _, group in groupby(quotes, key=lambda one: one.message):
        pieces = list(group)
        whole, size = sum(len(one.text) for one in pieces), 0
        for one in pieces:
            is_first, left = size == 0, whole - size
            size += len(one.text)
            is_middle = size > _BEGINNING and left > _END and not is_first
            is_middle = is_middle or _TABLE.match(one.text) is not None
            yield one._replace(is_middle=is_middle, last=0)


def _spoken(
    history: History, reading: Reading, skipped: frozenset[int]
) -> tuple[list[int], set[int], set[int]]:
    """Return the agent's messages with text, those that a call follows, and those of this turn."""
    spoken: list[int] = []
    working: set[int] = set()
    turn: set[int] = set()
    for item in reading.items:
        if item.message in skipped:
            continue
        if item.kind == "assistant_message" and item.text:
            spoken += [item.message] if item.message not in spoken[-1:] else []
            turn.add(item.message)
        elif item.kind == "tool_call":
            working |= turn
        elif item.kind == "user_message" and history.author_of(item) != "program":
            is_typed = any(not one.text.startswith("[<") for one in pieces_of(item.text))
            turn = set() if is_typed else turn
    return spoken, working, turn


def _not_agents(item: Item, author: str, reading: Reading, position: int) -> Iterator[Quote]:
    """Yield what the user said in an item, and a line for what is there beside it."""
    if item.kind == "tool_result" and author == "user":
        yield _answered(item, reading, position)
    elif item.kind == "user_message" and author != "program":
        for one in pieces_of(item.text):
            # An element that a program put there says little of what the user wants.
            if not (one.pasted and one.text.startswith("[<")):
                yield Quote(one.text, item.message, user=True, pasted=one.pasted, depth=one.depth)
    elif item.kind == "system_prompt":
        yield from _prohibited(item)
    elif is_unreadable(item):
        yield Quote(UNREADABLE, item.message, user=True, pasted=True)
    elif item.kind in MEDIA_TYPES and item.inside is None and item.role == "user":
        yield Quote(_attached(item), item.message, user=True, pasted=True)


def _prohibited(item: Item) -> Iterator[Quote]:
    """Yield the prohibitions of a system or developer message, unless it is long."""
    is_element = _TAG.match(item.text.lstrip()) is not None
    if len(item.text) <= (_LONGEST_ELEMENT if is_element else _LONGEST_SYSTEM):
        for one in pieces_of(_TAG.sub("", item.text), of_agent=True):
            if cues_of().negations.found_in(one.text) and cues_of().standing.found_in(one.text):
                yield Quote(f"{item.role}: {one.text}", item.message, user=True)


def is_unreadable(item: Item) -> bool:
    """Return whether an item is a summary that only its provider can read."""
    return item.kind == "unknown" and _COMPACTION.search(item.text[:_ENDS]) is not None


def _answered(item: Item, reading: Reading, position: int) -> Quote:
    """Return what the user answered to a tool that asks, with the texts of the question."""
    call = reading.items[reading.partners[position]] if position in reading.partners else None
    asked = re.findall(r'"((?:[^"\\]|\\.)*[?？])"', call.text) if call is not None else []
    text = shortened(one_line(words_of(item.text)), _LONGEST_ANSWER)
    unsaid = (one for one in dict.fromkeys(asked) if one not in text)
    question = shortened(one_line(" ".join(unsaid)), _LONGEST_QUESTION)
    text += f"{ASKED}{question}]" if question else ""
    return Quote(text, item.message, user=True)


def _attached(item: Item) -> str:
    # The bytes may be long, and stand between the names.
    ends = f"{item.text[:_ENDS]}\n{item.text[-_ENDS:]}"
    found = [shortened(one_line(name), _LONGEST_NAME) for name in _NAMES.findall(ends)]
    names = dict.fromkeys((*found, *filter(None, (item.media_type,))))
    return f"[attached {item.kind}: {', '.join(names)}]" if names else f"[attached {item.kind}]"


_ORDER, _STRONGER, _MOST_STRONGER, _ERRAND = 4.0, 1.5, 3, 1.0
_EXACT, _NAMED, _WISH, _QUESTION = 2.0, 2.0, 1.5, -2.0


# Bytes of a short message: of UTF-8, where a letter counts for what it says. The user's last
# messages, which are not settled yet.
_SHORT, _NEWEST = 64, 3


def with_briefs(quotes: Iterable[Quote], cues: Cues, *, goes_on: bool) -> Iterator[Quote]:
    """Yield the quotes of the user, marked those of short messages before the newest three.

    A message with the words of an order that binds later work is not one. Without `goes_on`, that
    the user said more since the last summary, none is marked.
    """
    newest = deque[list[Quote]]()
    for _, group in groupby(quotes, key=lambda one: one.message):
        newest.append(list(group))
        if len(newest) > _NEWEST:
            pieces = newest.popleft()
            is_one = goes_on and (len(pieces) == 1 or pieces[0].message < 0)
            if is_one and all(_is_brief(one, cues) for one in pieces):
                pieces = [one._replace(brief=True) for one in pieces]
            yield from pieces
    yield from (one for pieces in newest for one in pieces)


def _is_brief(one: Quote, cues: Cues) -> bool:
    if one.pasted or len(one.text.encode(errors="replace")) > _SHORT:
        return False
    binds = cues.orders.count_in(one.text) > cues.errands.count_in(one.text)
    return not (binds or cues.negations.found_in(one.text))


def weight_of(said: str, cues: Cues) -> tuple[float, bool]:
    """Return the weight of a piece of the user by its words, and whether it binds later work."""
    text = said.partition(ASKED)[0]
    weight = _EXACT if values_in(text) else 0
    weight += _NAMED if NAME.search(text) else 0
    weight += _QUESTION if text.endswith(_QUESTION_MARK) else 0
    strength = cues.orders.count_in(text)
    if strength:
        weight += _ORDER + _STRONGER * min(strength - 1, _MOST_STRONGER)
        weight -= _ERRAND if cues.errands.count_in(text) >= strength else 0
    weight += _WISH * min(cues.wishes.count_in(text), 2)
    return weight, strength > 0
