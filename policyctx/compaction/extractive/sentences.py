"""The sentences of a text, in the writer's own words, and which of them were pasted.

Typed text binds the agent; pasted text is mostly there to be read. The structure shows the
difference: a fence of code, a quotation, an element with a compound name, consecutive lines with
more signs and values than words, and any text that is longer than a person types, except for its
beginning and its end.
"""

from __future__ import annotations

import json
import re
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.writing import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# A text of more words than this was pasted, except what was typed before and after it.
_MOST_TYPED = 400
_TYPED_BEFORE, _TYPED_AFTER = 80, 50
_CHARS_PER_WORD = 8
# The shares of signs, and of words with a value, that printed lines have; and how long a run of
# them was probably pasted.
_MANY_SIGNS, _MANY_VALUES = 0.08, 0.3
_PRINTED_LINES, _PRINTED_CHARS = 6, 600

BULLET = re.compile(r"\s*(?:[-*+•·\u276f>]|\(?\d{1,2}[.)、]|[a-z]\))\s+")
SAYS = re.compile(r"[^\W_]")
_HEADING = re.compile(r"\s*#{1,6}\s")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,200})?>")
_ONLY_TAG = re.compile(r"\s*</?[A-Za-z][\w.-]{0,60}(?:\s[^<>]{0,200})?>\s*")
# Elements whose text the user wrote, though a program put them there: `<command-args>`.
_TYPED_NAME = re.compile(
    r"(?:[A-Za-z.]+[-_])*(?:args|arguments|query|request|task)|command[-_]name"
)
_TYPED = re.compile(
    r"<((?:[A-Za-z.]+[-_])+(?:args|arguments|query|request|task)|command[-_]name)>(.*?)</\1>",
    re.DOTALL,
)
_LINE_ENDS = re.compile(r"[ \t]*(?:\n|$)")
# A prompt of a shell or of an interpreter with a command; the head of a stack trace.
_BEGINS_OUTPUT = re.compile(
    r"\s*(?:(?:\([\w.-]+\)\s*)?(?:[\w.-]+@[\w.-]+[^\n$#%]{0,80})?[$\u276f➜]\s+\S|>>> \S|PS [A-Z]:\\"
    r"|[\w.-]+@[\w.-]+:[^\n#]{0,80}#\s+\S|Traceback \(most recent call last\):)"
)
# The line of an error: an exception, or what a compiler or a runtime begins with.
_BEGINS_ERROR = re.compile(
    r"\s*(?:(?:Uncaught |Unhandled )?(?:[A-Za-z_$][\w.$]*)?(?:Error|Exception)"
    r"(?: ?\[[^\]\n]+\])?: \S"
    r"|error(?:\[\w+\])?: \S|panic: \S|fatal: \S|npm ERR! |node:internal/|at \S+ \([^)\n]*:\d+\))"
)
_QUOTING = re.compile(
    r"(?i:\b(?:"
    + "|".join(re.escape(one) for language in SHIPPED for one in language.quoting if one.isascii())
    + r"))\s*[:：]\s*$|(?:"
    + "|".join(one for language in SHIPPED for one in language.quoting if not one.isascii())
    + r")\s*[:：]\s*$"
)
# Characters of a line that a program may have broken, and what it then does not end with.
_SHORTEST_WRAPPED = 40
_ENDS_LINE = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；")
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
        printed = leads = False
        opened = 0
        lines = piece.split("\n") if marked else _unwrapped(piece.split("\n"))
        for line, after in zip_longest(lines, lines[1:], fillvalue=""):
            if line.lstrip().startswith(("```", "~~~")):
                fenced = not fenced
                continue
            if not line.strip():
                printed, opened = False, 0
            elif leads and not BULLET.match(line):
                printed, leads = True, False
            elif _BEGINS_OUTPUT.match(line) and after.strip():
                printed = True
            # The text of an error goes on where a bracket is open, or indented.
            is_error = _BEGINS_ERROR.match(line) is not None
            if line.strip():
                is_error = is_error or (opened != 0 and (opened > 1 or line[0].isspace()))
                opened = max(1, opened + _brackets(line) + (opened == 0)) if is_error else 0
                leads = _QUOTING.search(line) is not None
            if SAYS.search(line) and not _ONLY_TAG.fullmatch(line):
                quoted = line.startswith("> ") or _HEADING.match(line) is not None
                words = _TAG.sub("", line) if marked else line
                if SAYS.search(words):
                    yield Line(words.rstrip(), fenced or marked or quoted or printed or is_error)


