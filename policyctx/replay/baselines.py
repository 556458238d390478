"""The policy that a replay holds a policy against: its summaries alone."""

from __future__ import annotations

from functools import lru_cache

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models import Step

SUMMARISE_ONLY = "summarise-only"

# What summarises where a policy has no step that does.
_STEP = Step.model_validate(
    {"name": SUMMARISE_ONLY, "do": "compact", "when": {"tokens": {"at_least": "80%"}}}
)


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def summarise_only(policy: OffloadPolicy) -> OffloadPolicy:
    """Return the policy with none of its steps but those that summarise.

    A policy without such a step gets one that summarises at 80 % of the context window, with the
    policy's own settings for compaction. A policy that has no other step is returned as it is.
    """
    document = policy.policy
    steps = tuple(step for step in document.steps if step.action.takes_messages)
    if steps and steps == document.steps:
        return policy
    alone = document.model_copy(update={"steps": steps or (_STEP,)})
    return OffloadPolicy(alone, hints=policy.hints, root=policy.tree)
