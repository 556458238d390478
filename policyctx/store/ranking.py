"""A search whose best lines come first: contents by BM25, and in each the lines that tell most."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log

from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.index import IndexEntry
from policyctx.store.read import FoundLine

# The usual parameters of BM25: how soon more matches count less, and how much the length counts.
_SATURATION, _LENGTH = 1.2, 0.75
_MOST_WORDS = 8
_MOST_LINES = 50
_LINES_OF_WORDS = 5
_WORD = re.compile(r"\w{2,}")


@dataclass(slots=True)
class _Content:
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
    found = _found(store, [query])
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_MOST_WORDS]
    is_exact = bool(found) or not by_words or words in ([], [query.lower()])
    if not is_exact:
        found = _found(store, words)
    entries = store.list()
    mean = sum(entry.chars for entry in entries) / max(1, len(entries))
    having = Counter(word for content in found for word in content.counts)
    weights = {
        word: log(1 + (len(entries) - number + 0.5) / (number + 0.5))
        for word, number in having.items()
    }

    def score(content: _Content) -> float:
        long = 1 - _LENGTH + _LENGTH * content.entry.chars / max(1.0, mean)
        return sum(
            weights[word] * count * (_SATURATION + 1) / (count + _SATURATION * long)
            for word, count in content.counts.items()
        )

    best: list[FoundLine] = []
    for content in sorted(found, key=score, reverse=True):
        lines = list(content.lines.values())
        if not is_exact:
            told = sorted(
                lines, key=lambda one: sum(map(weights.__getitem__, one[1])), reverse=True
            )
            lines = sorted(told[:_LINES_OF_WORDS], key=lambda one: one[0].line)
        best += [line for line, _ in lines]
    return best[:most]


def _found(store: ContextFileSystem, words: list[str]) -> list[_Content]:
    """Return what contents that differ have of these texts, oldest content first."""
    found: dict[str, _Content] = {}
    for word in words:
        for match in _distinct(store, word):
            content = found.setdefault(match.entry.path, _Content(match.entry))
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
