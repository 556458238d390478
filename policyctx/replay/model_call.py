"""`ModelCall`: one request of a recorded session, and what was billed for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyctx.messages.items import Message
    from policyctx.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a recording shows of a request.

    `messages` were in the context, system prompt and tools apart, which recordings seldom hold;
    `language_model` is the name that the response gives, None where it gives none.
    """

    messages: list[Message]
    usage: Usage
    language_model: str | None = None
