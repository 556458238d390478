from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policyctx.pricing.rows import CacheRules
from policyctx.replay.cache import (
    Block,
    BreakpointCache,
    CacheBreakpoint,
    CacheRequest,
    CacheSplit,
    Prefixes,
    PrefixKeys,
)
from tests.replay.cache.oracle import Asked, Oracle
from tests.replay.cache.requests import HOUR, MINUTES, Requests

RULES = CacheRules("anthropic", min_tokens=1_024)


def texts(count: int, prefix: str = "t") -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def test_a_grown_list_reads_what_the_request_before_wrote() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    assert cache.split(requests.of(texts(3), -1)) == CacheSplit(0, 3_000)
    assert cache.split(requests.of(texts(5), -1)) == CacheSplit(3_000, 2_000)


def test_tokens_behind_the_last_breakpoint_are_plain_input() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    assert cache.split(requests.of(texts(5), 2)) == CacheSplit(0, 3_000, 0, 2_000)


def test_a_request_without_breakpoints_uses_no_cache() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(5), -1))
    assert cache.split(requests.of(texts(5))) == CacheSplit(input=5_000)


def test_a_changed_block_loses_everything_behind_the_last_breakpoint_before_it() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(30), 1, -1))
    changed = [*texts(10), "new", *texts(30)[11:]]
    assert cache.split(requests.of(changed, 1, -1)) == CacheSplit(2_000, 28_000)


def test_a_breakpoint_just_before_the_change_keeps_what_is_before_it() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(30), 1, 9, -1))
    changed = [*texts(10), "new", *texts(30)[11:]]
    assert cache.split(requests.of(changed, 1, 9, -1)) == CacheSplit(10_000, 20_000)


def test_an_entry_expires_its_ttl_after_the_last_use() -> None:
    for seconds, read in ((300, 3_000), (301, 0)):
        cache, requests = BreakpointCache(RULES), Requests()
        cache.split(requests.of(texts(3), -1, at=0))
        assert cache.split(requests.of(texts(3), -1, at=seconds)).read == read


def test_a_read_refreshes_an_entry() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    for at in (0, 200, 400, 600):
        split = cache.split(requests.of(texts(3), -1, at=at))
    assert split == CacheSplit(3_000)


def test_an_entry_that_only_a_longer_one_follows_is_not_refreshed() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(3), -1, at=0))
    cache.split(requests.of(texts(6), -1, at=10))
    cache.split(requests.of(texts(6), -1, at=290))
    other = [*texts(3), "other"]
    assert cache.split(requests.of(other, -1, at=311)).read == 0


def test_an_hour_lives_for_an_hour_and_is_an_hours_write() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    assert cache.split(requests.of(texts(3), (-1, HOUR), at=0)) == CacheSplit(0, 0, 3_000)
    assert cache.split(requests.of(texts(4), (-1, HOUR), at=3_600)) == CacheSplit(3_000, 0, 1_000)
    assert cache.split(requests.of(texts(4), (-1, HOUR), at=7_201)) == CacheSplit(0, 0, 4_000)


def test_an_hour_before_five_minutes_is_billed_up_to_its_breakpoint() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    mixed = requests.of(texts(5), (1, HOUR), (-1, MINUTES), at=0)
    assert cache.split(mixed) == CacheSplit(0, 3_000, 2_000)
    later = requests.of(texts(5), (1, HOUR), (-1, MINUTES), at=600)
    assert cache.split(later) == CacheSplit(2_000, 3_000)


def test_no_write_is_negative_where_what_nobody_shows_of_a_request_shrinks() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    asked = requests.of(texts(3), (1, HOUR), (-1, MINUTES), at=0)
    shrunk = asked._replace(beside=[0.0, 1_500.0, 0.0])
    assert cache.split(shrunk) == CacheSplit(0, 0, 3_500)


def test_a_write_for_five_minutes_does_not_shorten_an_hour() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(3), (-1, HOUR), at=0))
    cache.split(requests.of(texts(3), -1, at=10))
    assert cache.split(requests.of(texts(3), -1, at=3_000)) == CacheSplit(3_000)


