"""A text as sentences, in the writer's own words; what was pasted is told from what was typed."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.pasted import BULLET, SAYS, Line, lines_of, typed_lines

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

_ABBREVIATED = r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\b[A-Z]\.)"
# "ch. 2", "No. 7", "Abs. 3": a short word may well be one before a number.
_SHORT_BEFORE = "".join(rf"(?<!\b\w{{{length}}}\.)" for length in range(1, 5))
# Only after one of these; that it is looked at first makes the search fast.
_MAY_END = r"(?<=[.!?\"')\]。！？”」』\uff09])"
_SENTENCE_END = re.compile(
    rf"{_MAY_END}(?:(?:(?<=[.!?]){_ABBREVIATED}|(?<=[.!?][\"')\]]))\s+(?=[^a-z\s\d])"
    rf"|(?<=[.!?]){_SHORT_BEFORE}\s+(?=\d)"
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
    lines = list(_with_lists_joined(lines_of(text)))
    typed = typed_lines(lines)
    left = _MOST_PASTED
    for i, line in enumerate(lines):
        pasted = line.pasted or i not in typed
        if pasted and left <= 0:
            continue
        for sentence in _split(line.text):
            left -= pasted
            yield Sentence(sentence, pasted)


def _with_lists_joined(lines: Iterator[Line]) -> Iterator[Line]:
    """Put the items of a list after what leads to it: into one line when that is short."""
    lead: Line | None = None
    items: list[str] = []
    for line in lines:
        bullet = BULLET.match(line.text)
        if bullet and lead is not None and line.pasted == lead.pasted:
            items.append(line.text[bullet.end() :])
            continue
        if lead is not None:
            yield from _led(lead, items)
        lead, items = None, []
        plain = line.text[bullet.end() :] if bullet else line.text
        if plain.rstrip().endswith((":", "：")):
            lead = Line(plain.strip(), line.pasted)
        else:
            yield Line(plain, line.pasted)
    if lead is not None:
        yield from _led(lead, items)


def _led(lead: Line, items: list[str]) -> Iterator[Line]:
    one = f"{lead.text} {'; '.join(items)}"
    if len(one.split()) <= _LONGEST_LIST and len(one) <= _LONGEST:
        yield Line(one, lead.pasted)
        return
    yield lead
    # An item that is no sentence by itself says nothing without its lead.
    short = 6
    for item in items:
        text = item if len(item.split()) > short else f"{lead.text} {item}"
        yield Line(text, lead.pasted)


def _split(line: str) -> Iterator[str]:
    number = ""
    for piece in _SENTENCE_END.split(line):
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
