"""`Result`: what a turn came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policyctx.compaction.assembly import SummaryUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.messages.items import Message
    from policyctx.planning.plan import Plan
    from policyctx.turns.compacting import Compacted


@dataclass(frozen=True, slots=True)
class Result:
    """What a turn came to: the messages to send, and the plan that was carried out.

    `messages` is the very list that was given when it can be sent as it is. `warnings` says what
    could not be done and was therefore left.
    """

    messages: Sequence[Message]
    plan: Plan
    warnings: tuple[str, ...] = ()
    compaction: Compacted | None = None
    """The compaction that was made, None for none; `warnings` says why one was not."""
    summary_usage: SummaryUsage = field(default_factory=SummaryUsage)
    """What the model calls for a summary used, also if no summary was accepted."""

    @property
    def compacted(self) -> bool:
        """Was history replaced by a summary."""
        return self.compaction is not None

    @property
    def offloaded_count(self) -> int:
        """How many items newly left the context for a file."""
        return len(self.plan.to_save)

    @property
    def freed_chars(self) -> int:
        """Characters of what was newly saved, placeholders not deducted."""
        return self.plan.freed_chars

    @property
    def net_freed_chars(self) -> int:
        """Characters of what was newly saved, less those of the placeholders; may be negative."""
        return self.plan.net_freed_chars

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of what was newly saved, in the order of the items."""
        return tuple(d.file.path for d in self.plan.to_save if d.file)
