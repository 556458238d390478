from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.policy.reach import globs_overlap, is_exact, is_name_left
from tests.growing import grows_at_most

PIECES = ("a", "b", "c", "*", "?", "[ab]", "[!a]", "[b-c]", "[c-a]", "[!a-b]")


def names(letters: str, length: int) -> list[str]:
    rows = (product(letters, repeat=n) for n in range(length + 1))
    return ["".join(name) for row in rows for name in row]


# What two globs of four pieces have in common, a name of six letters has in common.
SHORT = names("abc", 6)
# `d` stands for every letter that no glob mentions.
SHORTER = names("abcd", 6)

globs = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
small_globs = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
groups = st.lists(small_globs, max_size=2).map(tuple)


@given(globs, globs)
def test_globs_overlap_when_some_name_matches_both(one: str, other: str) -> None:
    expected = any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in SHORT)
    assert globs_overlap(one, other) == expected
    assert globs_overlap(other, one) == expected


@given(st.lists(groups, max_size=2).map(tuple), groups)
def test_a_name_is_left_when_some_name_is_wanted_by_all(
    wanted: tuple[tuple[str, ...], ...], unwanted: tuple[str, ...]
) -> None:
    def is_left(name: str) -> bool:
        return all(any(fnmatchcase(name, g) for g in group) for group in wanted) and not any(
            fnmatchcase(name, g) for g in unwanted
        )

    assert is_name_left(wanted, unwanted) == any(map(is_left, SHORTER))


@given(st.text("ab[]!-*?^\\", max_size=6), st.text("ab[]!-^\\", max_size=4))
def test_a_glob_overlaps_each_name_that_it_matches(glob: str, name: str) -> None:
    if is_exact(name):
        assert globs_overlap(glob, name) == fnmatchcase(name, glob)
        assert is_name_left(((glob,), (name,))) == fnmatchcase(name, glob)


@pytest.mark.parametrize(("start", "part"), [("*a", "?"), ("", "*a*"), ("", "[a-z]")])
def test_a_glob_is_matched_in_quadratic_time_at_most(start: str, part: str) -> None:
    def matched(parts: int) -> Callable[[], object]:
        glob = start + part * parts

        def work() -> None:
            is_name_left(((glob,),), (glob + "b", glob))
            globs_overlap(glob, glob[::-1])

        return work

    assert grows_at_most(matched, 15, times=4, power=2)
