"""`Api`: the endpoints whose requests have a list of messages, and which upstream serves a path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANTHROPIC, OPENAI = "anthropic", "openai"


@dataclass(frozen=True, slots=True)
class Api:
    """An endpoint, by the names of the fields of its requests."""

    upstream: str
    messages: str
    system: str = ""
    """Empty if the system prompt is in the list."""
    held: tuple[str, ...] = ()
    """With one of these fields the server holds the history, or is asked to summarise it."""
    takes_markers: bool = False
    decides: bool = True
    """Whether a request is sent to a model. A request that counts decides nothing."""

    def is_held(self, fields: Mapping[str, Any]) -> str | None:
        """Return the field because of which a request has to pass unchanged, None without one."""
        return next((name for name in self.held if fields.get(name) is not None), None)


_HELD_BY_ANTHROPIC = ("thread", "previous_message_id", "compaction")
_MESSAGES = Api(ANTHROPIC, "messages", "system", _HELD_BY_ANTHROPIC, takes_markers=True)
_COUNT = Api(ANTHROPIC, "messages", "system", _HELD_BY_ANTHROPIC, takes_markers=True, decides=False)
_CHAT = Api(OPENAI, "messages")

_RESPONSES = Api(
    OPENAI, "input", "instructions", ("previous_response_id", "conversation", "compaction")
)

_APIS = {
    "/messages": _MESSAGES,
    "/messages/count_tokens": _COUNT,
    "/chat/completions": _CHAT,
    "/responses": _RESPONSES,
}


def api_of(path: str) -> Api | None:
    """Return the API of a path, with or without its `/v1`; None if requests pass unchanged."""
    return _APIS.get(path.removeprefix("/v1").rstrip("/"))


def upstream_of(path: str, headers: Mapping[str, str]) -> str:
    """Return the name of the upstream for a path; header names are in lower case."""
    short = path.removeprefix("/v1")
    if short == "/messages" or short.startswith("/messages/"):
        return ANTHROPIC
    if short.startswith(("/chat/", "/responses")):
        return OPENAI
    is_anthropic = "x-api-key" in headers or "anthropic-version" in headers
    return ANTHROPIC if is_anthropic else OPENAI
