"""A policy as a replay runs it: no model is asked, whatever the policy says."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from policyctx.planning.offload_policy import OffloadPolicy

if TYPE_CHECKING:
    from policyctx.policy.models import Step
    from policyctx.policy.models.compaction import Compaction

OFFLINE = "extractive"


def online_summarizers(policy: OffloadPolicy) -> tuple[str, ...]:
    """Return who would make the policy's summaries, by name, but for the text itself."""
    whole = policy.policy.compaction
    compacting = [step for step in policy.policy.steps if step.do == "compact"]
    names = {
        step.compaction.summary.by if step.compaction and _names_one(step) else whole.summary.by
        for step in compacting
    }
    return tuple(sorted(names - {OFFLINE}))


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def offline(policy: OffloadPolicy) -> OffloadPolicy:
    """Return the policy with its summaries made from the text alone, and no file brought back.

    The files on the disk are those of today. A policy that never summarises is returned as it is.
    """
    document = policy.policy
    if all(step.do != "compact" for step in document.steps):
        return policy
    steps = tuple(
        step.model_copy(update={"compaction": _alone(step.compaction, named=_names_one(step))})
        if step.compaction is not None
        else step
        for step in document.steps
    )
    changed = {"compaction": _alone(document.compaction, named=True), "steps": steps}
    document = document.model_copy(update=changed)
    return OffloadPolicy(document, hints=policy.hints, root=policy.tree)


def _names_one(step: Step) -> bool:
    """Does the step say by itself who makes its summary."""
    own = step.compaction
    return own is not None and "by" in own.summary.model_fields_set


def _alone(compaction: Compaction, *, named: bool) -> Compaction:
    changed: dict[str, object] = {}
    if named:
        changed["summary"] = compaction.summary.model_copy(update={"by": OFFLINE})
    if named or "restore" in compaction.model_fields_set:
        changed["restore"] = compaction.restore.model_copy(update={"max_files": 0})
    return compaction.model_copy(update=changed)
