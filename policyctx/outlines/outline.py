"""The outline of a text: of each kind of text what tells most in the fewest tokens.

No model is asked, and the time grows with the length of the text alone.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from policyctx.outlines.documents import (
    WIDEST_JOINED,
    document_rows,
    documents,
    long_strings,
    records,
    table_rows,
)
from policyctx.outlines.lines import LOOKED_AT_CHARS, Row, line_rows
from policyctx.tokens.counter import TokenCounter, reaches

_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b\n]*\x07?|[()][A-Z0-9])")
# What a terminal writes over: everything before it, up to the text that it shows at last.
_DRAWN_OVER = re.compile(r"\r|\x1b\[[0-9;]*[GKJ]")
# What `echo "=== x ==="` or `set -x` writes before the output of a command.
_SEPARATOR = re.compile(
    r"(?:={2,5}|-{3,5})>? ?(?!RUN|PAUSE|CONT|NAME|PASS|FAIL|SKIP|[ab]/)\w.{0,200}|\+ \w.{0,200}"
)
# The number that a host puts before a line of a file.
_NUMBERED = re.compile(r"\s{0,8}(\d{1,7})(?:→|\t|\||:(?=\s|$)| |:)")
_WIDEST, _NARROWEST = 170, 100
_CHARS_A_TOKEN = 3
_NAME_CHARS = 24
_IMPORTANT = 5
_MOST_TRIED = 12
_RUN = re.compile(r"([^\w\s])\1{4,}")
_LONG_URL = re.compile(r"(https?://[^\s\])>\"]{30})[^\s\])>\"]+")
_FOLDER = re.compile(r"(?<![\w.:/])/?(?:[\w.@+-]+/){2,}")
_LEAST_SHARED = 8
_NEARLY_ALL, _LEAST_LINES = 0.9, 3
_MOST_DEPTH, _MANY_STRINGS, _MOSTLY, _FOLDED = 3, 6, 0.5, 1
_JOINED = {"JSON", "a table", "a listing"}


def outline(text: str, tokens: int, counter: TokenCounter) -> str:
    """Return an outline of a text in at most so many tokens; a text that fits is its own outline.

    Each row begins with its line in the text, and with `LINE:CHARACTER` within a long line.
    """
    if not reaches(counter, text, tokens + 1):
        return text
    kind, note, rows = _rows(text)
    title = f"outline: {kind}, {_size(text)}; rows begin with their line{note}"
    return fitted(title, rows, tokens, counter, are_cut=kind not in _JOINED)


def _size(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n"))
    return f"{count:,} lines" if count > 1 else f"1 line, {len(text):,} characters"


def _rows(text: str, depth: int = 0) -> tuple[str, str, list[Row]]:
    """Return what kind of text this is, what is to say about its places, and its rows."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    lines = [_readable(line) for line in text.removesuffix("\n").split("\n")]

    def row(at: int, shown: str, weight: int, short: str = "") -> Row:
        line = bisect_right(starts, at)
        begin = starts[line - 1]
        is_begin = at - begin < LOOKED_AT_CHARS and not text[begin:at].strip()
        return Row(line, 1 if is_begin else at - begin + 1, shown, weight, short)

    if found := documents(text):
        between, values = found
        said = [(at, lines[bisect_right(starts, at) - 1].strip()) for at in between]
        rows = [row(at, shown, 6 if shown else 0) for at, shown in said]
        rows += document_rows(text, values, row)
        strings = list(long_strings(text)) if depth < _MOST_DEPTH else []
        less = 1 if len(strings) < _MANY_STRINGS else 4
        for key, value, places in strings:
            kind, _, inner = _rows(value, depth + 1)
            begins = [0, *(found.end() for found in re.finditer("\n", value))]
            rows.append(row(places[0], f"{key}: {kind}, {_size(value)}", 9 - less))
            for line, char, shown, weight, short in inner:
                at = min(begins[line - 1] + char, len(places)) - 1
                rows.append(row(places[at], shown, max(weight - less, 0), short))
        return "JSON", "", rows
    if table := records(lines, starts):
        return "a table", "", list(table_rows("", table, row))
    if sections := _sections(lines) if depth < _MOST_DEPTH else []:
        rows = []
        for begin, end in zip(sections, [*sections[1:], len(lines)], strict=True):
            kind, _, inner = _rows("\n".join(lines[begin + 1 : end]), depth + 1)
            rows.append(Row(begin + 1, 1, f"{lines[begin].strip()} ({kind})", 10))
            for rank, index in enumerate(by_weight(inner)):  # each section has its share
                one, most = inner[index], max(9 - (rank // 4).bit_length(), 1)
                rows.append(
                    one._replace(
                        line=one.line + begin + 1,
                        weight=most if one.weight > _FOLDED else one.weight,
                    )
                )
        return f"{len(sections)} sections", "", rows
    own = _own_numbers(lines)
    kind, rows = line_rows([line for _, line in own] or lines, is_file=bool(own))
    shift = _shift(own)
    note = f"; the text's own numbers are {abs(shift)} {'more' if shift > 0 else 'less'}"
    return kind, note if shift else "", rows


def _readable(line: str) -> str:
    """Return what a terminal shows at last of a line."""
    if "\r" not in line and "\x1b" not in line:
        return line
    states = [_COLOUR.sub("", state) for state in _DRAWN_OVER.split(line)]
    return next((state for state in reversed(states) if state.strip()), "")


def _sections(lines: Sequence[str]) -> list[int]:
    """Return where the separators are between the outputs of several commands."""
    found = [at for at, line in enumerate(lines) if _SEPARATOR.fullmatch(line)]
    is_diff = any(line.startswith(("@@ -", "+++ ")) for line in lines)
    found = [at for at in found if not is_diff or lines[at][0] == "="]
    return found if 1 < len(found) <= len(lines) * _MOSTLY else []


def _own_numbers(lines: Sequence[str]) -> list[tuple[int | None, str]]:
    """Return each line's own number and its text, nothing unless nearly all follow one another."""
    found: list[tuple[int | None, str]] = []
    following = numbered = last = 0
    for line in lines:
        match = _NUMBERED.match(line[:LOOKED_AT_CHARS])
        number = int(match[1]) if match else None
        numbered += number is not None
        following += number is not None and number == last + 1
        last = last if number is None else number
        found.append((number, line[match.end() :] if match else line))
    is_file = following + 1 >= numbered * _NEARLY_ALL and numbered * 2 >= len(lines) >= _LEAST_LINES
    return found if is_file else []


def _shift(own: Sequence[tuple[int | None, str]]) -> int:
    """Return how much larger most lines' own number is than their place."""
    shifts = Counter(number - at for at, (number, _) in enumerate(own, 1) if number is not None)
    return shifts.most_common(1)[0][0] if shifts else 0


def spread(count: int) -> list[int]:
    """Return the numbers below `count`: the first, the last, then those halfway between others."""
    order = dict.fromkeys([0, count - 1][:count])
    step = 1 << count.bit_length()
    while step > 1:
        order |= dict.fromkeys(range(step >> 1, count, step))
        step >>= 1
    return list(order)


def by_weight(rows: Sequence[Row]) -> list[int]:
    """Return the indexes of rows, the weightiest first; those of one weight are spread."""
    weights: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        weights.setdefault(row.weight, []).append(index)
    return [alike[at] for _, alike in sorted(weights.items())[::-1] for at in spread(len(alike))]


def fitted(
    title: str, rows: Sequence[Row], tokens: int, counter: TokenCounter, *, are_cut: bool
) -> str:
    """Return the title and the rows of most weight, in the order of the text, in at most `tokens`.

    Rows of one weight are spread over the text. Those that do not fit and have a short name are
    listed by it, as far as they fit. `are_cut` says that the beginning of a row tells most.
    """
    shared, rows = _without_shared_folder([row for row in rows if row.weight > 0])
    title += f"; …/ is {shared}" if shared else ""
    order = by_weight(rows)[: tokens + 1]  # a row has a token or more
    wanted = sum(min(len(row.text), _WIDEST) for row in rows if row.weight >= _IMPORTANT)
    width = _WIDEST * tokens * _CHARS_A_TOKEN // max(wanted, 1)
    width = min(max(width, _NARROWEST), _WIDEST) if are_cut else WIDEST_JOINED

    def shown(chosen: Sequence[int]) -> str:
        named = sorted({at for at in order if rows[at].short}.difference(chosen))
        most = tokens // 24 if chosen else tokens // 4
        lines = [f"[{title}]"]
        for row in (rows[at] for at in sorted(chosen, key=lambda at: (*rows[at][:2], at))):
            text = _RUN.sub(r"\1\1\1", _LONG_URL.sub(r"\1…", row.text))
            text = text if len(text) <= width else f"{text[:width]}…"
            lines.append(f"{row.line}{'' if row.char == 1 else f':{row.char}'} {text}")
        if named:
            names = (f"{rows[at].line} {rows[at].short[:_NAME_CHARS]}" for at in named[:most])
            more = f", and {len(named) - most} more" if len(named) > most else ""
            lines.append(f"also: {', '.join(names)}{more}")
        # JSON may hold half of a character as an escape.
        return "\n".join(lines).encode("utf-8", "replace").decode()

    fewest, most = 0, len(order)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if counter.count(shown(order[:middle])) <= tokens:
            fewest = middle
        else:
            most = middle - 1
    chosen = order[:fewest]
    for at in order[fewest + 1 : fewest + _MOST_TRIED]:
        if counter.count(shown([*chosen, at])) <= tokens:
            chosen.append(at)
    return counter.truncate(shown(chosen), tokens)


def _without_shared_folder(rows: Sequence[Row]) -> tuple[str, Sequence[Row]]:
    """Return the folder that takes the most space in the rows, "" for none, and them without it."""
    sizes: Counter[str] = Counter()
    for row in rows:
        for folder in set(_FOLDER.findall(row.text[:_WIDEST])):
            at = folder.find("/", 1)
            while at >= 0:
                sizes[folder[: at + 1]] += at
                at = folder.find("/", at + 1)
    shared, size = sizes.most_common(1)[0] if sizes else ("", 0)
    if len(shared) < _LEAST_SHARED or size < len(shared) * 3:
        return "", rows
    # Only where a path begins: `a/b/` is not the folder of `x/a/b/c`.
    begins = re.compile(rf"(?<![\w.:/-]){re.escape(shared)}")
    return shared, [row._replace(text=begins.sub("…/", row.text)) for row in rows]
