"""Small policies for tests, written as a user would."""

from __future__ import annotations

from textwrap import dedent

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource

HEAD = "apiVersion: policyctx/v1\nname: test\n"


def policy(text: str) -> OffloadPolicy:
    """Compile a policy from all but its first two keys."""
    return OffloadPolicy(parsed_policy(PolicySource("test.yaml", HEAD + dedent(text))))
