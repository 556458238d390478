"""What a table of many sessions needs of each: its figures, without calls, removals and regrets.

A replayed session takes some 55 KB of memory, its figures a third of that. The sessions of a large
file have one line in the table, so they are added up as soon as the file is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from policyctx.replay.recording import Recording
from policyctx.replay.running import FailedRecording, LoadedPolicy, PassedOver, replayed
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.summing import Figures, figures_of, total
from policyctx.replay.terms import PricesOf

FEW = 3
"""A file with more sessions than this has one line for all of them."""


@dataclass(frozen=True, slots=True)
class ShownSessions:
    """A session, or several of one file, as the table shows them."""

    name: str
    """Of the session; empty for several."""
    format: str
    path: str
    figures: Figures

    @classmethod
    def of(cls, session: SimulatedSession) -> ShownSessions:
        """Return what is shown of one session."""
        return cls(session.name, session.format, session.path, figures_of(session))


def shown(
    policy: str | LoadedPolicy, recording: Recording, path: str, *, prices: PricesOf = "recorded"
) -> ShownSessions:
    """Replay one recording as `replayed` does; return what is shown of it."""
    return ShownSessions.of(replayed(policy, recording, path, prices=prices))


Outcome: TypeAlias = "ShownSessions | FailedRecording | PassedOver"


def in_one_line(outcomes: list[Outcome]) -> list[Outcome]:
    """Return the outcomes of one file, with its sessions added up if they have one line."""
    sessions = [one for one in outcomes if isinstance(one, ShownSessions)]
    if len(sessions) <= FEW:
        return outcomes
    others = [one for one in outcomes if not isinstance(one, ShownSessions)]
    first, figures = sessions[0], total(one.figures for one in sessions)
    return [*others, ShownSessions("", first.format, first.path, figures)]
