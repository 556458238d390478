"""The sentences of a text, in the writer's own words."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.lines import (
    BULLET,
    SAYS,
    Line,
    ends_typed,
    lines_of,
    negates,
    opens_code,
    spoken_words,
)
from policyctx.compaction.extractive.writing import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of a longer text only both ends are read; no one types as much.
_MOST_READ = 400_000
# Of what was pasted this many sentences are enough to choose from.
_MOST_PASTED = 1_000
# Characters of a sentence: a longer one is cut where clauses meet; a word so long loses its middle.
_LONGEST = 480
_LONGEST_CLAUSE = 240
# Words that a list and what leads to it may have to be one sentence.
_LONGEST_LIST = 40
# Words of a lead that is the label of what follows it.
_LONGEST_LABEL = 3
# Words of a lead that each entry of its list repeats, and of one that turns the entries around.
_SHORT_LEAD, _LONGEST_NEGATING = 3, 14


def _both_cases(words: Iterable[str]) -> list[str]:
    return [form for word in words for form in (word, word.capitalize())]


def _none_before(words: Iterable[str], end: str) -> str:
    """Return the pattern of a place that none of the words is before."""
    forms: dict[int, list[str]] = {}
    for form in _both_cases(words):
        forms.setdefault(len(form), []).append(re.escape(form))
    return "".join(rf"(?<!\b(?:{'|'.join(same)}){end})" for same in forms.values())


_ABBREVIATED = r"(?<!\b[A-Z]\.)" + _none_before(
    (word for language in SHIPPED for word in language.abbreviations), r"\."
)
_MONTHS = "|".join(_both_cases(month for language in SHIPPED for month in language.months))
_DEPENDENTS = [word for language in SHIPPED for word in language.dependents]
_ARTICLES = [word for language in SHIPPED for word in language.before_ordinal]
# "14. März", "im 3. Stock": the full stop of an ordinal.
_NO_ORDINAL = (
    rf"(?!(?<=\d\.)\s+(?:{_MONTHS})\b)"
    + _none_before(_ARTICLES, r" \d\.")
    + _none_before(_ARTICLES, r" \d\d\.")
)
# "ch. 2", "No. 7", "Abs. 3": a short word may well be one before a number, or a shorter one before
# a small letter, such as "ca. ten".
_SHORT_BEFORE = "".join(rf"(?<!\b\w{{{length}}}\.)" for length in range(1, 5))
_SHORTER_BEFORE = "".join(rf"(?<!\b\w{{{length}}}\.)" for length in range(1, 4))
# Only after one of these; that it is looked at first makes the search fast.
_MAY_END = r"(?<=[.!?\"')\]。！？”」』\uff09])"
_SENTENCE_END = re.compile(
    rf"{_MAY_END}(?:(?:(?<=[.!?]){_ABBREVIATED}{_NO_ORDINAL}|(?<=[.!?][\"')\]]))\s+(?=[^a-z\s\d])"
    rf"|(?<=[.!?]){_SHORT_BEFORE}\s+(?=\d)"
    rf"|(?<=[.!?]){_SHORTER_BEFORE}\s+(?=[a-z])"
    r"|(?<=[.!?])\s{2,}"
    r"|(?:(?<=[。！？])|(?<=[。！？][”」』\uff09\"]))\s*(?=[^\s。！？”」』\uff09\"]))"
)
_CLAUSE_END = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])")
_ONLY_BRACKETED = re.compile(r"\s*\[[^\]\n]*\]\s*")
_ONLY_NUMBER = re.compile(r"\W*\d{1,2}\.")


class Sentence(NamedTuple):
    """A sentence, without line breaks; `pasted` when its writer hardly typed it."""

    text: str
    pasted: bool = False


def sentences_in(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, in order; what holds no letter or digit is none.

    A list belongs to the line that leads to it. For what is pasted see `pasted`.
    """
    if len(text) > _MOST_READ:
        text = f"{text[: _MOST_READ // 2]}\n{text[-_MOST_READ // 2 :]}"
    if _ONLY_BRACKETED.fullmatch(text):
        return
    sentences = [
        Line(sentence, line.pasted)
        for line in _with_lists_joined(lines_of(text))
        for sentence in _split(line.text)
    ]
    typed = ends_typed(sentences)
    left = _MOST_PASTED
    for i, (sentence, pasted) in enumerate(sentences):
        if i in typed and not pasted:
            yield Sentence(sentence)
        elif left:
            left -= 1
            yield Sentence(sentence, pasted=True)


# Words of a message so short that it is one unit; characters of sentences put together.
_SHORT_MESSAGE = 12
_LONGEST_UNIT = 300
_DEPENDS = re.compile(
    rf"(?i:(?:{'|'.join(re.escape(one) for one in _DEPENDENTS if one.isascii())})\b)"
    rf"|{'|'.join(one for one in _DEPENDENTS if not one.isascii())}"
)


def units_in(text: str, *, short_as_one: bool = True) -> Iterator[Sentence]:
    """Yield the sentences of a text, those together that say nothing without each other.

    That is a sentence with the one before that it depends on ("Use it for…") and, with
    `short_as_one`, a short message of one line.
    """
    sentences = list(sentences_in(text))
    typed = [one.text for one in sentences if not one.pasted]
    is_one_line = short_as_one and "\n" not in text.strip()
    if is_one_line and len(typed) == len(sentences) > 1 and spoken_words(text) <= _SHORT_MESSAGE:
        yield Sentence(_side_by_side(typed))
        return
    unit: Sentence | None = None
    for one in sentences:
        if (
            unit is not None
            and not (unit.pasted or one.pasted)
            and _DEPENDS.match(one.text)
            and len(unit.text) + len(one.text) < _LONGEST_UNIT
        ):
            unit = Sentence(_side_by_side([unit.text, one.text]))
            continue
        if unit is not None:
            yield unit
        unit = one
    if unit is not None:
        yield unit


