"""The hooks that the plugin calls; any plugin or `conftest.py` may implement them."""

from __future__ import annotations

from typing import TYPE_CHECKING

# Each run of pytest reads this module wherever policyctx is installed, with features or without.
if TYPE_CHECKING:
    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.planning.plan import Plan
    from policyctx.policy.sources import PolicySource
    from policyctx.testing.selecting import TurnEvent


def pytest_policyctx_plan(plan: Plan, policy: OffloadPolicy, scenario: str) -> None:
    """Called with every plan that a scenario makes, after it was made or carried out.

    `scenario` is the node id of the running scenario, one for each row of an outline.
    """


def pytest_policyctx_turn(
    turn: TurnEvent, policy: OffloadPolicy, source: PolicySource, scenario: str
) -> None:
    """Called with every event of a scenario, also one that failed: its `error` says how.

    `source` is what the policy was read from; the path of one that is written in a feature is the
    feature's.
    """
