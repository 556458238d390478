"""The sentences of a text, in the writer's own words, and which of them were pasted.

Typed text binds the agent; pasted text is mostly there to be read. The structure shows the
difference: a fence of code, a quotation, an element with a compound name, consecutive lines with
more signs and values than words, and any text that is longer than a person types, except for its
beginning and its end.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A text of more words than this was pasted, but for what was typed before and after it.
_MOST_TYPED = 400
_TYPED_BEFORE, _TYPED_AFTER = 80, 50
_CHARS_PER_WORD = 8
# The shares of signs, and of words with a value, that printed lines have; and how long a run of
# them was surely pasted.
_MANY_SIGNS, _MANY_VALUES = 0.08, 0.3
_PRINTED_LINES, _PRINTED_CHARS = 6, 600

BULLET = re.compile(r"\s*(?:[-*+•·\u276f>]|\(?\d{1,2}[.)、]|[a-z]\))\s+")
SAYS = re.compile(r"[^\W_]")
_HEADING = re.compile(r"\s*#{1,6}\s")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,200})?>")
_ONLY_TAG = re.compile(r"\s*</?[A-Za-z][\w.-]{0,60}(?:\s[^<>]{0,200})?>\s*")
_SIGNS = re.compile(r"[{}()\[\]<>;=|\\\":/_@$&*+]")
_WITH_VALUE = re.compile(r"[\d=]\S*")


class Line(NamedTuple):
    """A line of a text."""

    text: str
    pasted: bool = False


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines that say something, bullets kept; what programs print comes in runs."""
    run: list[Line] = []
    for line in _marked_lines(text):
        if _is_printed(line.text):
            run.append(line)
            continue
        yield from _printed(run)
        run = []
        yield line
    yield from _printed(run)


def _printed(run: list[Line]) -> Iterator[Line]:
    """Yield lines that look printed, as pasted if there are more of them than a person types."""
    chars = sum(len(line.text) for line in run)
    long = len(run) >= _PRINTED_LINES or (len(run) > 1 and chars >= _PRINTED_CHARS)
    for line in run:
        yield Line(line.text, pasted=line.pasted or long)


def _is_printed(line: str) -> bool:
    """Whether a line looks like code or what a program prints: signs and values, few words."""
    if BULLET.match(line):
        return False
    if len(_SIGNS.findall(line)) >= _MANY_SIGNS * len(line) or line.startswith(("    ", "\t")):
        return True
    return len(_WITH_VALUE.findall(line)) >= _MANY_VALUES * len(line.split())


def _marked_lines(text: str) -> Iterator[Line]:
    """Yield the lines that say something; pasted are those in a fence, an element, a quotation."""
    fenced = False
    for piece, marked in _outside_and_inside_marks(text):
        for line in piece.split("\n"):
            if line.lstrip().startswith(("```", "~~~")):
                fenced = not fenced
            elif SAYS.search(line) and not _ONLY_TAG.fullmatch(line):
                quoted = line.startswith("> ") or _HEADING.match(line) is not None
                text = _TAG.sub("", line) if marked else line
                if SAYS.search(text):
                    yield Line(text.rstrip(), fenced or marked or quoted)


def _outside_and_inside_marks(text: str) -> Iterator[tuple[str, bool]]:
    """Cut a text where a program's elements begin and end; each piece with whether it is inside."""
    at, inside = 0, False
    for start, end in _marks(text):
        yield text[at:start], inside
        yield text[start:end], True
        at = end
    yield text[at:], inside


def _marks(text: str) -> list[tuple[int, int]]:
    """Return where the outermost elements with a compound name stand, in order."""
    opened: dict[str, list[int]] = {}
    closed: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        name = tag[2]
        if "-" not in name and "_" not in name:
            continue
        if not tag[1]:
            opened.setdefault(name, []).append(tag.start())
        elif opened.get(name):
            closed.append((opened[name].pop(), tag.end()))
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(closed):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    return outermost


def ends_typed(sentences: list[Line]) -> set[int]:
    """Return the positions of the sentences that were typed: all, or the ends of a long text."""
    sizes = [0 if sentence.pasted else _words(sentence.text) for sentence in sentences]
    if sum(sizes) <= _MOST_TYPED:
        return set(range(len(sentences)))
    typed: set[int] = set()
    for order, most in (
        (range(len(sentences)), _TYPED_BEFORE),
        (range(len(sentences))[::-1], _TYPED_AFTER),
    ):
        seen = 0
        for i in order:
            if seen >= most:
                break
            seen += sizes[i]
            typed.add(i)
    return typed


def _words(text: str) -> int:
    """Return about how many words a text has, one without spaces as well."""
    return max(len(text.split()), len(text) // _CHARS_PER_WORD)


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
# "ch. 2", "No. 7", "Abs. 3": a short word may well be one before a number, or a shorter one before
# a small letter, such as "ca. ten".
_SHORT_BEFORE = "".join(rf"(?<!\b\w{{{length}}}\.)" for length in range(1, 5))
_SHORTER_BEFORE = "".join(rf"(?<!\b\w{{{length}}}\.)" for length in range(1, 4))
# Only after one of these; that it is looked at first makes the search fast.
_MAY_END = r"(?<=[.!?\"')\]。！？”」』\uff09])"
_SENTENCE_END = re.compile(
    rf"{_MAY_END}(?:(?:(?<=[.!?]){_ABBREVIATED}|(?<=[.!?][\"')\]]))\s+(?=[^a-z\s\d])"
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
            *before, last = _SENTENCE_END.split(plain.strip())
            yield from (Line(sentence, line.pasted) for sentence in before)
            lead = Line(last, line.pasted)
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
