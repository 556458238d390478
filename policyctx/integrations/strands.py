"""`PolicyPlugin`: sessions in the agents of Strands.

    policy = PolicyPlugin("coding-agent", session_id="fix-the-tests")
    agent = Agent(model, tools=tools, plugins=[policy])

The agent calls the plugin before and after each model call. The plugin edits `agent.messages` in
place, so the next call begins with the list that was sent. `BedrockShape` reads and edits the
messages, which have the form of Bedrock's Converse API for every model.

Importing this module raises `MissingExtraError` without Strands, and `InstallationError` with a
version that is too old.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from policyctx.definitions.items import Message, SessionOption
from policyctx.errors import required
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Turn
from policyctx.messages.asked import Asked, model_name
from policyctx.session import Session
from policyctx.tokens.usage import Usage, usage_of

with required("the plugin for Strands", "strands", needs="strands-agents>=1.36", extra="strands"):
    from strands import Agent
    from strands.agent.conversation_manager import NullConversationManager
    from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent
    from strands.plugins import Plugin
    from strands.types.content import MessageMetadata  # noqa: F401 - with it came the usage

SessionOf: TypeAlias = Callable[[BeforeModelCallEvent], Session | None]
__all__ = ["BedrockShape", "PolicyPlugin"]

_log = logging.getLogger(__name__)

# The id of an agent that was given none.
_NO_AGENT_ID = "default"
_LACKING = (
    "a session needs an id: PolicyPlugin(policy, session_id=…), or give the agent a session_manager"
)


class _Sent(NamedTuple):
    """What an agent's last model call was sent."""

    turn: Turn
    messages: tuple[Message, ...]
    is_again: bool = False
    """Whether the call before it was refused as too long."""

    def is_repeated(self, messages: list[Message]) -> bool:
        """Return whether these are the messages that were sent, so no answer has come."""
        return len(messages) == len(self.messages) and all(map(is_, messages, self.messages))


class PolicyPlugin(Plugin):  # type: ignore[misc]
    """Applies a policy to the model calls of agents, and observes their usage.

    With a policy there is one session for each session and agent of Strands: its id is that of the
    agent's `session_manager`, with the `agent_id` if the agent has one. An agent without a session
    manager raises `InputError`. `options` are those of `Session`; with a `session_id` among them,
    or with a `Session`, which needs `shapes=[BedrockShape()]`, all calls are one conversation.
    Calls of other conversations pass unchanged, such as those of an agent that is used as a tool:
    see `AgentLoop.is_own`. With a function from the `BeforeModelCallEvent` to a session or None,
    its answer holds, and None means unchanged.

    The warnings of turns are logged. `Session.apply` raises its errors through the agent.
    """

    name = "policyctx"

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        super().__init__()
        self._shape = BedrockShape()
        self._sessions = HostSessions(session, self._shape, options)
        self._sent: WeakKeyDictionary[Agent, _Sent] = WeakKeyDictionary()

    def init_agent(self, agent: Agent) -> None:
        """Register the plugin for the model calls of an agent."""
        agent.hooks.add_callback(BeforeModelCallEvent, self._before)
        agent.hooks.add_callback(AfterModelCallEvent, self._after)
        if not isinstance(manager := agent.conversation_manager, NullConversationManager):
            _log.warning(
                "the agent's %s removes messages too, and so changes what the policy decided:"
                " Agent(conversation_manager=NullConversationManager())",
                type(manager).__name__,
            )

    def session_of(self, session_id: str) -> Session:
        """Return the session of an id; the one that was given if there is only one."""
        return self._sessions.of_id(session_id)

    async def _before(self, event: BeforeModelCallEvent) -> None:
        agent = event.agent
        messages: list[Any] = agent.messages
        last = self._sent.pop(agent, None)
        if last is not None and last.is_repeated(messages):
            self._sent[agent] = last
            return
        session = self._sessions.chosen(
            event, session_id=lambda: _conversation_id(agent), lacking=_LACKING
        )
        system = agent.system_prompt
        tools = [
            {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["inputSchema"].get("json", tool["inputSchema"]),
            }
            for tool in agent.tool_registry.get_all_tool_specs()
        ]
        # A repeated call is recognised by its messages, which are edited.
        asked = Asked(
            None, list(messages), system, tools, plain=self._compared, model=_model(agent)
        )
        if (turn := self._sessions.turn(session, asked)) is None:
            return
        sent = await turn.apply()
        if sent.messages is not sent.given:
            messages[:] = sent.messages
        self._sent[agent] = _Sent(turn, tuple(messages))

    async def _after(self, event: AfterModelCallEvent) -> None:
        """Observe the usage of a response; ask for a call again that was refused as too long."""
        last, response = self._sent.get(event.agent), event.stop_response
        if last is None:
            return
        if event.exception is not None and not last.is_again:
            sent = await last.turn.again(event.exception)
            if sent is not None:
                messages: list[Any] = event.agent.messages
                messages[:] = sent.messages
                self._sent[event.agent] = _Sent(last.turn, tuple(messages), is_again=True)
                event.retry = True
        if response is None:
            return
        usage = (response.message.get("metadata") or {}).get("usage") or {}
        if billed := _billed(usage):
            await last.turn.observe(billed)

    def _compared(self, message: Message) -> dict[str, Any]:
        return {"from": message.get("role"), "content": self._shape.plain(message)}


def _conversation_id(agent: Agent) -> str | None:
    """Return the id of the agent's session of Strands, with that of the agent if it has one."""
    found = getattr(getattr(agent, "_session_manager", None), "session_id", None)
    return found if found is None or agent.agent_id == _NO_AGENT_ID else f"{found}.{agent.agent_id}"


def _model(agent: Agent) -> str | None:
    """Return the name of an agent's model, None where its settings have none."""
    settings = agent.model.get_config()
    return model_name(settings.get("model_id")) if isinstance(settings, dict) else None


def _billed(usage: Mapping[str, int]) -> Usage | None:
    """Return a usage, None for one without a prompt."""
    found = usage_of({"inputTokens": 0, **usage})
    return found if found.prompt else None
