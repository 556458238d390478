"""`Decision`: what happens to one item, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.definitions.actions import Action

if TYPE_CHECKING:
    from policyctx.messages.items import Item
    from policyctx.planning.facts import Unit
    from policyctx.planning.paths import File
    from policyctx.planning.placeholders import Wording
    from policyctx.planning.reasons import Reason
    from policyctx.policy.lookup import RulePath


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to one item: kept, or out of the context by the `action` of a step.

    An offloaded item goes to `file` and leaves its `placeholder`, a cleared one only leaves that,
    a dropped one goes to `file` and leaves nothing. A summarised one goes with its message, for
    which a summary is to stand; that is no decision of its own, and not in `Plan.new`. `step` is
    the step that decided.
    """

    position: int
    """Of the item among the plan's items."""
    item: Item
    action: Action
    reason: Reason
    step: str = ""
    rule_path: RulePath = ()
    """The key that it went by, empty for what is so under every policy."""
    placeholder: str | None = None
    """The text in the item's place; of a call, the JSON of its input with the placeholder in it."""
    wording: Wording | None = None
    unit: Unit = "tokens"
    """Of the threshold that it went by: what is long is measured in it."""
    file: File | None = None
    wanted_path: str = ""
    """The file's path below the root before names that are taken were passed over."""
    saves: bool = False
    """Is the item's content still to be written."""

    @property
    def rule(self) -> str:
        """The key that it went by, in one word: `tools.mcp__*.min_tokens`."""
        return ".".join(self.rule_path)

    @property
    def is_new(self) -> bool:
        """Does the item leave the context, or what is left of it, by this very plan."""
        return self.action is not Action.KEEP and self.reason.code != "decided"
