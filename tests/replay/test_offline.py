from __future__ import annotations

from typing import Any

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models import Policy
from policyctx.replay.simulation import offline, online_summarizers


def compacting(*steps: dict[str, Any], by: str | None = None) -> OffloadPolicy:
    document: dict[str, Any] = {"apiVersion": "policyctx/v1", "name": "test"}
    if by is not None:
        document["compaction"] = {"summary": {"by": by, "max_words": 300}}
    named = [{"name": f"s{i}", "do": "compact", **step} for i, step in enumerate(steps)]
    return OffloadPolicy(Policy.model_validate({**document, "steps": named}))


def test_a_model_is_not_asked_for_a_summary() -> None:
    policy = offline(compacting({}, by="anthropic"))
    assert policy.policy.compaction.summary.by == "extractive"
    assert policy.policy.compaction.summary.max_words == 300


def test_a_model_named_by_a_step_is_not_asked_for_a_summary() -> None:
    asking = compacting({"compaction": {"summary": {"by": "mine"}}}, by="anthropic")
    assert online_summarizers(asking) == ("mine",)
    assert online_summarizers(offline(asking)) == ()


def test_a_step_without_a_summarizer_uses_the_policys_own() -> None:
    asking = compacting({"compaction": {"keep_first": 1}}, by="anthropic")
    assert online_summarizers(asking) == ("anthropic",)
    assert online_summarizers(offline(asking)) == ()


def test_no_file_is_restored() -> None:
    own = compacting({"compaction": {"restore": {"max_files": 3}}})
    policy = offline(own).policy
    assert policy.compaction.restore.max_files == 0
    assert [s.compaction and s.compaction.restore.max_files for s in policy.steps] == [0]


def test_hints_about_tools_are_kept() -> None:
    step = {"name": "shorten", "do": "compact"}
    document = {"apiVersion": "policyctx/v1", "name": "test", "steps": [step]}
    hints = {"browser": {"pin": True}}
    policy = offline(OffloadPolicy(Policy.model_validate(document), hints=hints))
    assert policy.pinned("tool_result", "browser") is not None
    assert policy.pinned("tool_result", "Read") is None


def test_a_policy_that_never_summarises_stays_as_it_is() -> None:
    policy = compacting(by="anthropic")
    assert offline(policy) is policy
