"""Sources as ranges of consecutive indices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policyctx.messages.sources import Staying, indices, joined, part, position_of, through, whole
from policyctx.messages.sources import within as within_bounds

KEPT = st.lists(st.booleans(), max_size=12)


def sources_of(kept: list[bool]) -> tuple[int | None, ...]:
    """The indices of those kept, and one inserted message for each gap."""
    return tuple(i if stays else None for i, stays in enumerate(kept))


def ranges(found: tuple[int | None, ...]) -> tuple[range | None, ...]:
    return joined(None if i is None else range(i, i + 1) for i in found)


@given(kept=KEPT)
def test_ranges_give_back_the_indices_that_they_were_made_of(kept: list[bool]) -> None:
    found = sources_of(kept)
    assert indices(ranges(found)) == found
    assert joined(ranges(found)) == ranges(found)


@given(earlier=KEPT, data=st.data())
def test_the_sources_two_edits_later_are_looked_up_one_by_one(
    earlier: list[bool], data: st.DataObject
) -> None:
    before = sources_of(earlier)
    kept = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before)))
    later = sources_of(kept)
    expected = tuple(None if i is None else before[i] for i in later)
    assert indices(through(ranges(later), ranges(before))) == expected
    assert through(ranges(later), ranges(before)) == ranges(expected)


@given(kept=KEPT, start=st.integers(0, 12), stop=st.integers(0, 12))
def test_a_part_is_a_slice_of_the_indices(kept: list[bool], start: int, stop: int) -> None:
    found = sources_of(kept)
    stop = min(stop, len(found))
    assert indices(part(ranges(found), range(start, stop))) == found[start:stop]


@given(kept=KEPT, start=st.integers(0, 12), stop=st.integers(0, 12))
def test_sources_within_bounds_are_those_with_such_an_index(
    kept: list[bool], start: int, stop: int
) -> None:
    there = tuple(i for i in sources_of(kept) if i is not None)
    expected = tuple(i for i in there if start <= i < stop)
    assert indices(within_bounds(ranges(there), range(start, stop))) == expected


@given(kept=KEPT, index=st.integers(0, 12))
def test_a_position_is_that_of_the_index(kept: list[bool], index: int) -> None:
    found = sources_of(kept)
    expected = found.index(index) if index in found else None
    assert position_of(ranges(found), index) == expected


@given(
    lengths=st.lists(st.integers(0, 4), max_size=5),
    removed=st.lists(st.integers(0, 20), max_size=8),
)
def test_messages_that_stay_are_all_but_the_removed_ones(
    lengths: list[int], removed: list[int]
) -> None:
    staying, count = Staying(), 0
    for length in lengths:
        staying.grow(range(count, count + length))
        count += length
    assert staying.sources == whole(count)
    for place in removed:
        staying.remove(place)
    assert indices(staying.sources) == tuple(i for i in range(count) if i not in removed)
    staying.grow(range(count, count + 2))
    assert indices(staying.sources)[-2:] == (count, count + 1)
    left = [i for i in range(count + 2) if i >= count or i not in removed]
    for place in range(-1, count + 3):
        assert [*staying.after(place)] == [i for i in left if i > place]
        assert [*staying.before(place)] == [i for i in reversed(left) if i < place]