def test_a_walk_back_tries_twenty_positions_with_the_breakpoint_as_the_first() -> None:
    for added, read in ((19, 2_000), (20, 0)):
        cache, requests = BreakpointCache(RULES), Requests()
        cache.split(requests.of(texts(2), -1))
        assert cache.split(requests.of([*texts(2), *texts(added, "n")], -1)).read == read


def test_a_run_of_calls_and_a_run_of_results_are_one_position_each() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(2), -1))
    runs = [*texts(40, "u"), *texts(40, "r"), *texts(17, "n")]
    assert cache.split(requests.of([*texts(2), *runs], -1)).read == 2_000
    cache = BreakpointCache(RULES)
    cache.split(requests.of(texts(2), -1))
    assert cache.split(requests.of([*texts(2), *runs, "n", "m"], -1)).read == 0


def test_a_prefix_below_the_minimum_is_not_cached() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    short = requests.of(texts(2), 0, size=1_000)
    assert cache.split(short) == CacheSplit(input=2_000)
    assert cache.split(short) == CacheSplit(input=2_000)


def test_of_five_breakpoints_the_last_four_count() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(50), 1, 10, 20, 30, -1))
    other = [*texts(2), *texts(30, "n")]
    assert cache.split(requests.of(other, 1, -1)).read == 0


def test_without_times_nothing_expires() -> None:
    cache, requests = BreakpointCache(RULES), Requests()
    cache.split(requests.of(texts(3), -1, at=0))
    assert cache.split(requests.of(texts(3), -1)).read == 3_000


KINDS = st.sampled_from(["other", "tool_use", "tool_result"])
SIZES = {"x": 3, "y": 5, "z": 9}


@st.composite
def sessions(draw: st.DrawFn) -> list[Asked]:
    """Requests that mostly grow, sometimes change in the middle."""
    blocks = draw(st.lists(st.tuples(st.sampled_from("xyz"), KINDS), min_size=1, max_size=6))
    asked, now = [], 0.0
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.booleans()):
            blocks = blocks[: draw(st.integers(0, len(blocks)))]
        new = st.lists(st.tuples(st.sampled_from("xyz"), KINDS), min_size=1, max_size=5)
        blocks = [*blocks, *draw(new)]
        places = draw(st.sets(st.integers(0, len(blocks) - 1), max_size=4))
        hours = draw(st.integers(0, len(places)))
        marks = [(p, HOUR if i < hours else MINUTES) for i, p in enumerate(sorted(places))]
        now += draw(st.sampled_from([0, 10, 299, 300, 301, 3_599, 3_601]))
        sizes = [SIZES[content] for content, _ in blocks]
        asked.append(Asked(blocks, sizes, marks, now))
    return asked


@given(sessions(), st.integers(0, 20), st.integers(1, 5))
def test_the_cache_agrees_with_one_that_looks_at_every_entry(
    session: list[Asked], min_tokens: int, lookback: int
) -> None:
    oracle = Oracle(min_tokens, lookback)
    cache = BreakpointCache(CacheRules("anthropic", min_tokens, lookback=lookback))
    keys, identities = PrefixKeys(), dict[tuple[str, str], int]()
    for asked in session:
        prefixes = Prefixes(keys)
        known = [identities.setdefault(block, len(identities)) for block in asked.blocks]
        pairs = zip(known, asked.sizes, asked.blocks, strict=True)
        prefixes.replace(0, [Block(i, size, kind) for i, size, (_, kind) in pairs])  # type: ignore[arg-type]
        request = CacheRequest(
            prefixes.keys,
            prefixes.tokens,
            prefixes.beside,
            prefixes.positions,
            tuple(CacheBreakpoint(*mark) for mark in asked.breakpoints),
            asked.at,
        )
        split = cache.split(request)
        assert split == oracle.ask(asked)
        assert sum(split) == sum(asked.sizes)
