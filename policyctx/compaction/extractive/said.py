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
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter
from typing import NamedTuple

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.languages import Cues, cues_of
from policyctx.compaction.extractive.texts import (
    BARE_PROMPT,
    NAME,
    QUOTED,
    one_line,
    pieces_of,
    shortened,
    values_in,
    words_of,
)
from policyctx.definitions.items import MEDIA_TYPES, Item
from policyctx.messages.reading import Reading
from policyctx.tokens.encoders import words_in

# Characters of a question of a tool that asks, and of the answer.
_LONGEST_QUESTION, _LONGEST_ANSWER = 300, 480
_QUESTION_MARK = ("?", "？")
_TAG = re.compile(r"</?[A-Za-z][\w -]*>")
# Characters of a name that are shown.
_LONGEST_NAME = 80
# How messages of an agent's program begin: with the result of a command in a reply, or refusing it.
_RETURNED = re.compile(r"\s*<returncode>")
REFUSED = re.compile(r".{0,99}\bEXACTLY ONE\b.{0,99}\bfound \d+ actions", re.DOTALL)
# A message of a client about a task in the background, and how it says that all went well.
_NOTICE = re.compile(
    r"\s*<([\w-]*notification)>.*?<output-file>([^<]+)</.*</\1>\s*(?:[^\n]*\2\s*)?\Z", re.DOTALL
)
_WENT_WELL = re.compile(r"<status>completed<(?!.*exit code [1-9])", re.DOTALL)
# Pieces of either end that are kept of an earlier message of the agent, and of the user.
_MOST_PIECES, _TYPED_PIECES = 125, 12
# A line of the agent's that is for its client alone.
_DIRECTIVE = re.compile(r"^::[\w-]+\{[^\n]*\}[ \t]*$", re.MULTILINE)
# Words of an answer, such as which option is taken; the newest is kept longest.
SHORT_ANSWER = 3
# Words of what says more than what the agent does next.
REPLY = 30
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
# Where the names of an attachment are looked for, and the words of a note: at the ends.
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
    last: bool = False
    """Whether it is of the agent's last messages, or an aim in an earlier summary."""
    working: bool = False
    """Whether the agent said it before its calls."""
    gap: int = 0
    """1 if pieces before it were left out, and one more for each that no summary has room for."""
    depth: int = 0
    """How many titles and leads of its message it is under."""
    ago: int = 0
    """How many calls came after it, if the agent said it."""
    inner: bool = False
    """Whether it is in the middle of a long message and no rule, or says how things stood."""


def place_of(one: Quote) -> int:
    """Return what the order of the conversation goes by: below 0 the lower number is later."""
    return one.message if one.message >= 0 else -sys.maxsize - one.message


def replies_in(quotes: Iterable[Quote]) -> set[int]:
    """Return which messages are short replies of the user to a question of the agent."""
    found, before = set[int](), ""
    for one in quotes:
        if before.endswith(_QUESTION_MARK) and one.user and words_in(one.text) <= SHORT_ANSWER:
            found.add(one.message)
        before = "" if one.user else one.text
    return found


def quotes_in(history: History, reading: Reading, skipped: frozenset[int]) -> Iterator[Quote]:
    """Yield what was said, in order; what the agent said before its calls only of the last turn."""
    kept, last, notes, typed = _of_agent(history, reading, skipped)
    closing = next((item.text for item in reversed(reading.items) if item.message in last), "")
    is_answered = is_answer(closing) and not notes
    for position, item in enumerate(reading.items):
        if item.message in skipped:
            continue
        author = _author_of(item, history)
        if item.kind != "assistant_message":
            found = _not_agents(item, author, reading, position)
            is_newest = item.message >= typed
            yield from ends_of(found, is_newest=is_newest, is_answered=is_answered)
        elif item.message in kept:
            is_last = item.message in last
            found = (
                Quote(
                    one.text,
                    item.message,
                    user=False,
                    last=is_last,
                    working=item.message in notes,
                    depth=one.depth,
                )
                for one in pieces_of(_DIRECTIVE.sub("", item.text), of_agent=True)
            )
            yield from found if is_last else ends_of(found, is_newest=False, most=_MOST_PIECES)


