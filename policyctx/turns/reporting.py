"""`Reporting`: what a session tells operators of its turns, in the log and by OpenTelemetry.

The logger is `policyctx`: each step of a turn at the level INFO, each item that leaves the list at
DEBUG. No record contains the text of a message. OpenTelemetry gets spans and metrics in a process
that has imported it; a session never imports it first.
"""

from __future__ import annotations

import sys
from logging import Logger
from typing import TYPE_CHECKING

from policyctx.planning.compact import Replacing
from policyctx.planning.plan import step_reports
from policyctx.tokens.usage import Usage
from policyctx.turns.compacting import Compacted, NotCompacted
from policyctx.turns.effects import Turn
from policyctx.turns.result import Result

if TYPE_CHECKING:
    from policyctx.turns.telemetry import Telemetry


# Levels of `logging`, which is slow to import.
_INFO, _DEBUG = 20, 10


def _log_for(level: int) -> Logger | None:
    """Return the log of sessions if it takes records of this level, else None.

    A program that has not imported `logging` cannot have asked for them.
    """
    if (logging := sys.modules.get("logging")) is None:
        return None
    log: Logger = logging.getLogger("policyctx")
    return log if log.isEnabledFor(level) else None


class Reporting:
    """Reports the turns of one session under one policy."""

    def __init__(self, session_id: str, policy: str) -> None:
        self._session_id, self._policy = session_id, policy

    @property
    def is_traced(self) -> bool:
        """Whether a turn becomes a span."""
        return _telemetry() is not None

    def turn(self, operation: str, turn: Turn[Result]) -> Turn[Result]:
        """Run a turn that decides, and report it."""
        telemetry = _telemetry()
        if telemetry is None:
            result = yield from turn
        else:
            with telemetry.turn(operation, self._session_id, self._policy) as span:
                result = yield from turn
                span.end(result, step_reports(result.plan))
        if (log := _log_for(_INFO)) is not None:
            self._log(log, result)
        return result

    def compaction(
        self, replacing: Replacing, compacting: Turn[Compacted | NotCompacted]
    ) -> Turn[Compacted | NotCompacted]:
        """Run a compaction, and report whether it was made; the turn's report logs it."""
        telemetry = _telemetry()
        if telemetry is None:
            return (yield from compacting)
        with telemetry.compaction(replacing, self._session_id, self._policy) as span:
            made = yield from compacting
            span.end(made)
        return made

    def usage(self, usage: Usage) -> None:
        """Report the usage of a model call."""
        if (telemetry := _telemetry()) is not None:
            telemetry.usage(usage, self._session_id, self._policy)

    def _log(self, log: Logger, result: Result) -> None:
        plan = result.plan
        if log.isEnabledFor(_DEBUG):
            for decision in plan.new:
                item = decision.item
                log.debug(
                    "session %s: step %s: %s %s %s%s: %s",
                    self._session_id,
                    decision.step,
                    decision.action.past,
                    item.type,
                    item.item_id,
                    f" of {item.tool}" if item.tool else "",
                    decision.reason,
                )
        for report in step_reports(plan):
            log.info("session %s: step %s: %s", self._session_id, report.step, report)
        if result.compaction is not None:
            stats, made = result.compaction.stats, result.compaction.replacement
            log.info(
                "session %s: step %s: %s messages replaced by a summary, %s → %s tokens",
                self._session_id,
                made.step,
                f"{stats.compacted_message_count:,}",
                f"{stats.original_token_count:,}",
                f"{stats.compacted_token_count:,}",
            )


def _telemetry() -> Telemetry | None:
    """Return what reports by OpenTelemetry; None in a process that has not imported its API.

    A program that exports spans or metrics has imported it, so nothing is imported for the others.
    """
    if "opentelemetry.trace" not in sys.modules and "opentelemetry.metrics" not in sys.modules:
        return None
    from policyctx.turns.telemetry import telemetry  # noqa: PLC0415 - an extra

    return telemetry()
