"""A session of a dry run: it decides as any other, and keeps what it decided in memory alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from policyctx.compaction.summarizers import summarizer_for
from policyctx.messages.json_text import JSON
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.unwritten_store import UnwrittenStore
from policyctx.session import Session
from policyctx.turns.effects import Record

# It asks no model.
_OFFLINE = "extractive"


class UnwrittenRecords(UnwrittenStore):
    """A store that writes nothing, and keeps the records of its session."""

    def __init__(self, root: Path, policy: OffloadPolicy) -> None:
        super().__init__(root, policy.store)
        self._records: list[dict[str, JSON]] = []

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Keep records of the session in memory."""
        del flush
        self._records += map(dict, records)

    def records(self) -> list[dict[str, JSON]]:
        """Return every record kept, oldest first."""
        return [*self._records]


def dry_session(policy: OffloadPolicy, root: Path, name: str) -> Session:
    """Return a session that writes no file and asks no model for a summary."""
    summarizer = None if policy.compacting_step is None else summarizer_for(_OFFLINE)
    return Session(
        policy,
        session_id=name,
        store=UnwrittenRecords(root, policy),
        on_invalid="keep",
        summarizer=summarizer,
        expects_usage=False,
    )
