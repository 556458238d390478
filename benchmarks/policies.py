"""Reading a policy, against reading its YAML alone.

A process reads its policies once, and `check` reads them at every save in an editor. Strictness,
places and diagnostics come on top of the bare YAML, which libyaml reads in any case.
"""

from __future__ import annotations

import yaml

from benchmarks.runner import Ratio
from policyctx.policy.findings import findings
from policyctx.policy.loading import parsed_policy, resolved, validated
from policyctx.policy.sources import PolicySource

_HEAD = """\
apiVersion: policyctx/v1
name: benchmark
extends: coding-agent
items:
  web_page: {match: {type: tool_result, tool: [web_*, fetch]}, min_tokens: 800, keep_recent: 2}
tools:
"""
_TOOL = "  tool_{n}: {{min_tokens: {n}00, keep_recent: 2, pin: false}}\n"
_STEPS = """\
steps:
  - {name: on-arrival, on: arrival, do: offload, select: {types: [tool_result], min_tokens: 10%}}
"""


def ratios() -> list[Ratio]:
    """The figures of this module; one call reads one policy of 2 kB."""
    text = _HEAD + "".join(_TOOL.format(n=n) for n in range(32)) + _STEPS
    source = PolicySource("benchmark.yaml", text)
    root = resolved(source)
    policy = validated(root)
    return [
        Ratio(
            "read a policy of 2 kB / bare YAML",
            ours=lambda: parsed_policy(source),
            baseline=lambda: yaml.load(text, Loader=yaml.CSafeLoader),
        ),
        Ratio(
            "find what is not meant / read the policy",
            ours=lambda: findings(root, policy),
            baseline=lambda: parsed_policy(source),
        ),
    ]
