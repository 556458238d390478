"""What globs of tool names have in common, exactly; `fnmatch.fnmatchcase` says what a glob means.

A glob is a row of pieces: `*`, or one that stands for a single character (`?`, `[a-z]`, a letter).
Each question is asked of the automaton that the pieces make, never of sample names.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import islice
from typing import TypeAlias

Globs: TypeAlias = tuple[str, ...]
Pieces: TypeAlias = tuple[str, ...]
# Where in each glob a name that was read so far may be.
State: TypeAlias = tuple[frozenset[int], ...]
# For one kind of character: the pieces that it fits.
Fitting: TypeAlias = frozenset[str]

# What is held against one another pair by pair: the first so many, more than a person writes.
MOST_COMPARED = 40
_EFFORT = 20_000


def is_exact(glob: str) -> bool:
    """Is it a plain name, without `*`, `?` or `[…]`."""
    return not set("*?[") & set(glob)


def globs_overlap(one: str, other: str) -> bool:
    """Is there a name that both globs match."""
    a, b = _pieces(one), _pieces(other)
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        i, j = todo.pop()
        if (i, j) == (len(a), len(b)):
            return True
        new = set(_next_pairs(a, b, i, j)) - seen
        seen |= new
        todo += new
    return False


def is_name_left(wanted: tuple[Globs, ...], unwanted: Globs = ()) -> bool:
    """Is there a name that matches a glob of each group `wanted`, and none of `unwanted`.

    Also true when it would take too long to tell.
    """
    groups = [*wanted, unwanted]
    globs = [_pieces(glob) for group in groups for glob in group]
    kinds = _kinds(globs)
    effort = len(globs) * len(kinds)
    start = tuple(_closed(glob, {0}) for glob in globs)
    todo, seen = [start], {start}
    while todo:
        if len(seen) * effort > _EFFORT:
            return True
        state = todo.pop()
        if _accepts(state, globs, groups):
            return True
        new = {_after(state, globs, fitting) for fitting in kinds} - seen
        new = {found for found in new if _is_alive(found, groups)}
        seen |= new
        todo += new
    return False


def _pieces(glob: str) -> Pieces:
    pieces, i = [], 0
    while i < len(glob):
        end = _bracket_end(glob, i) if glob[i] == "[" else i
        pieces.append(glob[i : end + 1])
        i = end + 1
    return tuple(pieces)


def _bracket_end(glob: str, start: int) -> int:
    """Return where the `[…]` that begins at `start` ends; a lone bracket is itself."""
    first = start + 1
    first += glob[first : first + 1] == "!"
    end = glob.find("]", first + 1)
    return start if end < 0 else end


def _next_pairs(a: Pieces, b: Pieces, i: int, j: int) -> Iterable[tuple[int, int]]:
    """How far two globs come, with at most one more character that both match."""
    in_a, in_b = i < len(a), j < len(b)
    if in_a and a[i] == "*":
        yield i + 1, j
        if in_b and _have_common(b[j], "?"):
            yield i, j + 1
    if in_b and b[j] == "*":
        yield i, j + 1
        if in_a and _have_common(a[i], "?"):
            yield i + 1, j
    if in_a and in_b and "*" not in (a[i], b[j]) and _have_common(a[i], b[j]):
        yield i + 1, j + 1


def _have_common(one: str, other: str) -> bool:
    characters = _characters({one, other})
    return any(_fits(c, one) and _fits(c, other) for c in characters)


def _fits(character: str, piece: str) -> bool:
    """Does a piece match the character; `[` alone is no glob and stands for itself."""
    return (
        piece == character
        if len(piece) == 1 and piece not in "*?"
        else fnmatchcase(character, piece)
    )


def _characters(pieces: Iterable[str]) -> set[str]:
    """At least one character of every kind that these pieces tell apart.

    Between two neighbours of all that the pieces mention no piece can tell any apart.
    """
    mentioned = {ord(c) for piece in pieces for c in piece} | {ord("a")}
    return {chr(c + d) for c in mentioned for d in (-1, 0, 1) if 0 <= c + d <= 0x10FFFF}  # noqa: PLR2004 - the last code point


def _kinds(globs: list[Pieces]) -> set[Fitting]:
    pieces = {piece for glob in globs for piece in glob}
    return {frozenset(p for p in pieces if _fits(c, p)) for c in _characters(pieces)}


def _closed(glob: Pieces, positions: set[int]) -> frozenset[int]:
    """The positions and those behind the `*` that they come before."""
    for i in sorted(positions):
        while i < len(glob) and glob[i] == "*":
            i += 1  # noqa: PLW2901 - walks on from it
            positions.add(i)
    return frozenset(positions)


def _after(state: State, globs: list[Pieces], fitting: Fitting) -> State:
    return tuple(
        _closed(
            glob,
            {i if glob[i] == "*" else i + 1 for i in at if i < len(glob) and glob[i] in fitting},
        )
        for glob, at in zip(globs, state, strict=True)
    )


def _accepts(state: State, globs: list[Pieces], groups: list[Globs]) -> bool:
    matched = [len(glob) in at for glob, at in zip(globs, state, strict=True)]
    *wanted, unwanted = _by_group(matched, groups)
    return all(wanted) and not unwanted


def _is_alive(state: State, groups: list[Globs]) -> bool:
    *wanted, _ = _by_group(map(bool, state), groups)
    return all(wanted)


def _by_group(of_globs: Iterable[bool], groups: list[Globs]) -> list[bool]:
    """Is it so of any glob, for each group."""
    each = iter(of_globs)
    return [any(list(islice(each, len(group)))) for group in groups]
