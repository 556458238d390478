"""A text as sentences, in the writer's own words; what was pasted is told from what was typed."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of a longer text only both ends are read; no one types as much.
_MOST_READ = 400_000
# A text of more words than this was pasted, but for what was typed before and after it.
_MOST_TYPED = 400
_TYPED_BEFORE, _TYPED_AFTER = 120, 60
# Characters of a sentence: a longer one is cut where clauses meet; a word so long loses its middle.
_LONGEST = 480
_LONGEST_CLAUSE = 240
# Words that a list and what leads to it may have to be one sentence.
_LONGEST_LIST = 40

_ABBREVIATED = r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\b[A-Z]\.)"
_SENTENCE_END = re.compile(
    rf"(?:(?<=[.!?]){_ABBREVIATED}|(?<=[.!?][\"')\]]))\s+(?=[^a-z\s])"
    r"|(?<=[.!?])\s{2,}"
    r"|(?:(?<=[。！？])|(?<=[。！？][”」』\uff09\"]))(?=[^\s。！？”」』\uff09\"])"
)
_CLAUSE_END = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])")
_BULLET = re.compile(r"\s*(?:[-*+•·\u276f>]|\(?\d{1,2}[.)、]|[a-z]\))\s+")
_HEADING = re.compile(r"\s*#{1,6}\s")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,200})?>")
_ONLY_TAG = re.compile(r"\s*</?[A-Za-z][\w.-]{0,60}(?:\s[^<>]{0,200})?>\s*")
_ONLY_BRACKETED = re.compile(r"\s*\[[^\]\n]*\]\s*")
_SIGNS = re.compile(r"[{}()\[\]<>;=|\\\":/_@$&*+]")
# The share of signs, and the lines in a row, that show what a program printed.
_MANY_SIGNS, _PRINTED_RUN = 0.08, 3
_SAYS = re.compile(r"[^\W_]")
_SPACES = re.compile(r"\s+")
_ONLY_NUMBER = re.compile(r"\W*\d{1,2}\.")


class Sentence(NamedTuple):
    """A sentence, without line breaks; `pasted` when its writer hardly typed it."""

    text: str
    pasted: bool = False


def sentences_in(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, in order; what holds no letter or digit is none.

    A list belongs to the line that leads to it. Pasted is what stands in a fence of code, in a
    quotation, among lines that a program printed, in an element whose name is compound (a program's
    mark, such as `<command-output>`), and what is long, but for its beginning and its end.
    """
    if len(text) > _MOST_READ:
        text = f"{text[: _MOST_READ // 2]}\n{text[-_MOST_READ // 2 :]}"
    if _ONLY_BRACKETED.fullmatch(text):
        return
    lines = list(_with_lists_joined(_lines(text)))
    typed = _typed(lines)
    for i, line in enumerate(lines):
        for sentence in _split(line.text):
            yield Sentence(sentence, line.pasted or i not in typed)


def _lines(text: str) -> Iterator[Sentence]:
    """Yield the lines that say something, bullets kept; what programs print comes in runs."""
    run: list[Sentence] = []
    for line in _marked_lines(text):
        if _is_printed(line.text):
            run.append(line)
            continue
        yield from _printed(run)
        run = []
        yield line
    yield from _printed(run)


def _printed(run: list[Sentence]) -> Iterator[Sentence]:
    for line in run:
        yield Sentence(line.text, pasted=line.pasted or len(run) >= _PRINTED_RUN)


def _is_printed(line: str) -> bool:
    """Whether a line looks like code or the output of a program: too many signs for words."""
    if _BULLET.match(line):
        return False
    signs = len(_SIGNS.findall(line))
    return signs >= _MANY_SIGNS * len(line) or line.startswith(("    ", "\t"))


def _marked_lines(text: str) -> Iterator[Sentence]:
    """Yield the lines that say something; pasted are those in a fence, an element, a quotation."""
    fenced = False
    for piece, marked in _outside_and_inside_marks(text):
        for line in piece.split("\n"):
            if line.lstrip().startswith(("```", "~~~")):
                fenced = not fenced
            elif _SAYS.search(line) and not _ONLY_TAG.fullmatch(line):
                quoted = line.startswith("> ") or _HEADING.match(line) is not None
                text = _TAG.sub("", line) if marked else line
                if _SAYS.search(text):
                    yield Sentence(text.rstrip(), fenced or marked or quoted)


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


def _with_lists_joined(lines: Iterator[Sentence]) -> Iterator[Sentence]:
    """Put the items of a list after what leads to it: into one line when that is short."""
    lead: Sentence | None = None
    items: list[str] = []
    for line in lines:
        bullet = _BULLET.match(line.text)
        if bullet and lead is not None and line.pasted == lead.pasted:
            items.append(line.text[bullet.end() :])
            continue
        if lead is not None:
            yield from _led(lead, items)
        lead, items = None, []
        plain = line.text[bullet.end() :] if bullet else line.text
        if plain.rstrip().endswith((":", "：")):
            lead = Sentence(plain.strip(), line.pasted)
        else:
            yield Sentence(plain, line.pasted)
    if lead is not None:
        yield from _led(lead, items)


def _led(lead: Sentence, items: list[str]) -> Iterator[Sentence]:
    one = f"{lead.text} {'; '.join(items)}"
    if len(one.split()) <= _LONGEST_LIST and len(one) <= _LONGEST:
        yield Sentence(one, lead.pasted)
        return
    yield lead
    # An item that is no sentence by itself says nothing without its lead.
    short = 6
    for item in items:
        text = item if len(item.split()) > short else f"{lead.text} {item}"
        yield Sentence(text, lead.pasted)


def _typed(lines: list[Sentence]) -> set[int]:
    """Return the positions of the lines that were typed: all, or the ends of a long text."""
    sizes = [max(len(line.text.split()), len(line.text) // 8) for line in lines]
    if sum(sizes) <= _MOST_TYPED:
        return set(range(len(lines)))
    typed: set[int] = set()
    for order, most in (
        (range(len(lines)), _TYPED_BEFORE),
        (range(len(lines))[::-1], _TYPED_AFTER),
    ):
        seen = 0
        for i in order:
            seen += sizes[i]
            if seen > most:
                break
            typed.add(i)
    return typed


def _split(line: str) -> Iterator[str]:
    number = ""
    for piece in _SENTENCE_END.split(line):
        text = f"{number} {_SPACES.sub(' ', piece).strip()}".lstrip()
        number = text if _ONLY_NUMBER.fullmatch(text) else ""
        if number or not _SAYS.search(text):
            continue
        yield from [text] if len(text) <= _LONGEST else _clauses(text)
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
    """Return the text without line breaks."""
    return _SPACES.sub(" ", text).strip()
