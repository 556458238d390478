"""Replaying by a policy's name, as another process does it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.simulation import simulated

if TYPE_CHECKING:
    from policyctx.replay.recording import Recording
    from policyctx.replay.simulated import SimulatedSession


def replayed(
    policy: str, recording: Recording, path: str, *, excerpt: int | None = None
) -> SimulatedSession:
    """Replay one recording of the file at `path` under a policy given by name or path.

    Raises as `simulated` does, and `PolicyError`.
    """
    return simulated(recording, compiled(policy), path=path, excerpt=excerpt)


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def compiled(policy: str) -> OffloadPolicy:
    """Return a policy given by name or path, read once in this process."""
    return OffloadPolicy.load(policy)
