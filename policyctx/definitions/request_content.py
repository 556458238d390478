"""The content of a request as token counting needs it, whatever the shape of its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

from policyctx.definitions.items import Medium, Provider


class Mark(Enum):
    """Something that an API adds around the texts of a request; its size depends on the API."""

    MESSAGE = "message"
    """The role of a message and what separates it from the next."""
    SPEAKER = "speaker"
    """Added to a message that names who speaks, beside the name."""
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


Piece: TypeAlias = str | Mark | Medium
"""A part of a request that has a size: a text, a mark of the API, or a medium."""


class RequestContent(NamedTuple):
    """The messages and the system prompt of a request."""

    pieces: Sequence[Piece]
    """Everything that has a size, in the order of the request."""
    provider: Provider
    """The provider in whose shape the messages are."""
    body: Mapping[str, Any] | None = None
    """The fields `messages` and `system` of a request to Anthropic's Messages API.

    None if a message cannot be sent there, as an item of OpenAI's Responses API.
    """


Ttl: TypeAlias = Literal["5m", "1h"]
"""How long a provider keeps an entry of its cache after the last use."""
