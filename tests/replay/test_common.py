"""What replays of one recording have in common: it makes them quicker, and changes no figure."""

from __future__ import annotations

from dataclasses import fields

import pytest

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.common import Common
from policyctx.replay.recording import Recording
from policyctx.replay.running import SUMMARISE_ONLY, replayed
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import Figures, figures_of
from policyctx.tuning.outcomes import outcome_of
from tests.conversations import session_of
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

TEXTS = [
    f"QX-{i}8213-B is the id of part {i} " + f"which nobody guesses {i} " * 90 for i in range(9)
]
END = {"role": "assistant", "content": "see QX-18213-B, QX-28213-B and QX-58213-B"}
RECORDED = turn_by_turn([*session_of(*TEXTS), END])
POLICY = """
min_tokens: {tokens}
items: {{tool_result: {{offload: true}}}}
model:
  cache: {{breakpoints: {breakpoints}}}
  price: {{input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}}
steps: [{{name: s, do: clear, select: {{types: [tool_result], keep_recent: {recent}}}}}]
"""


def under(*, tokens: int = 0, recent: int = 1, breakpoints: str = "keep") -> OffloadPolicy:
    return policy(POLICY.format(tokens=tokens, recent=recent, breakpoints=breakpoints))


POLICIES = [
    under(),
    under(recent=3),
    under(breakpoints="auto"),
    under(recent=3, breakpoints="auto"),
    under(tokens=100_000),
    under(),
]


def compared(session: SimulatedSession, figures: Figures) -> dict[str, object]:
    """Return all that a replay finds except the time that it took."""
    names = (one.name for one in fields(Figures) if one.name != "seconds")
    return {name: getattr(figures, name) for name in names} | {"regrets": session.regrets}


def alone(recorded: Recording, tried: OffloadPolicy) -> dict[str, object]:
    session = simulated(recorded, tried)
    return compared(session, figures_of(session))


def test_replays_that_share_what_they_find_come_to_the_same_as_each_alone() -> None:
    common = Common(RECORDED)
    for tried in POLICIES:
        session = simulated(RECORDED, tried, common=common)
        together = compared(session, figures_of(session, unedited=common.unedited))
        assert together == alone(RECORDED, tried)
    assert simulated(RECORDED, POLICIES[0]).regrets != ()


@pytest.mark.parametrize("tried", POLICIES[:5])
def test_the_net_is_the_same_whichever_layouts_are_priced(tried: OffloadPolicy) -> None:
    every, sent = (
        figures_of(simulated(RECORDED, tried, layouts=layouts))
        for layouts in (("recorded", "last", "auto", "ideal"), ())
    )
    assert tuple(every.costs.layouts) == ("recorded", "last", "auto", "ideal")
    assert sent.costs.layouts == {}
    assert sent.net == every.net
    assert (sent.costs.unedited, sent.costs.edited) == (every.costs.unedited, every.costs.edited)


def test_an_outcome_is_the_same_with_what_other_policies_found() -> None:
    common = Common(RECORDED)
    for tried in POLICIES:
        assert outcome_of(RECORDED, tried, common=common) == outcome_of(RECORDED, tried)


def test_the_figures_of_a_replay_are_made_with_it() -> None:
    session = replayed("coding-agent", RECORDED, "a.jsonl")
    assert session.figures is not None
    assert figures_of(session) is session.figures
    assert session.figures.baselines.keys() == {SUMMARISE_ONLY}