def ends_of(
    quotes: Iterable[Quote],
    *,
    is_newest: bool,
    is_answered: bool = False,
    most: int = _TYPED_PIECES,
) -> Iterator[Quote]:
    """Yield of each message the quotes of its ends, and the rules between.

    Of the newest message all are yielded. Of the prompt of a command, once it is answered or in an
    earlier message, one line stands for it.
    """
    for _, group in groupby(quotes, attrgetter("message")):
        pieces = _without_template(group, is_open=is_newest and not is_answered)
        rest, is_gap = deque[Quote](), False
        yield from islice(pieces, most)
        for one in pieces:
            rest.append(one)
            if len(rest) <= most:
                continue
            middle = rest.popleft()
            is_inner = not cues_of().standing.found_in(middle.text)
            if is_newest or not is_inner:
                yield middle._replace(inner=is_inner, gap=middle.gap or int(is_gap))
            is_gap = is_inner and not is_newest
        yield from (one._replace(gap=one.gap or 1) for one in islice(rest, int(is_gap)))
        yield from islice(rest, int(is_gap), None)


def is_answer(text: str) -> bool:
    """Return whether the agent's last words end a turn, and ask nothing."""
    return bool(text) and not text.rstrip().endswith(_QUESTION_MARK)


def _without_template(quotes: Iterator[Quote], *, is_open: bool) -> Iterator[Quote]:
    """Yield the quotes of a message, of a prompt the line that stands for it unless it is open."""
    first = next(quotes)
    is_bare = first.pasted and first.text.startswith(f"[{BARE_PROMPT},")
    yield first
    yield from (one for one in quotes if is_open or not (is_bare and one.text.startswith(QUOTED)))


def _of_agent(
    history: History, reading: Reading, skipped: frozenset[int]
) -> tuple[set[int], set[int], set[int], int]:
    """Return the agent's messages that are quoted, the last of them, and those of its work.

    The fourth is the position of the user's last message.

    Of each turn the messages behind its calls are quoted, and what the user's last message
    interrupted; of a turn that goes on the last one, and all that say more than what the agent does
    next. The first of these is a reply, without which the user's message looks open. A short reply
    to a notice that a task went well is not quoted.
    """
    kept, notes, said, stopped = set[int](), list[Item](), list[Item](), list[Item]()
    reply, told, is_asked, is_noted, typed = list[Item](), list[Item](), False, False, -1
    for item in (one for one in reading.items if one.message not in skipped):
        if item.kind == "assistant_message" and item.text:
            if not (is_noted and said and words_in(item.text[:_ENDS]) < REPLY):
                said.append(item)
        elif item.kind == "tool_call" or _RETURNED.match(item.text):
            reply = said[:1] if is_asked and said else reply
            is_asked = is_asked and not said
            told += (one for one in said if words_in(one.text[:_ENDS]) >= REPLY)
            notes, said, is_noted = said or notes, [], False
        elif _is_typed(item, history):
            kept.update(one.message for one in said)
            stopped = [] if said else notes[-1:] or stopped
            notes, said, reply, told, is_asked, typed = [], [], [], [], True, item.message
            is_noted = False
        elif REFUSED.match(item.text):
            del said[-1:]
        elif _NOTICE.match(item.text):
            is_noted = _WENT_WELL.search(item.text) is not None
    reply = [one for one in reply if words_in(one.text[:_ENDS]) >= REPLY]
    last = {one.message for one in said[-1:] or (*reply, *notes[-1:])}
    left = said or ([] if last else stopped)
    working = set[int]() if said else last | {one.message for one in told}
    return kept | last | working | {one.message for one in left}, last, working, typed


def _author_of(item: Item, history: History) -> str:
    is_programs = any(one.match(item.text) for one in (_RETURNED, REFUSED, _NOTICE))
    return "program" if is_programs else history.author_of(item)


def _is_typed(item: Item, history: History) -> bool:
    is_users = item.kind == "user_message" and _author_of(item, history) != "program"
    return is_users and any(not one.text.startswith("[<") for one in pieces_of(item.text))


def _not_agents(item: Item, author: str, reading: Reading, position: int) -> Iterator[Quote]:
    """Yield what the user said in an item, and a line for what is there beside it."""
    if item.kind == "tool_result" and author == "user":
        yield _answered(item, reading, position)
    elif item.kind == "user_message" and author != "program":
        for one in pieces_of(item.text):
            # An element that a program put there says little of what the user wants.
            if not (one.pasted and one.text.startswith("[<")):
                text, pasted, depth = one
                yield Quote(text, item.message, user=True, pasted=pasted, depth=depth)
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
