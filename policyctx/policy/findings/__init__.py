"""Static findings: what a policy may say, but probably does not mean.

Each is proved from the policy alone: globs by their automata, sizes by bounds. Where that proves
nothing there is no finding. What code adds at run time, such as a hint on a tool, is not known.
"""

from contextlib import suppress

from policyctx.errors import Diagnostic
from policyctx.policy.diagnosing import in_order
from policyctx.policy.findings import gates, items, steps
from policyctx.policy.models import Policy
from policyctx.policy.nodes import Node
from policyctx.policy.reach import Checked, TooLargeError

__all__ = ["findings"]

_CHECKS = (
    steps.no_steps_at_all, steps.steps_that_never_fire, steps.superseded_steps,
    steps.types_that_are_never_taken, steps.steps_that_lose_keys, items.caught_types,
    items.thresholds_too_low, gates.compactions_that_repeat, gates.ends_before_beginning,
    steps.cleared_for_good, gates.restorations_from_nowhere, gates.prompts_without_use,
    gates.unknown_summarizers, gates.unknown_tokenizers, gates.keys_of_another_root,
    gates.useless_spilling, gates.gates_that_never_open, items.disagreeing_globs,
    items.unused_keep_recent, gates.shared_files, items.types_never_offloaded, items.unused_types,
    steps.exceptions_without_effect, steps.placeholders_without_effect, steps.unused_excerpts,
    gates.ends_that_never_come, steps.orders_without_effect, items.groups_without_effect,
    steps.inputs_of_no_result, items.shares_without_sign, items.thresholds_too_high,
    items.recency_without_end, items.offload_without_effect, steps.excerpts_of_long_lines,
    gates.compactions_without_gate, items.batches_without_effect, gates.counts_that_forget,
    steps.tools_that_are_never_taken, items.regular_expressions,
)  # fmt: skip


def findings(root: Node, policy: Policy, *, advice: bool = False) -> list[Diagnostic]:
    """Return a warning for each finding, in the order of the files and their lines.

    With `advice` also a notice for each step that does what it says at a price.

    `root` is the resolved tree that `policy` was validated from; no error may be left in it. A
    policy far larger than a person writes is looked at in part.
    """
    checked = Checked(root, policy, {})
    found: list[Diagnostic] = []
    for check in (*_CHECKS, steps.edits_without_gate)[: None if advice else -1]:
        with suppress(TooLargeError):
            found.extend(check(checked))
    return in_order(found)
