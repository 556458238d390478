"""The libraries that are compared and timed: their versions, and the session that they get."""

from __future__ import annotations

import re

from benchmarks.peers.__main__ import ENVIRONMENTS
from benchmarks.peers.cases import LIBRARIES
from benchmarks.peers.session import session
from policyctx.policy.sources import further_names, policy_source
from tests.integrations.heavy.environments import environments
from tests.peers.anthropic_messages import plain, written

PINNED = re.compile(r"([\w-]+)==([\d.]+)")


def test_each_library_that_is_compared_is_named_with_its_version() -> None:
    texts = "".join(re.sub(r"\n# ", " ", policy_source(name).text) for name in further_names())
    for one in environments(ENVIRONMENTS):
        [(name, version)] = PINNED.findall(" ".join(one.requires))
        # The server of a provider has no version; its SDK is not compared.
        assert name == "anthropic" or f"of {name} {version}" in texts


def test_each_library_that_is_timed_has_an_environment() -> None:
    assert set(LIBRARIES) <= {one.host for one in environments(ENVIRONMENTS)}


def test_the_session_is_the_same_each_time_and_has_parallel_calls() -> None:
    first, second = session(10), session(10)
    assert first == second
    assert sum(1 for _ in first.calls()) == 11
    assert max(len(one.results) for one in first.messages) == 3
    assert len(plain(written(first.messages))) == len(first.messages)
