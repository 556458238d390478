"""The lines of a text: which were pasted, and which a program broke in the middle of a sentence.

Typed text binds the agent; pasted text is mostly there to be read. The structure shows the
difference: a fence of code, a quotation, an element with a compound name, consecutive lines with
more signs and values than words, and any text that is longer than a person types, except for its
beginning and its end.
"""

from __future__ import annotations

import re
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.writing import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
# Elements that hold the task where nothing stands outside of elements.
_DESCRIBED = re.compile(r"(?<=<)(/?(?:[A-Za-z.]+[-_])+)(?:description|statement)>")
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
# The widths at which programs break lines, and what they leave free. A text was broken at the
# length of its longest line if so many lines, and such a share of them, have no room for the first
# word of the next.
_LEAST_WIDTH, _MOST_WIDTH, _RAGGED = 56, 200, 8
_LEAST_BROKEN, _BROKEN = 3, 0.8
# Characters of a paragraph: a longer one is not joined any further.
_LONGEST_PARAGRAPH = 4_000
_CODE_SPAN = re.compile(r"`[^`]*(?:`|$)")
_ENDS_LINE = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；")
# Words of a heading that excludes what is below it.
_LONGEST_EXCLUDING = 4
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NEGATIONS = [word for language in SHIPPED for word in language.negating]
_NEGATING = re.compile(
    rf"(?i:\b(?:{'|'.join(re.escape(one) for one in _NEGATIONS if one.isascii())})\b)"
    rf"|{'|'.join(one for one in _NEGATIONS if not one.isascii())}"
)
_SIGNS = re.compile(r"[{}()\[\]<>;=|\\\":/_@$&*+]")
_WITH_VALUE = re.compile(r"[\d=]\S*")


class Line(NamedTuple):
    """A line of a text."""

    text: str
    pasted: bool = False


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines that say something, bullets kept; what programs print comes in runs."""
    run: list[Line] = []
    lines = list(_marked_lines(text))
    if all(line.pasted for line in lines) and _DESCRIBED.search(text):
        lines = list(_marked_lines(_DESCRIBED.sub(r"\1task>", text)))
    for line in lines:
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
    excluded = ""
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
                heading = None if fenced or marked else _HEADING.match(line)
                excluded = _excluded(line[heading.end() :]) if heading else excluded
                words = _TAG.sub("", line) if marked else line
                if SAYS.search(words):
                    quoted = line.startswith("> ") or heading is not None
                    pasted = fenced or marked or quoted or printed or is_error
                    yield Line(words.rstrip() if pasted else _under(excluded, words), pasted)


def _excluded(heading: str) -> str:
    """Return the heading if what is below it is what shall not be, such as `Out of scope`."""
    heading = heading.strip(" #:：")
    return heading if spoken_words(heading) <= _LONGEST_EXCLUDING and negates(heading) else ""


def _under(heading: str, line: str) -> str:
    """Return a line with the heading that it means the opposite without."""
    line = line.rstrip()
    if not heading:
        return line
    bullet = BULLET.match(line)
    at = bullet.end() if bullet else 0
    return f"{line[:at]}{heading}: {line[at:].lstrip()}"


def _brackets(line: str) -> int:
    """Return how many brackets a line opens and does not close."""
    return sum(map(line.count, "{[(")) - sum(map(line.count, "}])"))


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Join the lines that an editor or a mail program has broken between two words."""
    joined: list[str] = []
    fenced = False
    before = ""
    width = _width(lines)
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif joined and not fenced and len(joined[-1]) <= _LONGEST_PARAGRAPH:
            broken = width and _are_prose(before, line) and not _fits(before, line, width)
            if broken or _goes_on(joined[-1], line) or _is_inside_marks(joined[-1], line):
                joined[-1] = f"{joined[-1].rstrip()} {line.strip()}"
                before = line
                continue
        joined.append(line)
        before = line
    return joined


def _width(lines: Sequence[str]) -> int:
    """Return the width at which a program broke the lines of a text; 0 if none did."""
    longest = max(map(len, lines), default=0)
    if longest < _LEAST_WIDTH:
        return 0
    pairs = [pair for pair in pairwise(lines) if _are_prose(*pair, both=True)]
    width = max((len(line) for line, _ in pairs), default=0)
    broken = sum(not _fits(line, after, width) for line, after in pairs)
    found = broken >= max(_LEAST_BROKEN, _BROKEN * len(pairs))
    return width if found and _LEAST_WIDTH <= width <= _MOST_WIDTH else 0


def _are_prose(line: str, after: str, *, both: bool = False) -> bool:
    """Whether two lines may be one sentence: they are prose, one or both, and begin nothing."""
    if not line.strip() or not after.strip() or line.rstrip().endswith((":", "：")):
        return False
    if BULLET.match(after) or _HEADING.match(line) or _HEADING.match(after):
        return False
    words, next_words = _CODE_SPAN.sub("x", line.strip()), _CODE_SPAN.sub("x", after.strip())
    if _ONLY_TAG.fullmatch(after) or after.lstrip().startswith(("> ", "|")):
        return False
    printed = _is_printed(words) + _is_printed(next_words)
    return printed == 0 if both else printed < 2  # noqa: PLR2004


def _fits(line: str, after: str, width: int) -> bool:
    """Whether a line has room for the first word of the next."""
    return len(line.rstrip()) + 1 + len(after.split(None, 1)[0]) <= width - _RAGGED


def _is_inside_marks(line: str, after: str) -> bool:
    """Whether a line ends inside of brackets, or of code, that the next one closes."""
    if len(line) < _SHORTEST_WRAPPED or not _are_prose(line, after):
        return False
    return (opens_code(line) and "`" in after) or (
        line.count("(") > line.count(")") and after.count(")") > after.count("(")
    )


def opens_code(text: str) -> bool:
    """Whether code in a sentence begins and does not end."""
    return text.count("`") % 2 == 1


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


def spoken_words(text: str) -> int:
    """Return about how many words a short text has, two characters of Chinese being one."""
    return len(text.split()) + len(_CJK.findall(text)) // 2


def negates(text: str) -> bool:
    """Whether what is below a line is what shall not be."""
    return _NEGATING.search(text) is not None
