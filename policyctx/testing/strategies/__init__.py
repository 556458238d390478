"""Hypothesis strategies, with which properties of policies are tested.

from hypothesis import given
from policyctx import Session
from policyctx.testing.strategies import message_lists

@given(messages=message_lists())
def test_what_the_user_said_stays(messages):
plan = Session("my-policy.yaml").plan(messages)
offloaded = {d.item.type for d in plan.decisions if d.action == "offload"}
assert "user_message" not in offloaded
"""

from importlib.util import find_spec

from policyctx.errors import install_command

if find_spec("hypothesis") is None:
    raise ModuleNotFoundError(
        f"strategies need hypothesis: {install_command('hypothesis')}", name="hypothesis"
    )

from policyctx.testing.strategies.messages import (
    anthropic_lists,
    growing_lists,
    message_lists,
    mixed_lists,
    openai_lists,
    responses_lists,
)
from policyctx.testing.strategies.policies import policies, policy_documents

__all__ = [
    "anthropic_lists", "growing_lists", "message_lists", "mixed_lists", "openai_lists", "policies",
    "policy_documents", "responses_lists",
]  # fmt: skip
