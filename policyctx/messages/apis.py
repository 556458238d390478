"""`Api`: the endpoints whose requests have a list of messages, and which upstream serves a path."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from policyctx.definitions.items import Message
from policyctx.messages.asked import Asked, model_name

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

    def held_by(self, fields: Mapping[str, Any]) -> str | None:
        """Return the field because of which a request has to pass unchanged, None without one."""
        return next(filter(fields.get, self.held), None)

    def asked(
        self, fields: Mapping[str, Any], messages: list[Message], key: str | None = None
    ) -> Asked:
        """Return what a request with these fields asks; `key` is that of `Asked`."""
        system, tools = fields.get(self.system) or None, fields.get("tools") or None
        model = model_name(fields.get("model"))
        return Asked(key, messages, system, tools, model=model, takes_markers=self.takes_markers)


_HELD_BY_ANTHROPIC = ("thread", "previous_message_id", "compaction")
MESSAGES = Api(ANTHROPIC, "messages", "system", _HELD_BY_ANTHROPIC, takes_markers=True)
COUNT = replace(MESSAGES, decides=False)
CHAT = Api(OPENAI, "messages")
RESPONSES = Api(
    OPENAI, "input", "instructions", ("previous_response_id", "conversation", "compaction")
)
HELD = """\
a request with %r was sent unchanged: the server holds its history, so there is nothing to edit"""

_APIS = {
    "/messages": MESSAGES,
    "/messages/count_tokens": COUNT,
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
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
