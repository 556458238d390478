"""What is known while a scenario runs: its step, its world, and who watches its plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.sources import PolicySource
from policyctx.testing.selecting import TurnEvent
from policyctx.testing.world import World

if TYPE_CHECKING:
    from pytest_bdd.parser import Feature, Scenario, Step


@dataclass(frozen=True, slots=True)
class RunningStep:
    """Where in a feature a scenario is: the step that runs, or the last one that ran."""

    feature: Path
    step: Step


RUNNING: pytest.StashKey[RunningStep] = pytest.StashKey()
WORLD: pytest.StashKey[World] = pytest.StashKey()


def running_step(item: pytest.Item) -> RunningStep:
    """Return the step that runs; raises `KeyError` outside of a scenario."""
    return item.stash[RUNNING]


@pytest.fixture
def policyctx_world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """The `World` of the running scenario, for steps of your own."""
    item = request.node
    here = running_step(item).feature.parent
    world = World(
        tmp_path / "context",
        folders=(here, item.config.rootpath),
        observe=partial(_observe, item),
    )
    item.stash[WORLD] = world
    return world


def _observe(
    item: pytest.Item, turn: TurnEvent, policy: OffloadPolicy, source: PolicySource
) -> None:
    if turn.plan is not None:
        item.ihook.pytest_policyctx_plan(plan=turn.plan, policy=policy, scenario=item.nodeid)
    item.ihook.pytest_policyctx_turn(turn=turn, policy=policy, source=source, scenario=item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_bdd_before_step(
    request: pytest.FixtureRequest,
    feature: Feature,
    scenario: Scenario,  # noqa: ARG001 - the hook is called with it
    step: Step,
    step_func: Callable[..., object],  # noqa: ARG001 - the hook is called with it
) -> None:
    """Remember which step runs, so that a failure can name its line."""
    request.node.stash[RUNNING] = RunningStep(Path(feature.filename), step)


def finish(item: pytest.Item) -> None:
    """End a scenario: raises `OutcomeError` for an error that none of its steps has expected."""
    world = item.stash.get(WORLD, None)
    if world is not None:
        world.require_no_error()
