from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from policyctx.replay.cluster import executor
from policyctx.replay.executing import Processes
from policyctx.replay.places import RecordingOrigin, WorkPart, files
from policyctx.replay.terms import UNNAMED
from policyctx.tuning.evaluating import Evaluator, Failure, Found, Tried, tried
from policyctx.tuning.outcomes import SessionOutcome, Unpriced
from tests.conversations import session_of

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
CALLS = [3, 6, 9]


@pytest.fixture
def origins(tmp_path: Path) -> list[RecordingOrigin]:
    """Three sessions in one file."""
    path = tmp_path / "sessions.jsonl"
    contents = [[f"line {i} of some output\n" * 200 for i in range(count)] for count in CALLS]
    path.write_text("\n".join(json.dumps(session_of(*one)) for one in contents), encoding="utf-8")
    part = WorkPart(files([path])[0])
    return [RecordingOrigin(part, index) for index in range(len(CALLS))]


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


def test_offloading_large_results_of_a_long_session_saves(origins: list[RecordingOrigin]) -> None:
    evaluator = Evaluator(origins, CALLS)
    evaluator.evaluate([policy()], range(3))
    outcomes = [evaluator.outcome(policy().digest, number) for number in range(3)]
    assert all(isinstance(one, SessionOutcome) and one.acted for one in outcomes)
    last = outcomes[2]
    assert isinstance(last, SessionOutcome)
    assert last.net < 0 < last.without


def test_a_session_is_replayed_once_under_a_policy(origins: list[RecordingOrigin]) -> None:
    heard = Counted()
    evaluator = Evaluator(origins, CALLS, progress=heard)
    evaluator.evaluate([policy()], [0, 1])
    evaluator.evaluate([policy(), policy(POLICY.replace("50", "60"))], [1])
    assert evaluator.replays == 3
    assert heard.begun == [CALLS[0] + CALLS[1], CALLS[1]]
    assert heard.calls == sum(heard.begun)


def test_a_policy_without_prices_has_no_outcome(origins: list[RecordingOrigin]) -> None:
    text = "\n".join(line for line in POLICY.splitlines() if "price" not in line)
    evaluator = Evaluator(origins, CALLS)
    evaluator.evaluate([policy(text)], [0])
    assert evaluator.outcome(policy(text).digest, 0) == Unpriced((UNNAMED,))


def test_a_recording_that_is_gone_is_a_failure(
    origins: list[RecordingOrigin], tmp_path: Path
) -> None:
    (tmp_path / "sessions.jsonl").unlink()
    evaluator = Evaluator(origins, CALLS)
    evaluator.evaluate([policy()], [0])
    assert isinstance(evaluator.outcome(policy().digest, 0), Failure)


def outcomes(evaluator: Evaluator, policies: list[Tried]) -> list[Found]:
    evaluator.evaluate(policies, range(3))
    return [evaluator.outcome(one.digest, number) for one in policies for number in range(3)]


@pytest.mark.slow
def test_several_processes_give_the_same_outcomes_even_if_one_is_killed(
    origins: list[RecordingOrigin],
) -> None:
    first, second = [policy()], [policy(POLICY.replace("50", "5000"))]
    here = Evaluator(origins, CALLS)
    with executor(2) as two:
        assert isinstance(two, Processes)
        evaluator = Evaluator(origins, CALLS, executor=two)
        assert outcomes(evaluator, first) == outcomes(here, first)
        pid = two._processes[0]._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert outcomes(evaluator, second) == outcomes(here, second)
