"""The pieces of a text that can be quoted by themselves, and which of them were pasted.

Typed text binds the agent; pasted text is mostly there to be read. The structure shows the
difference: a fence of code, a quotation, an element with a compound name or on lines of its own, a
traceback, a diff, and consecutive lines with more signs and values than words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from policyctx.compaction.extractive.languages import SHIPPED, cues_of
from policyctx.tokens.encoders import CJK, words_in

# Of a longer text only both ends are read.
_MOST_READ = 400_000
# Characters of a piece; a longer sentence is cut between words.
_LONGEST = 480
# A word that no sentence has, such as base64 or minified code, and the characters of it to quote.
_UNBROKEN = re.compile(rf"(?<![^\s{CJK[1:-1]}])[^\s{CJK[1:-1]}]{{{_LONGEST},}}")
_QUOTED_OF_IT = 120
# Many lines that each are one such word, such as checksums or a table.
_COLUMN = re.compile(rf"((?:^[^\s{CJK[1:-1]}]{{16,}}\r?(?:\n|\Z)){{100,}})", re.MULTILINE)
# Words of a title or lead that is repeated before each entry, if it forbids them.
_SHORT_LEAD = 6
# Words of a message that is one piece.
_SHORT_MESSAGE = 12
# A run of so many lines that look printed was pasted.
_PRINTED_LINES = 6
_MANY_SIGNS, _MANY_VALUES = 0.08, 0.3
# Characters before an element that are looked at: it stands on lines of its own, or it does not.
_INDENT = 100
CUT, GAP = " …", "… "
# What the line that stands for the template of a command begins with; the user may give it nothing.
_PROMPT_NAME = "prompt"
BARE_PROMPT = f"{_PROMPT_NAME} without input"
# How a line of such a template begins; nothing that is typed begins so.
QUOTED = "> "

BULLET = re.compile(r"\s*(?:[-*+•·\u276f]|\(?\d{1,2}[.)、]|[a-z]\))\s+")
_SIGN = re.compile(r"^\s*[-*+•·]\s+")
_SAYS = re.compile(r"[^\W_]")
# Brackets on a line of their own, which belong to the line before or behind it.
_CLOSES, _OPENS = re.compile(r"\s*[\])};,]{1,4}\s*"), re.compile(r"\s*[\[({]{1,4}\s*")
# Characters of a line that a program may have broken in a sentence, and how the next goes on.
_SHORTEST_WRAPPED, _GOES_ON = 40, re.compile(r"\s*[a-zà-ÿ][^.)]")
_HEADING = re.compile(r"\s*(#{1,6}) (.+)")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]{0,60})(?:\s[^<>]{0,200})?>")
# Elements whose text the user wrote, though a program put them there.
_TYPED = re.compile(
    r"<((?:[A-Za-z.]+[-_])*(?:args|arguments|query|request|task|description|issue)"
    r"|command[-_]name|rules|requirements|instructions"
    r"|constraints)>(.*?)</\1>",
    re.DOTALL,
)
# How the template of a command begins, with the user's input where its client has put it in, and
# how it speaks of that. The title alone may be the user's own.
_TEMPLATE = re.compile(
    r"\s*(---\n.*?\n---\s*)?#+ ((?:User )?(?:Input|Arguments))\s+(```|~~~)\w*\n(.*?)\3", re.DOTALL
)
_STEPS, _MOST_STEPS = re.compile(r"^\d+\. +\*\*([^*\n]{2,40})", re.MULTILINE), 4
_OF_INPUT = re.compile(r"\buser(?:'s)? input\b|\$ARGUMENTS\b", re.IGNORECASE)
# The prompt of a shell; without output behind it, it may stand for what the user asks for.
_PROMPT = re.compile(
    r"\s*(?:\([\w.-]+\)\s*)?(?:[\w.-]+@[\w.-]+[^\n$#%]{0,80})?[$\u276f➜]\s+\S|>>> \S"
    r"|[\w.-]+@[\w.-]+[^\n$#%]{0,80}[#%]\s+\S"
)
# Lines of programs, each with how the lines begin that belong to it.
_LEADS_OUTPUT = (
    (_PROMPT, re.compile(r".")),
    (re.compile(r"\s*Traceback \(most recent call last\):|On branch \S+$"), re.compile(r".")),
    (re.compile(r"diff --git |@@ -\d|(?:---|\+\+\+) [ab]/"), re.compile(r"[-+ @\\]|index ")),
)
# Lines of code, of tables and of listings.
_LISTED = re.compile(r" {4}|\t|[^|\n]*\|[^|\n]*\||\s*\|\s|\S+\(\)$|[\w.-]+\s+: \S+$")
_SIGNS = re.compile(r"[{}()\[\]<>;=|\\\":/_@$&*+]")
_WITH_VALUE = re.compile(r"[\d=]\S*")
_WORDS = re.compile(r"\S+")
_ABBREVIATED = "".join(
    rf"(?<!\b{re.escape(form)}\.)"
    for language in SHIPPED
    for word in language.abbreviations
    for form in (word, word.capitalize())
)
_SENTENCE_END = re.compile(
    rf"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))(?<!\.\.[\"')\]])(?<!\b[A-Z]\.)(?<!\b\d\.)"
    rf"(?<!\b\d\d\.){_ABBREVIATED}\s+(?=[^a-z\s\d])"
    r"|(?<=[!?])\s+(?=[\da-z])|(?<=\w{5}\.)\s+(?=[\da-z])"
    r"|(?:(?<=[。！？])|(?<=[。！？][”」』\uff09]))\s*(?=[^\s。！？”」』\uff09])"
)
_BLOCKS = re.compile(r'\[\{(?:"text":|[^\n]{0,300}?"type":")')


class Piece(NamedTuple):
    """A sentence, a list with its lead, or a line that stands for what was pasted."""

    text: str
    """One line, in the writer's own words."""
    pasted: bool = False
    depth: int = 0
    """How many titles and leads it is under."""


