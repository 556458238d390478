from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from policyctx.planning.conversation import Tally


def test_a_new_tally_is_empty() -> None:
    tally = Tally()
    assert (len(tally), tally.total, tally.before(0), tally.before(9)) == (0, 0, 0, 0)


@given(
    sizes=st.lists(st.integers(0, 1000), max_size=40),
    changes=st.lists(st.tuples(st.integers(0, 39), st.integers(-50, 50)), max_size=10),
    more=st.lists(st.integers(0, 1000), max_size=10),
)
def test_it_returns_prefix_sums(
    sizes: list[int], changes: list[tuple[int, int]], more: list[int]
) -> None:
    tally, plain = Tally(), list(sizes)
    for size in sizes:
        tally.append(size)
    for message, by in changes:
        if message < len(plain):
            tally.change(message, by)
            plain[message] += by
    for size in more:
        tally.append(size)
    plain += more
    assert len(tally) == len(plain)
    assert tally.total == sum(plain)
    sums = [0, *accumulate(plain)]
    assert [tally.before(i) for i in range(len(plain) + 1)] == sums
    assert tally.before(len(plain) + 5) == sum(plain)
