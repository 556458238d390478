"""What a model is shown when it reads offloaded content back: bounded texts, with what follows.

`read_offloaded` and `search_offloaded` are the tools that every host offers. They return a text for
any input that a model may give, never raise for it, and only show what the session has offloaded.
A search ranks contents by BM25, and in each the lines that tell most.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log
from typing import NamedTuple, Protocol

from policyctx.definitions.items import NOTHING_FOUND, READ_TOOL, SEARCH_TOOL
from policyctx.errors import CorruptContentError, StoreError, counted, nearest
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.index import IndexEntry
from policyctx.store.read import FoundLine

MOST_LINES = 1_000
MOST_CHARS = 16_000
MOST_MATCHES = 50
_MOST_QUERY_CHARS = 1_000
_MOST_PATH_CHARS = 4_096
# The newest names among which the nearest one is looked for.
_MOST_NAMES = 1_000
_SHOWN_CHARS = 200
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")
# The usual parameters of BM25: how soon more matches count less, and how much the length counts.
_SATURATION, _LENGTH = 1.2, 0.75
_MOST_WORDS = 8
_MOST_LINES = 50
_LINES_OF_WORDS = 5
_WORD = re.compile(r"\w{2,}")


class ReadableStore(Protocol):
    """A store that reads a whole content."""

    def read(self, path: str) -> str:
        """Return the text saved at `path`; raises `StoreError`."""


class Answer(NamedTuple):
    """What a tool answers, and whether that is an error for the model to correct."""

    text: str
    is_error: bool = False


def read_offloaded(
    store: ReadableStore,
    path: object,
    offset: object = 1,
    limit: object = None,
    char: object = 1,
    *,
    before: str = "",
) -> Answer:
    """Return lines of an offloaded text, from line `offset` and its character `char` on.

    `path` is absolute, below the store's root, or an item id. At most `limit` lines are returned,
    at most `MOST_LINES`, and at most `MOST_CHARS` characters. A last line in brackets says what
    follows and how to ask for it; a text that is returned whole has none. `before` comes before
    each path that it shows, such as `root_of(store)`.
    """
    if not isinstance(path, str) or not path.strip() or len(path) > _MOST_PATH_CHARS:
        return _error("path must be the path in a placeholder, or an item id")
    wanted = [_number(value) for value in (offset, MOST_LINES if limit is None else limit, char)]
    first, count, start = (number or 0 for number in wanted)
    if min(first, count, start) < 1:
        return _error("offset, limit and char are whole numbers from 1 on")
    try:
        name, text = _found(store, path, before)
    except (StoreError, CorruptContentError) as error:
        return _error(str(error))
    shown = name if name.startswith("/") else before + name
    return _page(shown, text, first, min(count, MOST_LINES), start)


def found_lines(
    store: ReadableStore, query: str, *, ignore_case: bool, ranked: bool
) -> Iterator[FoundLine]:
    """Return the lines that a session finds in its store; see `Session.search`."""
    if ranked and isinstance(store, ContextFileSystem):
        return iter(ranked_lines(store, query))
    search = getattr(store, "search", None)
    if search is None:
        raise StoreError("this store cannot search", path=str(getattr(store, "root", "")))
    found: Iterator[FoundLine] = search(query, ignore_case=ignore_case)
    return found


def search_offloaded(
    store: ReadableStore, query: object, *, before: str = "", by_words: bool = True
) -> Answer:
    """Return the lines of offloaded texts and archives that contain the query, the best first.

    If none does, they are the lines with most of its words. See `ranked_lines`.

    At most `MOST_MATCHES` matches are returned, and at most `MOST_CHARS` characters; each begins
    with the path and the line to read on from. `before` comes before each path.
    """
    if not isinstance(query, str) or not query.strip():
        return _error("query is empty; give a text to look for")
    if len(query) > _MOST_QUERY_CHARS:
        return _error(f"query is longer than {_MOST_QUERY_CHARS:,} characters")
    if not isinstance(store, ContextFileSystem):
        return _error("this store cannot search")
    try:
        found = ranked_lines(store, query, MOST_MATCHES + 1, by_words=by_words)
        return _matches(query, found, before)
    except StoreError as error:
        return _error(str(error))


def _page(name: str, text: str, first: int, count: int, start: int) -> Answer:
    """Return the lines of a text within the bounds, and a note where there is more."""
    begin = _line_start(text, first)
    if begin is None or (begin == len(text) and first > 1):
        lines = text.count("\n") + (text[-1:] not in {"", "\n"})
        return _error(f"{name} has {counted(lines, 'line')}; offset {first:,} is after the last")
    if not text:
        return Answer(f"[{name} is empty]")
    line_end = text.find("\n", begin)
    if start > 1 and begin + start - 1 > (len(text) - 1 if line_end < 0 else line_end):
        return _error(f"line {first:,} of {name} is shorter; char {start:,} is after its end")
    begin += start - 1
    end, last, is_cut = _page_end(text, begin, first, count)
    shown = text[begin:end]
    if begin == 0 and end == len(text):
        return Answer(_sendable(shown))
    left = len(text) - end
    if not left:
        return Answer(_noted(shown, f"end of {name}"))
    if is_cut:
        line_start = text.rfind("\n", 0, end) + 1
        more = f"offset={last}, char={end - line_start + 1}"
        what = f"line {last:,} of {name} goes on"
    else:
        more = f"offset={last + 1}"
        what = f"lines {first:,} to {last:,} of {name}"
    note = f"{what}; {counted(left, 'character')} follow: {READ_TOOL}(path={name!r}, {more})"
    return Answer(_noted(shown, note))


def _line_start(text: str, number: int) -> int | None:
    """Return the position of a line, None if the text has fewer lines."""
    begin = 0
    for _ in range(number - 1):
        begin = text.find("\n", begin) + 1
        if not begin:
            return None
    return begin


def _page_end(text: str, begin: int, first: int, count: int) -> tuple[int, int, bool]:
    """Return the end of a page, its last line, and whether it ends within that line.

    A page ends at the end of a line, except a line that alone is longer than a page.
    """
    limit, end, last = begin + MOST_CHARS, begin, first - 1
    while last < first - 1 + count and end < len(text):
        newline = text.find("\n", end, limit)
        after = newline + 1 if newline >= 0 else min(len(text), limit + 1)
        if after > limit:
            break
        end, last = after, last + 1
    return (min(limit, len(text)), first, True) if end == begin < len(text) else (end, last, False)


def _found(store: ReadableStore, path: str, before: str) -> tuple[str, str]:
    """Return the name of a content, by which it can be read again, and its text.

    Only what the index of the session knows can be read; a store without one reads any file of its
    own. Raises `StoreError`.
    """
    if not isinstance(store, ContextFileSystem) or not store.keeps_index:
        return path, store.read(path)
    entry = store.find(path)
    if entry is None:
        raise StoreError(_unknown(store, path, before), path=path)
    return entry.path, store.read(entry.path)


def _unknown(store: ContextFileSystem, path: str, before: str) -> str:
    wanted = before + path
    shown = wanted if len(wanted) <= _SHOWN_CHARS else f"{wanted[:_SHOWN_CHARS]}…"
    entries = store.list()
    if not entries:
        return f"no offloaded content {shown!r}: nothing is offloaded yet"
    file = path.rpartition("/")[2]
    known = store.find(file.rpartition(".")[0] or file)  # the id of an item, with an ending
    below = path.removeprefix(f"{store.root}/")
    near = known.path if known else _nearest(below, entries[-_MOST_NAMES:])
    is_there = near is not None and _is_readable(store, near)
    likely = f"did you mean {before + (near or '')!r}? " if is_there else ""
    return f"no offloaded content {shown!r}; {likely}{SEARCH_TOOL} finds contents by their text"


def _is_readable(store: ContextFileSystem, path: str) -> bool:
    try:
        store.read(path)
    except StoreError:
        return False
    return True


def root_of(store: ReadableStore) -> str:
    """Return what makes the paths of a store absolute; empty for one without a root."""
    return f"{store.root}/" if isinstance(store, ContextFileSystem) else ""


def _nearest(path: str, entries: tuple[IndexEntry, ...]) -> str | None:
    paths: dict[str, str] = {}
    for entry in entries:
        file = entry.path.rpartition("/")[2]
        keys = (entry.item_id or "", file, file.rpartition(".")[0], entry.path)
        paths |= dict.fromkeys(filter(None, keys), entry.path)
    for key in (path, path.rpartition("/")[2], path.rpartition("/")[2].rpartition(".")[0]):
        if key in paths:
            return paths[key]
    near = nearest(path[:_SHOWN_CHARS], paths)
    return paths[near] if near is not None else None


def _matches(query: str, found: Sequence[FoundLine], before: str) -> Answer:
    """Return matches within the bounds, each in a line, and a note where there are more."""
    shown: list[str] = []
    size = 0
    for match in found[:MOST_MATCHES]:
        where = f"{before}{match.entry.path}:{match.line}"
        # A line without its beginning is one to read in parts.
        where += f":{match.char}" if match.char > _SHOWN_CHARS else ""
        line = f"{where}: {' '.join(match.text.split(chr(10)))}"
        if size + len(line) > MOST_CHARS:
            return _with_more(shown)
        shown.append(line)
        size += len(line) + 1
    if not shown:
        return Answer(f"{NOTHING_FOUND} {_sendable(query[:_SHOWN_CHARS])!r}]")
    return _with_more(shown) if len(found) > MOST_MATCHES else Answer(_joined(shown))


def _with_more(shown: list[str]) -> Answer:
    note = f"there are more than {counted(len(shown), 'match')}; look for a longer text"
    return Answer(_noted(_joined(shown), note.replace("matchs", "matches")))


def _joined(lines: list[str]) -> str:
    return _sendable("\n".join(lines))


def _noted(text: str, note: str) -> str:
    return _sendable(f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}[{note}]")


def _sendable(text: str) -> str:
    return text if text.isascii() else text.translate(_SURROGATES)


def _error(text: str) -> Answer:
    return Answer(_sendable(text), is_error=True)


def _number(value: object) -> int | None:
    """Return a whole number, also one that a model wrote as a text or with a decimal point."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if isinstance(value, str) else value
        return int(number) if number == int(number) else None
    except (ValueError, OverflowError):
        return None


