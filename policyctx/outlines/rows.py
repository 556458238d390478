"""Rows of an outline: parts of a text with their places and weights, chosen to fit a budget."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from policyctx.tokens.counter import TokenCounter

_WIDEST, _NARROWEST, _JOINED = 170, 100, 400
_CHARS_A_TOKEN = 3
_NAME_CHARS = 24
_IMPORTANT = 5
_MOST_TRIED = 12
_RUN = re.compile(r"([^\w\s])\1{4,}")
_LONG_URL = re.compile(r"(https?://[^\s\])>\"]{30})[^\s\])>\"]+")
_FOLDER = re.compile(r"(?<![\w.:/])/?(?:[\w.@+-]+/){2,}")
_LEAST_SHARED = 8


class Row(NamedTuple):
    """A part of a text that an outline may show."""

    line: int
    """From 1; `char` is the character of the line, and 1 at its start."""
    char: int
    text: str
    weight: int
    """Rows of a larger weight are shown first; of 0, never."""
    short: str = ""
    """What names the row in a list where there is no space for its text."""


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
    """Return the title and the weightiest rows, in the order of the text, within so many tokens.

    Rows of one weight are spread over the text. Those that do not fit and have a short name are
    listed by it, as far as they fit. `are_cut` says that the beginning of a row tells most.
    """
    shared, rows = _without_shared_folder([row for row in rows if row.weight > 0])
    title += f"; …/ is {shared}" if shared else ""
    order = by_weight(rows)[: tokens + 1]  # a row has a token or more
    wanted = sum(min(len(row.text), _WIDEST) for row in rows if row.weight >= _IMPORTANT)
    width = _WIDEST * tokens * _CHARS_A_TOKEN // max(wanted, 1)
    width = min(max(width, _NARROWEST), _WIDEST) if are_cut else _JOINED

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