def pieces_of(text: str, *, of_agent: bool = False) -> Iterator[Piece]:
    """Yield the pieces of a text, in order.

    An agent pastes nothing: of its text only a long block in fences, or a column, is not quoted.
    """
    if len(text) > _MOST_READ:
        ends = f"{text[: _MOST_READ // 2]}\n"
        ends += text[-_MOST_READ // 2 :]  # in place, without another copy of the first
        text = ends
    pieces = _pieces(text, of_agent=of_agent)
    first: list[Piece] = []
    whole = ""
    for one in pieces:
        first.append(one)
        whole = f"{whole} {one.text}".lstrip()
        if one.pasted or len(whole) > _LONGEST or words_in(whole) > _SHORT_MESSAGE:
            yield from first
            yield from pieces
            return
    yield from (Piece(whole),) if len(first) > 1 else first


def _pieces(text: str, *, of_agent: bool) -> Iterator[Piece]:
    template = None if of_agent else _TEMPLATE.match(text)
    rest = text[template.end() :] if template else ""
    given = template[4].strip() if template else ""
    is_named = template and (template[1] or _OF_INPUT.search(rest))
    # An empty `Input` may be of a form that the user has filled in below it.
    if template and is_named and (given or template[1] or template[2] != "Input"):
        # Without an input the template itself is what the user wants.
        name = _PROMPT_NAME if given else BARE_PROMPT
        yield Piece(_described(f"{template[1] or ''}{rest}", name), pasted=True)
        inner = _pieces(given or rest, of_agent=False)
        for one in inner:
            yield one if given else Piece(f"{QUOTED}{one.text}", one.pasted, one.depth + 1)
        return
    parts_of = _fenced if of_agent else _parts
    one = Piece("")
    for pasted, parts in groupby(parts_of(text), key=itemgetter(1)):
        if pasted:
            for part, _ in parts:
                if _SAYS.search(_FENCE.sub("", _TAG.sub("", part))):
                    depth = one.depth + one.text.endswith((":", "："))
                    name = "block" if of_agent else "pasted"
                    yield Piece(_described(part, name), pasted=True, depth=depth)
        else:
            typed = "\n".join(part for part, _ in parts)
            for line, is_item, depth in _with_lists(typed, of_agent=of_agent):
                bare = _SIGN.sub("", line)
                for sentence in [bare] if is_item else _sentences_in(bare):
                    for i, said in enumerate(_in_lines(sentence)):
                        # What goes on says little without its beginning.
                        one = Piece(said, depth=depth + bool(i))
                        yield one


_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n?", re.MULTILINE)


def _fenced(text: str, *, is_typed: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, each with whether it is a block in fences too long to quote."""
    for i, part in enumerate(_FENCE.split(text)):
        is_block, is_long = i % 2 == 1, len(part) > _LONGEST
        if is_block and not is_long:
            # A line with a space before it is one piece.
            yield f" {' / '.join(filter(None, map(one_line, part.splitlines())))}", False
        elif is_block or is_typed:
            yield part, is_block
        else:
            yield from ((one, j % 2 == 1) for j, one in enumerate(_COLUMN.split(part)))


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, each with whether it was pasted."""
    at = 0
    if text.lstrip().startswith("<command-"):
        for own in _TYPED.finditer(text):
            if own[2].strip():
                yield from ((text[at : own.start()], True), (own[2], False))
                at = own.end()
        yield text[at:], True
        return
    for start, end in _elements(text):
        yield from _runs(text[at:start])
        inner = start
        for typed in _TYPED.finditer(text, start, end):
            if text[inner : typed.start()].strip() and inner != start:
                yield text[inner : typed.start()], True
            yield from _fenced(typed[2], is_typed=True)
            inner = typed.end()
        if inner == start:
            yield text[start:end], True
        at = end
    yield from _runs(text[at:])


def _elements(text: str) -> list[tuple[int, int]]:
    """Return where the outermost elements of programs stand, in order."""
    opened: dict[str, list[int]] = {}
    closed: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        compound = "-" in tag[2] or "_" in tag[2]
        before = text[max(0, tag.start() - _INDENT) : tag.start()].rpartition("\n")[2]
        if not tag[1] and (compound or not before.strip()):
            opened.setdefault(tag[2], []).append(tag.start())
        elif tag[1] and opened.get(tag[2]):
            start = opened[tag[2]].pop()
            if compound or "\n" in text[start : tag.end()]:
                closed.append((start, tag.end()))
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(closed):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    return outermost


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield runs of lines, each with whether it was pasted: fenced, quoted, or printed.

    A few lines that only look printed may well be typed, and so may a prompt without output.
    """
    begin, typed, count, was, fenced = 0, 0, 0, "", False
    goes_on: re.Pattern[str] | None = None
    for at in chain(_lines_in(text), (None,)):
        line = "" if at is None else text[at]
        fence = line.lstrip().startswith(("```", "~~~"))
        if goes_on is not None and not goes_on.match(line):
            goes_on = None
        goes_on = next((then for lead, then in _LEADS_OUTPUT if lead.match(line)), goes_on)
        certain = fenced or fence or goes_on is not None or line.startswith("> ")
        fenced ^= fence
        # A blank line belongs to what is before it.
        kind = "certain" if certain else "printed" if is_printed(line) else "typed"
        kind = kind if line.strip() or certain else was
        if at is None or (kind != was and at.start > begin):
            end = len(text) if at is None else at.start - 1
            pasted = was == "printed" and count >= _PRINTED_LINES
            if was == "certain":
                pasted = count > 1 or not _PROMPT.match(text[begin:end])
            if pasted:
                if typed < begin:
                    yield text[typed : begin - 1], False
                yield text[begin:end], True
                typed = end + 1
            begin, count = end + 1, 0
        count += bool(line.strip())
        was = kind
    if typed < len(text):
        yield text[typed:], False


def is_printed(line: str) -> bool:
    """Whether a line looks as if a program had printed it."""
    return not BULLET.match(line) and (
        _LISTED.match(line) is not None
        or _count(_SIGNS, line) >= _MANY_SIGNS * len(line)
        or _count(_WITH_VALUE, line) >= _MANY_VALUES * _count(_WORDS, line)
    )


def _count(pattern: re.Pattern[str], text: str) -> int:
    """Return how often a pattern is found; a line may be as long as a whole message."""
    return sum(1 for _ in pattern.finditer(text))


def _described(text: str, name: str) -> str:
    """Return the line that stands for pasted text: what it is, how it begins, and its length."""
    tag, is_prompt = _TAG.match(text.lstrip()), name.startswith(_PROMPT_NAME)
    count, first = 0, ""
    for said in lines_in(text):
        if _SAYS.search(_TAG.sub("", said)):
            count += 1
            is_frame = is_prompt and (_HEADING.match(said) or _OF_INPUT.search(said))
            if not (first or is_frame or _FENCE.match(said)):
                first = _TAG.sub("", one_line(said)).removeprefix("> ").strip()
    # How a prompt begins says less than the names of its steps.
    steps = " / ".join(_STEPS.findall(text)[:_MOST_STEPS]) if is_prompt else ""
    begins = shortened(steps or first, 80 + 80 * is_prompt)
    return f"[{f'<{tag[2]}>' if tag else name}, {count} lines, {len(text):,} characters: {begins}]"


def _lines_in(text: str) -> Iterator[slice]:
    """Yield where each line of a text is."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield slice(at, end)
        at = end + 1
    yield slice(at, len(text))


def lines_in(text: str) -> Iterator[str]:
    """Yield the lines of a text one by one: all of its short lines at once take much memory."""
    return (text[at] for at in _lines_in(text))


def _with_lists(text: str, *, of_agent: bool) -> Iterator[tuple[str, bool, int]]:
    """Yield the lines, each with whether it is one piece, and how many titles and leads lead it.

    An entry of a list, or an indented line, is one piece. A title or lead of the user that forbids
    what is under it is repeated before each of these lines.
    """
    entries = chain(_entries_in(text), (("", None, False, 0),))
    titles = led = 0
    was_item, forbids = False, cues_of().negations.found_in
    # The repeated leads, the outermost first: how many items lead an entry below each, what is
    # repeated there, and how many of these items are not written.
    above = [(0, "", 0)]
    for (line, title, is_item, below), after in pairwise(entries):
        bare = title[2] if title else _SIGN.sub("", line).strip()
        is_lead = not title and bare.rstrip("*_").endswith((":", "："))
        if not is_item and (title or is_lead or was_item):
            led = 0
            del above[1:]
        while is_item and below < above[-1][0]:
            above.pop()
        _, repeated, hidden = above[-1]
        text, is_next_title, is_listed, depth = after
        leads = (title or (is_lead and is_listed)) and text and not is_next_title
        leads = leads and (not is_item or depth > below)
        if leads and not of_agent and words_in(bare) <= _SHORT_LEAD and forbids(bare):
            repeated += f"{bare}{':' * bool(title)} "
            above.append((below + is_item, repeated, hidden + is_item))
            titles = len(title[1]) - 1 if title else titles
        elif title:
            yield line, True, len(title[1]) - 1
            titles = len(title[1])
        elif bare:
            yield f"{repeated}{bare}", is_item or bool(repeated), titles + led + below - hidden
            led = int(bool(led or (is_lead and not is_item)))
        was_item = is_item


def _entries_in(text: str) -> Iterator[tuple[str, re.Match[str] | None, bool, int]]:
    """Yield the lines, each with its title, whether it is an item, and how many items lead it."""
    indents = list[int]()
    for line in filter(None, _whole_lines(_FENCE.sub("", text))):
        title, is_listed = _HEADING.match(line), BULLET.match(line) is not None
        indent = len(line) - len(line.lstrip())
        while indents and (title or indents[-1] >= indent):
            indents.pop()
        yield line, title, not title and (is_listed or line[:1].isspace()), len(indents)
        indents += [indent] * is_listed


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines, with those that a program has broken joined again."""
    parts = list[str]()
    for line in lines_in(text):
        last = parts[-1].rstrip() if parts else ""
        is_wrapped = len(last) >= _SHORTEST_WRAPPED and last[-1] not in ".!?:;。！？：；"
        is_wrapped = is_wrapped and _GOES_ON.match(line) is not None
        if is_wrapped or (last and _CLOSES.fullmatch(line)) or _OPENS.fullmatch(last):
            # What is between two lines of code is a line break.
            parts += (" " if is_wrapped and not is_printed(last) else " / ", line)
        else:
            yield "".join(parts)
            parts = [line]
    yield "".join(parts)


def _sentences_in(line: str) -> Iterator[str]:
    at = 0
    for end in _SENTENCE_END.finditer(line):
        # What is quoted may be a command.
        if not (line.count("`", at, end.start()) % 2 and "`" in line[end.end() :]):
            yield line[at : end.start()]
            at = end.end()
    yield line[at:]


def _in_lines(sentence: str) -> Iterator[str]:
    """Yield a sentence in lines, cut between words where it has any; none if it says nothing.

    Of a word that is longer than a line only the ends are quoted.
    """
    text = _UNBROKEN.sub(lambda word: shortened(word[0], _QUOTED_OF_IT), one_line(sentence))
    if not _SAYS.search(text):
        return
    while len(text) > _LONGEST:
        end = text.rfind(" ", 1, _LONGEST)
        end = end if end > 0 else _LONGEST
        yield text[:end]
        text = text[end:].lstrip()
    yield text


# Where a text is cut: behind such a sign, or between words, if one is so many characters near.
_NEAR = 30
_JOINT = r"(?:[,;·|]\s|[，；、。])"
_UP_TO_JOINT = re.compile(rf".*{_JOINT}|.*\s", re.DOTALL)
_TO_JOINT = re.compile(rf"(?:.*?{_JOINT}|.*?\s)(?=\S)", re.DOTALL)


_REST_OF_WORD = re.compile(r"^[A-Za-z0-9]+(?=.*[^A-Za-z0-9])", re.DOTALL)


def shortened(text: str, most: int, share: int = 4) -> str:
    """Return the text in at most `most` characters: its beginning, and one part of its end."""
    if len(text) <= most:
        return text
    end = most // share
    head, tail = text[: most - end - 3], text[-end:]
    if text[-end - 1].isalnum():  # the end of a word may look like another one
        tail = _REST_OF_WORD.sub("", tail)
    if begins := _UP_TO_JOINT.match(head, max(0, len(head) - _NEAR)):
        head = head[: begins.end()]
    if ends := _TO_JOINT.match(tail, 0, _NEAR):
        tail = tail[ends.end() :]
    return f"{head.rstrip()} … {tail.lstrip()}"


def marked(shown: Iterable[str], lines: Sequence[str]) -> str:
    """Return those of the lines that are shown, each text once; ` … ` marks missing ones."""
    left, words, before = set(shown), "", -1
    for i, line in enumerate(lines):
        if line in left:
            left.remove(line)
            words += f"{' / ' if before == i - 1 else ' … '}{line}" if words else line
            before = i
    return words


def one_line(text: str) -> str:
    """Return the text with each run of white space, line breaks among them, as one space."""
    line = " ".join(text.split())
    return text if line == text else line  # the same object, of which many are kept


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


_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,120})\"|“([^”\n]{1,120})”|「([^」\n]{1,120})」"
)
_CJK_NUMBER = re.compile(
    "(?:周|星期)[一二三四五六日天]"
    "|(?:[二两三四五六七八九][十百千万亿]|十[一二两三四五六七八九])[零一二两三四五六七八九十百千万亿半]*"
    "|[零二两三四五六七八九十百千万亿半]+(?=[点天个小分秒米次月年号元块人页行条倍周])"
)
_TOKEN = re.compile(r"[A-Za-z0-9_/%*~.\\@:#$€£¥+&?=,-]+")
# A text without any of these has no value, which is true of most sentences.
_HINT = re.compile(rf"[\d/\\_@`\"“「]|\.[A-Za-z]|[a-z][A-Z]|--|{_CJK_NUMBER.pattern}")
_PATH = re.compile(r"[^/\\]*[/\\].+|\w[\w-]*\.\w*[A-Za-z]")
_ALTERNATIVE = re.compile(r"[A-Za-z]{1,6}/[A-Za-z]{1,6}")
_NAMED = re.compile(r".*(?:\w_\w|@|\d|[a-z0-9][A-Z])|--\w")
NAME = re.compile(
    r"(?<=[a-z,;:] )[A-Z][\w'-]+|(?<=[\u3400-\u9fff，：、“「])\s?[A-Z][\w-]+|“[^”]+”|「[^」]+」"
)
"""A name in the middle of a sentence, or a word in Latin letters among others."""


def values_in(text: str) -> list[str]:
    """Return the exact values in the text, in order; what is quoted is one, without its quotes."""
    if _HINT.search(text) is None:
        return []
    found, at = list[str](), 0
    for quoted in _QUOTED.finditer(text):
        found += _bare(text[at : quoted.start()])
        found.append(next(group for group in quoted.groups() if group is not None))
        at = quoted.end()
    found += _bare(text[at:])
    return found


def _bare(text: str) -> Iterator[str]:
    if not text.isascii():
        yield from _CJK_NUMBER.findall(text)
    for token in _TOKEN.findall(text):
        word = token.strip(".,:;=?&-+") if not token.startswith("--") else token.rstrip(".,:;=?")
        is_path = _PATH.fullmatch(word) and not _ALTERNATIVE.fullmatch(word)
        if word and (is_path or _NAMED.match(word)):
            yield word
