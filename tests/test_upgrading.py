"""The upgrade guide is right about defaults, and what it shows loads."""

from __future__ import annotations

import re
from pathlib import Path

from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.sources import PolicySource

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")


def test_the_policy_of_the_guide_has_the_values_of_0_1_and_the_table_those_of_now() -> None:
    since_0_1 = GUIDE.partition("## From 0.1 to 0.2")[2]
    found = re.search(r"^```yaml\n(.*?)^```", since_0_1, re.DOTALL | re.MULTILINE)
    assert found
    then = parsed_policy(PolicySource("guide.yaml", found[1]))
    now = parsed_policy(PolicySource("now.yaml", "apiVersion: policyctx/v1\nname: now\n"))

    def shown(policy: Policy) -> tuple[str, str, str]:
        ttl, backoff = policy.model.cache.ttl, policy.compaction.summary.backoff
        return policy.placeholder.text or "", str(ttl), str(backoff)

    text = "[Content offloaded]\nPath: {path}"
    assert shown(then) == (f"{text}\nUse Read tool to view details.", "5m", "1s")
    assert shown(now) == (text, "recorded", "2s")
    assert "| `model.cache.ttl` | `5m` | `recorded`" in GUIDE
    assert "| `compaction.summary.backoff` | `1s` | `2s` |" in GUIDE
