"""`ModelCall`: a point of a recorded session at which a model was called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyctx.messages.items import Message
    from policyctx.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a recording shows of one request to a model, seen against the request before it."""

    new: tuple[Message, ...]
    """What was put into the context since the call before, that call's reply included."""
    anew: bool = False
    """`new` is the whole context: the first call, or the recording's own compaction or rewind."""
    usage: Usage | None = None
    """What was billed for it, None where the recording does not tell."""
    language_model: str | None = None
    """The name that the recording gives."""
    at: float | None = None
    """When its reply was recorded, in seconds since 1970."""
    system: object = None
    """The request's own system prompt, where the recording has it apart from the messages."""
    tools: object = None
    """The schemas of the tools on offer, where the recording has them."""