@dataclass(slots=True)
class _RankedContent:
    """What was found in one content."""

    entry: IndexEntry
    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[tuple[int, int], tuple[FoundLine, set[str]]] = field(default_factory=dict)


def ranked_lines(
    store: ContextFileSystem, query: str, most: int = _MOST_LINES, *, by_words: bool = True
) -> list[FoundLine]:
    """Return the lines that contain the query in any case, of the content that tells most first.

    If no line contains it, they are the lines with most of its words, and of the rarer ones, at
    most five of a content; none without `by_words`. Equal texts are searched once, archives too.
    Raises `StoreError`, for an empty query too.
    """
    found = _contents_with(store, [query])
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_MOST_WORDS]
    is_exact = bool(found) or not by_words or words in ([], [query.lower()])
    if not is_exact:
        found = _contents_with(store, words)
    entries = store.list()
    mean = sum(entry.chars for entry in entries) / max(1, len(entries))
    having = Counter(word for content in found for word in content.counts)
    of = len(entries)
    weights = {word: log(1 + (of - n + 0.5) / (n + 0.5)) for word, n in having.items()}

    def score(content: _RankedContent) -> float:
        long = 1 - _LENGTH + _LENGTH * content.entry.chars / max(1.0, mean)
        return sum(
            weights[word] * count * (_SATURATION + 1) / (count + _SATURATION * long)
            for word, count in content.counts.items()
        )

    best: list[FoundLine] = []
    for content in sorted(found, key=score, reverse=True):
        lines = list(content.lines.values())
        if not is_exact:
            told = sorted(lines, key=lambda one: -sum(map(weights.__getitem__, one[1])))
            lines = sorted(told[:_LINES_OF_WORDS], key=lambda one: one[0].line)
        best += [line for line, _ in lines]
    return best[:most]


def _contents_with(store: ContextFileSystem, words: list[str]) -> list[_RankedContent]:
    """Return what contents that differ have of these texts, oldest content first."""
    found: dict[str, _RankedContent] = {}
    for word in words:
        for match in _distinct(store, word):
            content = found.setdefault(match.entry.path, _RankedContent(match.entry))
            content.counts[word] += 1
            place = (match.line, match.char if len(words) == 1 else 0)
            if place in content.lines or len(content.lines) <= _MOST_LINES:
                content.lines.setdefault(place, (match, set()))[1].add(word)
    return list(found.values())


def _distinct(store: ContextFileSystem, text: str) -> Iterator[FoundLine]:
    """Yield the matches in contents that differ; the same text may have several files."""
    paths: dict[str, str] = {}
    for match in store.search(text, ignore_case=True, in_parts=True):
        if paths.setdefault(match.entry.sha256, match.entry.path) == match.entry.path:
            yield match
