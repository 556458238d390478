from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.pricing.rows import CacheRules
from policyctx.replay.cache import (
    BreakpointCache,
    CacheSplit,
    PrefixCache,
    simulator_of,
)
from tests.replay.cache.requests import HOUR, Requests

STEPS = CacheRules("prefix", min_tokens=1_024, step=128, bills_writes=False)
AT_BREAKPOINTS = CacheRules("breakpoints", min_tokens=1_024)
ANTHROPIC = CacheRules("anthropic", min_tokens=1_024)
LONG = [f"t{i}" for i in range(60)]


def test_the_longest_prefix_is_read_in_whole_steps_and_writes_are_input() -> None:
    cache, requests = PrefixCache(STEPS), Requests()
    assert cache.split(requests.of(LONG[:3])) == CacheSplit(input=3_000)
    assert cache.split(requests.of([*LONG[:2], "n"])) == CacheSplit(1_920, input=1_080)


def test_a_prefix_below_the_minimum_is_not_read() -> None:
    cache, requests = PrefixCache(STEPS), Requests()
    cache.split(requests.of(LONG[:3]))
    assert cache.split(requests.of([LONG[0], "n", "m"])) == CacheSplit(input=3_000)


def test_a_prefix_expires_after_its_last_use() -> None:
    cache, requests = PrefixCache(STEPS), Requests()
    reads = [cache.split(requests.of(LONG[:3], at=at)).read for at in (0, 300, 601)]
    assert reads == [0, 2_944, 0]


def test_a_match_is_at_a_breakpoint_of_an_earlier_request() -> None:
    cache, requests = BreakpointCache(AT_BREAKPOINTS), Requests()
    assert cache.split(requests.of(LONG[:10], 4, 8)) == CacheSplit(0, 9_000, 0, 1_000)
    changed = [*LONG[:8], "n", "m"]
    assert cache.split(requests.of(changed, -1)) == CacheSplit(5_000, 5_000)


def test_a_match_may_be_any_distance_before_the_breakpoint() -> None:
    cache, requests = BreakpointCache(AT_BREAKPOINTS), Requests()
    cache.split(requests.of(LONG[:2], -1))
    assert cache.split(requests.of(LONG, -1)) == CacheSplit(2_000, 58_000)


def test_an_ideal_layout_reads_up_to_the_change() -> None:
    cache, requests = simulator_of(ANTHROPIC, "ideal"), Requests()
    cache.split(requests.of(LONG, -1))
    assert cache.split(requests.of([*LONG[:40], "n"], -1)) == CacheSplit(40_000, 1_000)


def test_an_ideal_layout_keeps_the_ttl_of_each_write() -> None:
    cache, requests = simulator_of(ANTHROPIC, "ideal"), Requests()
    assert cache.split(requests.of(LONG[:3], (-1, HOUR), at=0)) == CacheSplit(0, 0, 3_000)
    assert cache.split(requests.of(LONG[:5], -1, at=10)) == CacheSplit(3_000, 2_000)
    assert cache.split(requests.of(LONG[:5], -1, at=600)) == CacheSplit(3_000, 2_000)


@pytest.mark.parametrize("kind", ["anthropic", "breakpoints", "prefix"])
def test_each_kind_reads_what_an_equal_request_left(kind: str) -> None:
    rules = CacheRules(kind, min_tokens=1_024)  # type: ignore[arg-type]
    cache, requests = simulator_of(rules), Requests()
    cache.split(requests.of(LONG, -1))
    assert cache.split(requests.of(LONG, -1)) == CacheSplit(60_000)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), max_size=12))
def test_what_is_read_is_the_longest_prefix_of_any_request_before(lists: list[list[str]]) -> None:
    cache, requests = PrefixCache(CacheRules("prefix", min_tokens=0)), Requests()
    for i, blocks in enumerate(lists):
        known = [b for b in lists[:i] for n in range(len(b)) if b[: n + 1] == blocks[: n + 1]]
        longest = max(
            (n for b in known for n in range(1, len(blocks) + 1) if b[:n] == blocks[:n]), default=0
        )
        assert cache.split(requests.of(blocks)).read == 1_000 * longest


@given(
    st.lists(st.tuples(st.lists(st.sampled_from("ab"), min_size=1, max_size=6),
                       st.sampled_from([0, 1, 299, 302, 3_601]),
                       st.sampled_from([300, HOUR])), max_size=10)
)  # fmt: skip
def test_an_ideal_layout_never_reads_less_than_a_client_does(
    made: list[tuple[list[str], int, int]],
) -> None:
    client, ideal, requests = simulator_of(ANTHROPIC), simulator_of(ANTHROPIC, "ideal"), Requests()
    now = 0
    for blocks, pause, ttl in made:
        now += pause
        request = requests.of(blocks, (0, ttl), (-1, ttl), at=now)
        assert client.split(request).read <= ideal.split(request).read
