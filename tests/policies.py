"""Small policies for tests, written as a user would."""

from __future__ import annotations

from textwrap import dedent

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource

HEAD = "apiVersion: policyctx/v1\nname: test\n"

KEEP_FIVE = """\
apiVersion: policyctx/v1
name: keep-five
extends: small-context
steps:
  - name: retire-old-results
    do: offload
    select: {types: [tool_result], keep_recent: {items: 5, per: all}}
"""
"""A preset without its gate: all but the five newest results leave at once."""

STORE = "store: {sync: never}\n"
RESULTS = f"""\
{STORE}
min_chars: 100
items: {{tool_result: {{offload: true}}}}
placeholder: "see {{path}}"
steps: [{{name: s, do: offload, must_shrink: false, select: {{types: [tool_result]}}}}]
"""
CALLS = f"""\
{STORE}
min_chars: 100
items: {{tool_call: {{offload: true}}}}
placeholder: "see {{path}}"
steps: [{{name: s, do: offload, select: {{types: [tool_call]}}}}]
"""


def policy(text: str) -> OffloadPolicy:
    """Compile a policy from all but its first two keys."""
    return OffloadPolicy(parsed_policy(PolicySource("test.yaml", HEAD + dedent(text))))
