"""What follows from the values of one map of a policy: shared by its model and its record."""

from __future__ import annotations

from typing import Protocol

from policyctx.definitions.actions import STEP_ACTIONS, Action, Do
from policyctx.policy.values import Duration


class _HasTtl(Protocol):
    @property
    def ttl(self) -> Duration | str: ...


class _HasState(Protocol):
    @property
    def state(self) -> str: ...


class _HasDo(Protocol):
    @property
    def do(self) -> Do: ...


ASSUMED_TTL = 300
"""Seconds that a write to the prompt cache is taken to live for where nobody says."""


class OfPromptCache:
    """What follows from the settings of the provider's prompt cache."""

    __slots__ = ()

    def seconds(self: _HasTtl, last_write: int | None = None) -> int:
        """Return the TTL in force; `last_write` is that of the last billed write, if known."""
        if isinstance(self.ttl, Duration):
            return self.ttl.seconds
        return ASSUMED_TTL if last_write is None else last_write


class OfStore:
    """What follows from the settings of a store."""

    __slots__ = ()

    @property
    def keeps_state(self: _HasState) -> bool:
        """Whether a session remembers its decisions beside the files."""
        return self.state == "kept"


class OfStep:
    """What follows from a step."""

    __slots__ = ()

    @property
    def action(self: _HasDo) -> Action:
        """What the step makes of the items that it takes."""
        return STEP_ACTIONS[self.do]


# By the name of the model.
DERIVED: dict[str, type] = {"PromptCache": OfPromptCache, "Store": OfStore, "Step": OfStep}
