"""`Checkpoint`: how far a conversation had come when a plan was made."""

from __future__ import annotations

from typing import NamedTuple


class Checkpoint(NamedTuple):
    """A point in the growth of a conversation: the one that a plan was made at."""

    items: int
    messages: int
    turns: int
    newest_user: int
    """Position of the newest message of the user, -1 without one."""
    pending: float
    """Position of the message with a call that is not answered yet, infinity without one."""
    changes: int
    """Number of changes of fates so far."""
