"""Static findings: what a policy may say, but probably does not mean.

Each is proved from the policy alone: globs by their automata, sizes by bounds. Where that proves
nothing there is no finding. What code adds at run time, such as a hint on a tool, is not known.
"""

from contextlib import suppress

from policyctx.errors import Diagnostic
from policyctx.policy.diagnosing import in_order
from policyctx.policy.findings.gates import (
    compactions_that_repeat,
    compactions_without_gate,
    counts_that_forget,
    ends_before_beginning,
    ends_that_never_come,
    gates_that_never_open,
    prompts_without_use,
    restorations_from_nowhere,
    unknown_summarizers,
    unknown_tokenizers,
)
from policyctx.policy.findings.items import (
    batches_without_effect,
    caught_types,
    disagreeing_globs,
    groups_without_effect,
    offload_without_effect,
    recency_without_end,
    shares_without_sign,
    thresholds_too_high,
    thresholds_too_low,
    types_never_offloaded,
    unused_keep_recent,
    unused_types,
)
from policyctx.policy.findings.steps import (
    cleared_for_good,
    exceptions_without_effect,
    excerpts_of_long_lines,
    inputs_of_no_result,
    keys_of_another_root,
    no_steps_at_all,
    orders_without_effect,
    shared_files,
    steps_that_lose_keys,
    steps_that_never_fire,
    superseded_steps,
    types_that_are_never_taken,
    unused_excerpts,
    useless_spilling,
)
from policyctx.policy.models import Policy
from policyctx.policy.nodes import Node
from policyctx.policy.reach import Checked, TooLargeError

__all__ = ["findings"]

_CHECKS = (
    no_steps_at_all,
    steps_that_never_fire,
    superseded_steps,
    types_that_are_never_taken,
    steps_that_lose_keys,
    caught_types,
    thresholds_too_low,
    compactions_that_repeat,
    ends_before_beginning,
    cleared_for_good,
    restorations_from_nowhere,
    prompts_without_use,
    unknown_summarizers,
    unknown_tokenizers,
    keys_of_another_root,
    useless_spilling,
    gates_that_never_open,
    disagreeing_globs,
    unused_keep_recent,
    shared_files,
    types_never_offloaded,
    unused_types,
    exceptions_without_effect,
    unused_excerpts,
    ends_that_never_come,
    orders_without_effect,
    groups_without_effect,
    inputs_of_no_result,
    shares_without_sign,
    thresholds_too_high,
    recency_without_end,
    offload_without_effect,
    excerpts_of_long_lines,
    compactions_without_gate,
    batches_without_effect,
    counts_that_forget,
)


def findings(root: Node, policy: Policy) -> list[Diagnostic]:
    """Return a warning for each finding, in the order of the files and their lines.

    `root` is the resolved tree that `policy` was validated from; no error may be left in it. A
    policy far larger than a person writes is looked at in part.
    """
    checked = Checked(root, policy)
    found: list[Diagnostic] = []
    for check in _CHECKS:
        with suppress(TooLargeError):
            found.extend(check(checked))
    return in_order(found)