def _brackets(line: str) -> int:
    """Return how many brackets a line opens and does not close."""
    return sum(map(line.count, "{[(")) - sum(map(line.count, "}])"))


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Join the lines that an editor or a mail program has broken between two words."""
    joined: list[str] = []
    fenced = False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif joined and not fenced and _goes_on(joined[-1], line):
            joined[-1] = f"{joined[-1].rstrip()} {line.strip()}"
            continue
        joined.append(line)
    return joined


def _goes_on(line: str, after: str) -> bool:
    """Whether a line is the middle of a sentence that the next line, in small letters, goes on."""
    last = line.rsplit("\n", 1)[-1]
    if len(last) < _SHORTEST_WRAPPED or last.rstrip().endswith(_ENDS_LINE):
        return False
    first = after.lstrip()
    is_plain = not (BULLET.match(after) or _HEADING.match(after) or _is_printed(line))
    return is_plain and first[:1].islower() and not _is_printed(after.strip())


def _outside_and_inside_marks(text: str) -> Iterator[tuple[str, bool]]:
    """Cut a text where a program's elements begin and end; each piece with whether it is inside.

    What the user gave a command is inside its element, and was typed all the same.
    """
    at = 0
    for start, end in _marks(text):
        yield text[at:start], False
        inner = start
        for typed in _TYPED.finditer(text, start, end):
            yield text[inner : typed.start()], True
            yield typed[2], False
            inner = typed.end()
        yield text[inner:end], True
        at = end
    yield text[at:], False


def _marks(text: str) -> list[tuple[int, int]]:
    """Return where the outermost elements of programs stand, in order.

    Those have a compound name, or stand on lines of their own.
    """
    opened: dict[str, list[int]] = {}
    closed: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        name = tag[2]
        compound = "-" in name or "_" in name
        if _TYPED_NAME.fullmatch(name) and "command" not in name:
            continue
        if not tag[1]:
            before = text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()]
            if compound or not before.strip():
                opened.setdefault(name, []).append(tag.start())
        elif opened.get(name):
            start = opened[name].pop()
            lines_of_its_own = "\n" in text[start : tag.end()] and _ends_line(text, tag.end())
            if compound or lines_of_its_own:
                closed.append((start, tag.end()))
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(closed):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    return outermost


def _ends_line(text: str, at: int) -> bool:
    return _LINE_ENDS.match(text, at) is not None


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
# Words of a lead that is the label of what follows it.
_LONGEST_LABEL = 3


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
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DEPENDS = re.compile(
    rf"(?i:(?:{'|'.join(re.escape(one) for one in _DEPENDENTS if one.isascii())})\b)"
    rf"|{'|'.join(one for one in _DEPENDENTS if not one.isascii())}"
)


def units_in(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, those together that say nothing without each other.

    That is a short message of one line, and a sentence with the one before that it depends on
    ("Use it for…").
    """
    sentences = list(sentences_in(text))
    typed = [one.text for one in sentences if not one.pasted]
    is_one_line = "\n" not in text.strip()
    if is_one_line and len(typed) == len(sentences) > 1 and _spoken(text) <= _SHORT_MESSAGE:
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


def _spoken(text: str) -> int:
    """Return about how many words a short text has, two characters of Chinese being one."""
    return len(text.split()) + len(_CJK.findall(text)) // 2


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
    is_short = _spoken(lead.text) <= _LONGEST_LABEL
    return is_short and line.pasted == lead.pasted and not line.text.rstrip().endswith((":", "："))


def _led(lead: Line, items: list[str]) -> Iterator[Line]:
    one = f"{lead.text} {'; '.join(items)}"
    if not items or (len(one.split()) <= _LONGEST_LIST and len(one) <= _LONGEST):
        yield Line(one.rstrip() if items else lead.text, lead.pasted)
        return
    # A lead says nothing without its list, nor an item that is not a sentence without its lead.
    short = 6
    for i, item in enumerate(items):
        text = item if i and len(item.split()) > short else f"{lead.text} {item}"
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
