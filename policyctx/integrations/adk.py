"""`PolicyPlugin`: sessions in the runs of Google's Agent Development Kit.

    runner = InMemoryRunner(agent, plugins=[PolicyPlugin("coding-agent")])

The runner calls the plugin before and after each model call. The events of ADK's session stay the
originals. `GoogleShape` reads and edits the contents of Google's SDK.

Importing this module raises `MissingExtraError` without ADK, and `InstallationError` with a version
that has no plugins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Recent, Turn
from policyctx.messages.asked import Asked, model_name
from policyctx.session import Session
from policyctx.tokens.usage import Usage, usage_of

with required("the plugin for Google's ADK", "google.adk", needs="google-adk>=1.7", extra="adk"):
    from google.adk.plugins.base_plugin import BasePlugin

from policyctx.integrations.google_contents import GoogleShape

SessionOf: TypeAlias = Callable[[Any, Any], Session | None]
__all__ = ["GoogleShape", "PolicyPlugin"]

# The model calls whose usage is awaited at the same time.
_MOST_CALLS = 256


class PolicyPlugin(BasePlugin):  # type: ignore[misc]
    """Applies a policy to the model calls of a runner's agents, and observes their usage.

    With a policy each agent has one session in each session of ADK: see `session_of`; `options` are
    those of `Session`. With a `Session`, which needs `shapes=[GoogleShape()]`, all calls are one
    conversation, and those of another one pass unchanged: see `AgentLoop.is_own`. With a function
    from ADK's callback context and request to a session or None, its answer holds, and None means
    unchanged.

    A request with a `previous_interaction_id` passes unchanged: the server holds its history. The
    warnings of turns are logged. ADK wraps the errors of `Session.apply` in a `RuntimeError`.
    """

    def __init__(
        self,
        session: Session | SessionOf | PolicyLike,
        *,
        name: str = "policyctx",
        **options: SessionOption,
    ) -> None:
        super().__init__(name=name)
        self._sessions = HostSessions(session, GoogleShape(), options)
        self._turns: Recent[object, Turn] = Recent(_MOST_CALLS)

    def session_of(
        self, session_id: str, *, app_name: str, user_id: str, agent_name: str
    ) -> Session:
        """Return the session of an agent in a session of ADK; the given one if there is only one.

        ADK's session ids differ only within an application and a user, so the session id has all
        of them: `app_name/user_id/session_id/agent_name`.
        """
        return self._sessions.of_id(_joined(app_name, user_id, session_id, agent_name))

    async def before_model_callback(
        self, *, callback_context: HostObject, llm_request: HostObject
    ) -> None:
        """Put the edited list into a request."""
        call = _key(callback_context)
        self._turns.pop(call, None)
        held = getattr(llm_request, "previous_interaction_id", None)
        session = self._sessions.chosen(
            callback_context, llm_request, session_id=partial(_session_id, callback_context)
        )
        if session is None or held:
            return
        config = llm_request.config
        asked = Asked(
            None,  # the model repeats an attempt without coming here
            llm_request.contents,
            _system(config),
            _tools(config),
            callback_context.agent_name,
            _compared,
            model_name(llm_request.model),
        )
        if (turn := self._sessions.turn(session, asked)) is None:
            return
        sent = await turn.apply()
        self._turns.put(call, turn)
        if sent.messages is not sent.given:
            llm_request.contents = list(sent.messages)

    async def after_model_callback(
        self, *, callback_context: HostObject, llm_response: HostObject
    ) -> None:
        """Observe the usage of a response, of a stream that of its last part."""
        if llm_response.partial or (usage := _usage(llm_response)) is None:
            return
        if (turn := self._turns.get(_key(callback_context))) is not None:
            await turn.observe(usage)

    async def on_model_error_callback(
        self, *, callback_context: HostObject, llm_request: HostObject, error: Exception
    ) -> HostObject:
        """Send a request that was refused as too long once more, and return the response."""
        turn = self._turns.get(_key(callback_context))
        if turn is None or (sent := await turn.again(error)) is None:
            return None
        llm_request.contents = list(sent.messages)
        model = callback_context._invocation_context.agent.canonical_model  # noqa: SLF001
        response = None
        async for response in model.generate_content_async(llm_request):  # noqa: B007 - the last
            pass
        if response is not None and (usage := _usage(response)) is not None:
            await turn.observe(usage)
        return response


def _key(context: HostObject) -> tuple[object, ...]:
    """Return what names a model call that has not been answered."""
    session, inner = _session(context), context._invocation_context  # noqa: SLF001 - see below
    names = session.app_name, session.user_id, session.id, context.agent_name
    return (*names, context.invocation_id, inner.branch)


def _session(context: HostObject) -> HostObject:
    return context._invocation_context.session  # noqa: SLF001 - the first versions have no other name


def _session_id(context: HostObject) -> str:
    given = _session(context)
    return _joined(given.app_name, given.user_id, given.id, context.agent_name)


def _joined(*names: str) -> str:
    """Return a session id, which differs for different names, also for those with slashes."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


def _compared(content: HostObject) -> dict[str, Any]:
    return {"role": content.role, "content": content.model_dump_json(exclude_none=True)}


def _system(config: HostObject) -> object:
    """Return the system prompt as a text or as blocks."""
    given = getattr(config, "system_instruction", None)
    parts = getattr(given, "parts", None)
    if parts is None:
        return given
    return [{"type": "text", "text": part.text} for part in parts if part.text]


def _tools(config: HostObject) -> list[dict[str, Any]]:
    """Return what the tools add to a request; a built-in tool has its fields."""
    found: list[dict[str, Any]] = []
    for tool in getattr(config, "tools", None) or ():
        declared = getattr(tool, "function_declarations", None)
        each = declared if declared is not None else [tool]
        found += [one.model_dump(mode="json", exclude_none=True) for one in each]
    return found


def _usage(response: HostObject) -> Usage | None:
    given = response.usage_metadata
    return usage_of(given) if given is not None and given.prompt_token_count else None
