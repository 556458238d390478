"""The libraries that are compared and timed: their versions, and the session that they get."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.peers.__main__ import ENVIRONMENTS
from benchmarks.peers.cases import LIBRARIES
from benchmarks.peers.session import session
from policyctx.policy.sources import further_names, policy_source
from tests.integrations.heavy.environments import environments
from tests.peers.anthropic_messages import plain, written

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"([\w-]+)==([\d.]+)")


def test_each_library_that_is_compared_is_named_with_its_version() -> None:
    texts = "".join(re.sub(r"\n# ", " ", policy_source(name).text) for name in further_names())
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    for one in environments(ENVIRONMENTS):
        [(name, version)] = PINNED.findall(" ".join(one.requires))
        # The server of a provider has no version; its SDK is not compared.
        is_named = (
            f"of {name} {version}" in texts or f"\n{name} {version} has no policy here" in page
        )
        assert name == "anthropic" or is_named


def test_each_library_that_is_timed_has_an_environment() -> None:
    assert set(LIBRARIES) <= {one.host for one in environments(ENVIRONMENTS)}


def test_the_session_is_the_same_each_time_and_has_parallel_calls() -> None:
    first, second = session(10), session(10)
    assert first == second
    assert sum(1 for _ in first.calls()) == 11
    assert max(len(one.results) for one in first.messages) == 3
    assert len(plain(written(first.messages))) == len(first.messages)