_ENDS = (".", "!", "?", ";", ":", ",", "。", "！", "？", "；", "：", "，")
# What may follow the sign at the end of a quoted sentence.
_CLOSING = "\"'”\u2019»)]」』\uff09"


def _side_by_side(texts: Iterable[str]) -> str:
    """Return the texts as one, each of which ends as a sentence does."""
    first, *others = texts
    for text in others:
        ended = first.rstrip(_CLOSING).endswith(_ENDS)
        first = f"{first} {text}" if ended else f"{first}; {text}"
    return first


def _with_lists_joined(lines: Iterator[Line]) -> Iterator[Line]:
    """Put the items of a list after what leads to it: into one line when that is short.

    A short lead without a list goes before the line that follows it.
    """
    lead: Line | None = None
    items: list[str] = []
    inside = -1
    for line in lines:
        bullet = BULLET.match(line.text)
        indent = len(line.text) - len(line.text.lstrip())
        if bullet and lead is not None and line.pasted == lead.pasted and indent > inside:
            items.append(line.text[bullet.end() :])
            continue
        plain = line.text[bullet.end() :] if bullet else line.text
        if lead is not None and not items and _goes_before(lead, line):
            plain = f"{lead.text} {plain.strip()}"
        elif lead is not None:
            yield from _led(lead, items)
        lead, items = None, []
        if plain.rstrip().endswith((":", "：")):
            *before, last = _SENTENCE_END.split(plain.strip())
            yield from (Line(sentence, line.pasted) for sentence in before)
            lead = Line(last, line.pasted)
            # An entry of a list leads to what is indented further.
            inside = indent if bullet else -1
        else:
            yield Line(plain, line.pasted)
    if lead is not None:
        yield from _led(lead, items)


def _goes_before(lead: Line, line: Line) -> bool:
    """Whether a lead without a list is a label of the line behind it."""
    is_short = spoken_words(lead.text) <= _LONGEST_LABEL
    return is_short and line.pasted == lead.pasted and not line.text.rstrip().endswith((":", "："))


def _led(lead: Line, items: list[str]) -> Iterator[Line]:
    one = f"{lead.text} {'; '.join(items)}"
    if not items or (len(one.split()) <= _LONGEST_LIST and len(one) <= _LONGEST):
        yield Line(one.rstrip() if items else lead.text, lead.pasted)
        return
    # A lead says nothing without its list, nor an item that is not a sentence without its lead.
    short = 6
    words = spoken_words(lead.text)
    whole = words <= _SHORT_LEAD or (words <= _LONGEST_NEGATING and negates(lead.text))
    for i, item in enumerate(items):
        text = item if i and not whole and len(item.split()) > short else f"{lead.text} {item}"
        yield Line(text, lead.pasted)


def _split(line: str) -> Iterator[str]:
    number = ""
    for piece in _pieces(line):
        text = f"{number} {one_line(piece)}" if number else one_line(piece)
        number = text if _ONLY_NUMBER.fullmatch(text) else ""
        if number or not SAYS.search(text):
            continue
        if len(text) <= _LONGEST:
            yield text
        else:
            yield from _clauses(text)
    if number:
        yield number


def _pieces(line: str) -> Iterator[str]:
    """Cut a line where sentences end, but not inside of brackets or code that end soon."""
    if not ("`" in line or "(" in line or "..." in line):
        yield from _SENTENCE_END.split(line)
        return
    start = 0
    for found in _SENTENCE_END.finditer(line):
        if not _is_inside(line, start, found):
            yield line[start : found.start()]
            start = found.end()
    yield line[start:]


def _is_inside(line: str, start: int, found: re.Match[str]) -> bool:
    at = found.start()
    if line.endswith("...", start, at) and line[found.end() : found.end() + 1].islower():
        return True
    if at - start > _LONGEST:
        return False
    before, rest = line[start:at], line[found.end() : start + _LONGEST]
    return (opens_code(before) and "`" in rest) or (
        before.count("(") > before.count(")") and ")" in rest
    )


def _clauses(text: str) -> Iterator[str]:
    """Cut what is too long for a sentence where clauses meet, a long clause between its words."""
    gathered = ""
    for clause in chain.from_iterable(map(_short_clauses, _CLAUSE_END.split(text))):
        if len(gathered) + len(clause) > _LONGEST_CLAUSE and gathered:
            yield shortened(gathered, _LONGEST)
            gathered = ""
        gathered = f"{gathered} {clause}".strip()
    if gathered:
        yield shortened(gathered, _LONGEST)


def _short_clauses(clause: str) -> Iterable[str]:
    return [clause] if len(clause) <= _LONGEST else clause.split(" ")


def shortened(text: str, most: int) -> str:
    """Return the text with at most so many characters: its beginning and its end."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 3].rstrip()} … {text[-end:].lstrip()}"


def one_line(text: str) -> str:
    """Return the text with each run of white space, line breaks among them, as one space."""
    return " ".join(text.split())


_BLOCKS = re.compile(r'\[\{(?:"text":|[^\n]{0,300}?"type":")')


def words_of(text: str) -> str:
    """Return the words of a result: of a list of blocks, the texts in it."""
    # A result that is one large document is not parsed only to see that it has no blocks.
    if not _BLOCKS.match(text):
        return text
    try:
        blocks = json.loads(text)
    except (ValueError, RecursionError):
        return text
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return "\n".join(part for part in texts if isinstance(part, str)) or text
