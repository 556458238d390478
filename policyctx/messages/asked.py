"""Requests before the policy: the endpoints that take a list of messages, what a request asks, and
whether two requests are of one conversation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from policyctx.definitions.items import Message
from policyctx.messages.json_text import as_message
from policyctx.messages.markers import bare
from policyctx.messages.shapes.shape import SYSTEM_ROLES

# The roles of messages that are neither replies nor results of calls in one.
_ASKING = frozenset({"user", *SYSTEM_ROLES})
ANTHROPIC, OPENAI = "anthropic", "openai"


@dataclass(frozen=True, slots=True)
class Asked:
    """One attempt at a request, before the policy.

    `key` is equal for all attempts at it, None if the host makes them where no policy is.
    `agent` is the agent that asks, in a framework that names it. `plain` returns a message as the
    dict by which it is compared with those of other requests. `model` is the model that is called,
    as the request spells its name, None where the host does not say it. `takes_markers` says
    whether the API takes `cache_control` markers, None where the host does not know.
    """

    key: str | None
    messages: list[Message]
    system: object = None
    tools: object = None
    agent: str | None = None
    plain: Callable[[Message], Message] = as_message
    model: str | None = None
    takes_markers: bool | None = None

    def heads(self) -> list[Message]:
        """Return the leading system messages, which OpenAI's APIs have in the list."""
        found = takewhile(lambda message: message.get("role") in SYSTEM_ROLES, self._dicts())
        return list(found)

    def has_reply(self) -> bool:
        """Return whether a message is a reply or follows from one."""
        return any(message.get("role") not in _ASKING for message in self._dicts())

    def _dicts(self) -> Iterator[Message]:
        return (one if isinstance(one, dict) else {} for one in map(self.plain, self.messages))


def model_name(*given: object) -> str | None:
    """Return the first of these values that is a name, None if there is none."""
    return next((one for one in given if isinstance(one, str) and one), None)


def is_alike(last: Asked, asked: Asked) -> bool:
    """Whether two requests are of one conversation: two of three agree.

    The three are the system prompt, the names of the tools, and the messages, which begin with the
    same message or contain the newest one of the last request. Without a system prompt and tools
    in both, the messages must agree. Where the agents have names, the agent or the messages agree.
    """
    if asked.agent is not None:
        return asked.agent == last.agent or _continues(last, asked)
    system = _system(asked)
    same_system = _system(last) == system
    same_tools = _names(last.tools) == _names(asked.tools)
    if same_system and same_tools and (system or _names(asked.tools)):
        return True
    return (same_system or same_tools) and _continues(last, asked)


def _continues(last: Asked, asked: Asked) -> bool:
    before, messages = last.messages[len(last.heads()) :], asked.messages[len(asked.heads()) :]
    if not before or not messages:
        return False
    newest = bare(last.plain(before[-1]))
    return bare(asked.plain(messages[0])) == bare(last.plain(before[0])) or any(
        bare(asked.plain(message)) == newest for message in reversed(messages)
    )


def _system(asked: Asked) -> str:
    heads = (_text(message.get("content")) for message in asked.heads())
    return "\n".join([_text(asked.system), *heads])


def _names(tools: object) -> frozenset[str]:
    """Return the names of tools; a hosted tool of OpenAI's has its type as its name."""
    given = tools if isinstance(tools, list | tuple) else ()
    found = [tool for tool in given if isinstance(tool, dict)]
    named = [tool.get("function") or tool for tool in found]
    return frozenset(str(tool.get("name") or tool.get("type")) for tool in named)


def _text(system: object) -> str:
    """Return a system prompt as one text, whether it is a text or a list of blocks."""
    if isinstance(system, list):
        return "\n".join(str(block.get("text")) for block in system if isinstance(block, dict))
    return system if isinstance(system, str) else ""


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
