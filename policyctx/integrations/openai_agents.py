"""`PolicyFilter`: a session in the runs of OpenAI's Agents SDK.

    policy = PolicyFilter(Session("coding-agent", session_id="fix-the-tests"))
    result = await Runner.run(agent, task, **policy.options)

The SDK calls the filter before each model call, and sends the list that it returns. The items of
the run and of its `Session` (the SDK's class of that name) stay as they are. The hook observes the
usage of each response.

Importing this module raises `MissingExtraError` without the SDK, and `InstallationError` with a
version that is too old.
"""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeAlias

from policyctx.definitions.items import Message, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Turn
from policyctx.messages.asked import Asked, model_name
from policyctx.session import Session
from policyctx.tokens.usage import Usage

with required(
    "the filter for OpenAI Agents", "agents", needs="openai-agents>=0.4", extra="openai-agents"
):
    import agents
    from agents.run import CallModelData, ModelInputData

SessionOf: TypeAlias = Callable[[CallModelData[Any]], Session | None]
# What the model call of this task was sent, until its usage is observed.
_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


class PolicyFilter(agents.RunHooks[Any]):
    """Applies a session's policy to the model calls of runs, and observes their usage.

    It is the `call_model_input_filter` of a `RunConfig` and the `hooks` of a run, synchronous,
    asynchronous or streamed; `options` has both. Hooks of your own can call its `on_llm_end`.

    With a `Session`, or a policy and options of `Session` with a `session_id`, calls of other
    conversations pass unchanged, such as those of an agent that is used as a tool: see
    `AgentLoop.is_own`. With a function from the SDK's `CallModelData` to a session or None, its
    answer holds, and None means unchanged.

    A list with a result whose call is not in it passes unchanged, with one warning in the log: the
    server holds the history of such a run (`previous_response_id`, `conversation_id`). The warnings
    of turns are logged too. `Session.apply` raises its errors through the run.
    """

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        self._sessions = HostSessions(session, options=options, has_ids=False)
        self._listed: tuple[agents.Agent[Any], list[agents.Tool]] | None = None
        """The agent with MCP servers that came last, and their tools."""

    @property
    def options(self) -> dict[str, Any]:
        """The arguments `run_config` and `hooks` of a run that has none of its own."""
        return {"run_config": agents.RunConfig(call_model_input_filter=self), "hooks": self}

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input of a model call with the edited list."""
        _turn.set(None)
        given = data.model_data
        items: list[Any] = given.input
        session = self._sessions.chosen(data)
        if session is None or self._is_held(items):
            return given
        served = await self._served_tools(data) if data.agent.mcp_servers else ()
        tools = [*map(_schema, [*served, *data.agent.tools])]
        asked = Asked(
            None,  # the SDK repeats an attempt without coming here
            items,
            given.instructions,
            tools,
            data.agent.name,
            # A filter is not shown the model of a `RunConfig`.
            model=model_name(data.agent.model, getattr(data.agent.model, "model", None)),
            takes_markers=False,
        )
        if (turn := self._sessions.turn(session, asked)) is None:
            return given
        sent = await turn.apply()
        _turn.set(turn)
        if sent.messages is items:
            return given
        edited: list[Any] = [*map(_easy, sent.messages)]
        return ModelInputData(input=edited, instructions=given.instructions)

    async def on_llm_end(
        self,
        context: agents.RunContextWrapper[Any],  # noqa: ARG002 - as the SDK calls it
        agent: agents.Agent[Any],  # noqa: ARG002
        response: agents.ModelResponse,
    ) -> None:
        """Observe the usage of a response."""
        turn, usage = _turn.get(), response.usage
        if turn is None or not usage.input_tokens:
            return
        cached = usage.input_tokens_details.cached_tokens or 0
        await turn.observe(Usage.of_whole(usage.input_tokens, cached, 0, usage.output_tokens))

    async def _served_tools(self, data: CallModelData[Any]) -> list[agents.Tool]:
        """Return the tools of an agent's MCP servers, which are listed once."""
        if self._listed is None or self._listed[0] is not data.agent:
            context = agents.RunContextWrapper(data.context)
            served: list[agents.Tool] = []
            with suppress(Exception):  # the SDK has listed them for this call without an error
                served = await data.agent.get_mcp_tools(context)
            self._listed = data.agent, served
        return self._listed[1]

    def _is_held(self, items: list[Message]) -> bool:
        """Return whether the server holds calls to which results are in the list."""
        results = {item.get("call_id") for item in items if _is_result(item)}
        if results <= {item.get("call_id") for item in items if not _is_result(item)}:
            return False
        self._sessions.warn(
            "an input with results without their calls was sent unchanged: the server holds its"
            " history, so there is nothing to edit"
        )
        return True


def _easy(item: Message) -> Message:
    """Return a text of the model without an id in the form that the SDK reads for any API."""
    parts = item.get("content")
    if item.get("role") != "assistant" or "id" in item or not isinstance(parts, list):
        return item
    texts = [part["text"] for part in parts if part.get("type") == "output_text"]
    return {"role": "assistant", "content": "".join(texts)} if len(texts) == len(parts) else item


def _is_result(item: Message) -> bool:
    return str(item.get("type")).endswith("_output")


def _schema(tool: agents.Tool) -> dict[str, Any]:
    """Return what a tool adds to a request, as far as it is known; a hosted tool has its name."""
    schema = {"type": "function", "name": tool.name}
    if isinstance(tool, agents.FunctionTool):
        return {**schema, "description": tool.description, "parameters": tool.params_json_schema}
    return schema
