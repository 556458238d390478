from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from policyctx.errors import ReplayError
from policyctx.replay.terms import UNNAMED
from policyctx.tuning.evaluating import Evaluator, Failure, tried
from policyctx.tuning.outcomes import Outcome, Unpriced
from tests.conversations import session_of
from tests.replay.sessions import recording, turn_by_turn

if TYPE_CHECKING:
    from policyctx.tuning.evaluating import Tried

POLICY = """
apiVersion: policyctx/v1
name: p
min_tokens: 50
model:
  cache: {min_tokens: 0}
  price: {input: 3, cache_write: 4, cache_read: 0.3, output: 15}
items: {tool_result: {offload: true}}
steps: [{name: s, do: offload, select: {keep_recent: 1}}]
"""
RECORDINGS = [
    turn_by_turn(session_of(*[f"line {i} of some output\n" * 200 for i in range(count)]))
    for count in (3, 6, 9)
]


def policy(text: str = POLICY) -> Tried:
    found = tried(text)
    assert found is not None
    return found


class Counted:
    """Counts what it hears; implements `Progress`."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.calls = 0

    def begin(self, calls: int) -> None:
        self.begun.append(calls)

    def advance(self, calls: int) -> None:
        self.calls += calls


def test_offloading_large_results_of_a_long_session_saves() -> None:
    with Evaluator(RECORDINGS) as evaluator:
        evaluator.evaluate([policy()], range(3))
        outcomes = [evaluator.outcome(policy().digest, number) for number in range(3)]
    assert all(isinstance(one, Outcome) and one.acted for one in outcomes)
    last = outcomes[2]
    assert isinstance(last, Outcome)
    assert last.net < 0 < last.without


def test_a_session_is_replayed_once_under_a_policy() -> None:
    heard = Counted()
    with Evaluator(RECORDINGS, progress=heard) as evaluator:
        evaluator.evaluate([policy()], [0, 1])
        evaluator.evaluate([policy(), policy(POLICY.replace("50", "60"))], [1])
        assert evaluator.replays == 3
    calls = [len(one.calls) for one in RECORDINGS]
    assert heard.begun == [calls[0] + calls[1], calls[1]]
    assert heard.calls == sum(heard.begun)


def test_a_policy_without_prices_has_no_outcome() -> None:
    text = "\n".join(line for line in POLICY.splitlines() if "price" not in line)
    with Evaluator(RECORDINGS) as evaluator:
        evaluator.evaluate([policy(text)], [0])
        assert evaluator.outcome(policy(text).digest, 0) == Unpriced((UNNAMED,))


def test_a_recording_that_cannot_be_replayed_is_a_failure() -> None:
    broken = recording([{"role": "user", "content": 5}])
    with Evaluator([broken]) as evaluator:
        evaluator.evaluate([policy()], [0])
        assert isinstance(evaluator.outcome(policy().digest, 0), Failure)


@pytest.mark.slow
def test_several_processes_give_the_same_outcomes() -> None:
    policies = [policy(), policy(POLICY.replace("50", "5000"))]
    found = []
    for jobs in (1, 2):
        with Evaluator(RECORDINGS, jobs=jobs) as evaluator:
            evaluator.evaluate(policies, range(3))
            found.append([evaluator.outcome(p.digest, n) for p in policies for n in range(3)])
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_process_that_is_ended_is_an_error() -> None:
    with Evaluator(RECORDINGS, jobs=2) as evaluator:
        evaluator.evaluate([policy()], range(3))
        pid = evaluator._workers[0]._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        evaluator._workers[0]._process.join()
        with pytest.raises(ReplayError, match="fewer --jobs"):
            evaluator.evaluate([policy(POLICY.replace("50", "60"))], range(3))
