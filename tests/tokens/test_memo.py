from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from policyctx.tokens.counter import MemoCounter, MemoStats

# What the memo takes for a text of so many ASCII characters.
ENTRY = 200


class Measure:
    """Counts the characters, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[int]:
        self.asked.extend(texts)
        return [len(text) for text in texts]


def lengths(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def test_a_text_is_measured_once() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    assert [counter.count("hello"), counter.count("hello")] == [5, 5]
    assert measure.asked == ["hello"]


def test_an_equal_text_read_anew_is_known() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    first, second = (b"hello there".decode() for _ in range(2))
    assert first is not second
    counter.count(first)
    counter.count(second)
    assert len(measure.asked) == 1


def test_many_texts_are_measured_together_each_once() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    counter.count("one")
    assert counter.count_many(["three", "one", "three", ""]) == [5, 3, 5, 0]
    assert measure.asked == ["one", "three", ""]


def test_known_texts_are_not_measured_again() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    texts = ["a", "bb", "a"]
    assert counter.count_many(texts) == counter.count_many(texts) == [1, 2, 1]
    assert measure.asked == ["a", "bb"]


def test_the_least_recently_used_text_is_evicted_first() -> None:
    measure = Measure()
    counter = MemoCounter(measure, memo_bytes=2 * (ENTRY + 5))
    for text in ("first", "other", "first", "third", "first", "other"):
        counter.count(text)
    assert measure.asked == ["first", "other", "third", "other"]


def test_asking_for_many_keeps_them_as_well() -> None:
    measure = Measure()
    counter = MemoCounter(measure, memo_bytes=2 * (ENTRY + 5))
    counter.count_many(["first", "other"])
    counter.count_many(["first"])
    counter.count_many(["third"])
    counter.count_many(["first"])
    assert measure.asked == ["first", "other", "third"]


def test_a_text_larger_than_the_memo_is_counted_and_not_held() -> None:
    measure = Measure()
    counter = MemoCounter(measure, memo_bytes=ENTRY + 10)
    assert [counter.count("x" * 11), counter.count("x" * 11)] == [11, 11]
    assert len(measure.asked) == 2
    assert counter.stats.held_bytes == 0


def test_hits_and_misses_are_counted() -> None:
    counter = MemoCounter(lengths)
    counter.count("a")
    counter.count("a")
    counter.count_many(["a", "b", "b", "c"])
    assert counter.stats == MemoStats(hits=3, misses=3, held_bytes=3 * (ENTRY + 1))


def test_a_wide_character_counts_for_the_memory_that_it_may_take() -> None:
    counter = MemoCounter(lengths)
    counter.count("字か")
    assert counter.stats.held_bytes == ENTRY + 2 * 4


def test_a_long_text_is_remembered_but_not_held() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    assert [counter.count("x" * 100_000), *counter.count_many(["x" * 100_000, "y" * 100_000])] == [
        100_000
    ] * 3
    assert len(measure.asked) == 2
    assert counter.stats.held_bytes == 2 * ENTRY


@given(st.lists(st.lists(st.text(max_size=8), max_size=6), max_size=20))
def test_the_memo_never_holds_more_than_it_may(batches: list[list[str]]) -> None:
    most = 5 * ENTRY
    counter = MemoCounter(lengths, memo_bytes=most)
    for texts in batches:
        assert counter.count_many(texts) == lengths(texts)
        held = sum(
            ENTRY + len(t) * (1 if t.isascii() else 4) for t in counter._memo if isinstance(t, str)
        )
        assert counter.stats.held_bytes == held <= most


def test_threads_share_a_counter() -> None:
    counter = MemoCounter(lengths, memo_bytes=10 * ENTRY)
    texts = ["x" * (i % 17) for i in range(4000)]

    def counted(start: int) -> list[int]:
        batch = texts[start : start + 20]
        return counter.count_many(batch) if start % 40 else [counter.count(t) for t in batch]

    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(counted, range(0, 4000, 20)))
    assert [n for batch in counts for n in batch] == lengths(texts)
    stats = counter.stats
    assert stats.hits + stats.misses == len(texts)
