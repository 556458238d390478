"""`PolicyMiddleware`: sessions in the agents of LangChain, and so of LangGraph and Deep Agents.

    agent = create_agent(model, tools, middleware=[PolicyMiddleware("coding-agent")])
    agent.invoke({"messages": messages}, {"configurable": {"thread_id": "fix-the-tests"}})

The agent calls the middleware around each model call. The messages in the agent's state stay the
originals. `LangChainShape` reads and edits LangChain's message objects.

Importing this module raises `MissingExtraError` without LangChain, and `InstallationError` with one
that has no middleware.
"""

import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, Message, Path, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import (
    HostSessions,
    PolicyLike,
    SentTurn,
    Turn,
    at_once,
    settled,
)
from policyctx.messages.asked import Asked, model_name
from policyctx.messages.json_text import JSON, SPACED, compact_json, json_text, plain_value
from policyctx.messages.shapes.block_texts import DOCUMENTS, IMAGES, medium_of
from policyctx.messages.shapes.blocks import as_half, result_parts
from policyctx.messages.shapes.shape import REMOVED, Part, Shape, kind_of_text
from policyctx.session import Session
from policyctx.tokens.usage import Usage

with required(
    "the middleware for LangChain", "langchain", needs="langchain>=1.0", extra="langchain"
):
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config

SessionOf: TypeAlias = Callable[[ModelRequest], Session | None]

_ROLES = {
    "system": "system",
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "function": "function",
}
_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant"})
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call"})
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
# What differs between messages that mean the same to the provider.
_NOT_COMPARED = {"id", "artifact", "usage_metadata", "response_metadata", "tool_call_chunks"}
_LACKING = (
    'a session needs a thread_id: agent.invoke(…, {"configurable": {"thread_id": "…"}}), or give'
    " the middleware a Session"
)


class LangChainShape(Shape):
    """The shape of LangChain's message objects."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a message of LangChain."""
        return isinstance(message, BaseMessage)

    def role(self, message: Message) -> str:
        """Return the role; a `ChatMessage` names its own."""
        if (role := _ROLES.get(message.type)) is not None:
            return role
        own: str = getattr(message, "role", "user")
        return own if own in _CHAT_ROLES else "user"

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield the blocks of the content, then the calls.

        LangChain marks the summaries that it writes into the user's messages.
        """
        yield from (
            part._replace(author="summary") if _is_summary(message) else part
            for part in self._parts(message)
        )

    def _parts(self, message: Message) -> Iterator[Part]:
        role, content = self.role(message), message.content
        if role == "tool":
            yield from _result(message)
            return
        fields = vars(message)
        calls = fields.get("tool_calls") or ()
        if role == "function":  # it has no id that pairs it with its call
            yield Part(("content",), "unknown", json_text(content, SPACED))
        elif isinstance(content, str):
            if content:
                yield Part(("content",), kind_of_text(role), content)
        else:
            ids = {call["id"] for call in calls}
            for i, block in enumerate(content):
                yield from _block(("content", i), _as_block(block), role, ids)
        for i, call in enumerate(calls):
            text = json_text(call["args"], SPACED)
            yield Part(("tool_calls", i), "tool_call", text, tool=call["name"], call_id=call["id"])
        for i, call in enumerate(fields.get("invalid_tool_calls") or ()):
            yield Part(("invalid_tool_calls", i), "unknown", json_text(call, SPACED))

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> HostObject:
        """Return a copy of the message with these parts replaced or removed."""
        if message.type == "tool" and texts.get(("content",), "") is None:
            return None
        new = message.model_copy()
        fields = vars(message)
        for name in ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs"):
            value = fields.get(name)
            if value is not None and type(value) is not str:
                setattr(new, name, copy.deepcopy(value))
        for path, text in texts.items():
            if path[0] == "tool_calls":
                _edit_call(new, message.tool_calls[path[1]], text)
        removed = {
            path[1] for path, text in texts.items() if path[0] == "tool_calls" and text is None
        }
        if removed:
            calls = enumerate(new.tool_calls)
            new.tool_calls = [call for i, call in calls if i not in removed]
        _edit_content(new, message, texts)
        return new if message.type == "tool" or any(True for _ in self.parts(new)) else None

    def written(self, role: str, text: str) -> HostObject:
        """Return a message of the model or of the user."""
        return AIMessage(text) if role == "assistant" else HumanMessage(text)

    def plain(self, message: Message) -> JSON:
        """Return what `messages_from_dict` takes, without ids, usage and artifacts."""
        fields = message.model_dump(exclude=_NOT_COMPARED, warnings=False)
        found: JSON = plain_value({"type": message.type, "data": fields})
        return found

    def block(self, message: Message, path: Path) -> JSON:
        """Return the block or call at a path; the message if the part is all of its content."""
        if len(path) == 1:
            return self.plain(message)
        found: JSON = plain_value(getattr(message, str(path[0]))[path[1]])
        return found


def _is_summary(message: Message) -> bool:
    """Return whether a message in the user's place is the summary of LangChain's middleware."""
    marks = message.additional_kwargs
    return bool(message.type == "human" and marks.get("lc_source") == "summarization")


def _result(message: Message) -> Iterator[Part]:
    content: object = message.content
    if isinstance(content, list):
        content = [_provider_block(_as_block(block)) for block in content]
    error = message.status == "error"
    yield from result_parts(("content",), content, message.tool_call_id, error=error)


def _block(path: Path, block: Mapping[str, Any], role: str, ids: set[str]) -> Iterator[Part]:
    """Yield the part of a block, unless it repeats one of the calls with these ids."""
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and isinstance(text, str):
        yield Part(path, kind_of_text(role), text)
    elif kind in _THINKING and role == "assistant":
        said = block.get("thinking") or block.get("reasoning") or block.get("data")
        yield Part(path, "thinking", said if isinstance(said, str) else json_text(block, SPACED))
    elif kind in _CALL_BLOCKS and _call_id(block) in ids:
        return
    elif kind in IMAGES or kind in DOCUMENTS:
        medium = medium_of(_provider_block(block))
        yield Part(
            path, "image" if kind in IMAGES else "document", json_text(block, SPACED), "", (medium,)
        )
    else:
        yield as_half(Part(path, "unknown", json_text(block, SPACED)), block)


def _as_block(block: object) -> Mapping[str, Any]:
    return block if isinstance(block, dict) else {"type": "text", "text": str(block)}


def _provider_block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an image or document of LangChain's own form as a block of Anthropic's API."""
    kind, data = block.get("type"), block.get("base64") or block.get("data")
    if kind not in {"image", "file"} or not isinstance(data, str):
        return block
    source = {"type": "base64", "media_type": str(block.get("mime_type") or ""), "data": data}
    return {"type": "image" if kind == "image" else "document", "source": source}


def _call_id(block: Mapping[str, Any]) -> object:
    return block.get("call_id") or block.get("id")


def _edit_call(new: Message, call: Mapping[str, Any], text: str | None) -> None:
    """Replace the input of a call in all places of a message, or remove it from all but one.

    The content repeats a call in the form of the provider, and `additional_kwargs` may do so too.
    """
    id_ = call["id"]
    if text is not None:
        place = next(i for i, one in enumerate(new.tool_calls) if one["id"] == id_)
        new.tool_calls[place]["args"] = json.loads(text)
    blocks = new.content if isinstance(new.content, list) else []
    for block in blocks:
        if text is not None and isinstance(block, dict) and _call_id(block) == id_:
            given = json.loads(text)
            forms = {"tool_use": ("input", given), "tool_call": ("args", given)}
            name, value = forms.get(str(block.get("type")), ("arguments", text))
            block.pop("partial_json", None)
            block[name] = value
    raw = new.additional_kwargs.get("tool_calls")
    if isinstance(raw, list):
        if text is None:
            left = [one for one in raw if one.get("id") != id_]
            new.additional_kwargs = {**new.additional_kwargs, "tool_calls": left}
        for one in raw:
            if one.get("id") == id_ and text is not None and "function" in one:
                one["function"]["arguments"] = text
    if hasattr(new, "tool_call_chunks"):
        new.tool_call_chunks = [one for one in new.tool_call_chunks if one.get("id") != id_]


def _edit_content(new: Message, message: Message, texts: Mapping[Path, str | None]) -> None:
    """Replace and remove the texts and blocks of the content, also those of removed calls."""
    if ("content",) in texts:
        new.content = texts["content",] or ""
        return
    if isinstance(new.content, str):
        return
    calls = getattr(message, "tool_calls", None) or ()
    gone = {call["id"] for i, call in enumerate(calls) if texts.get(("tool_calls", i), "") is None}
    blocks: list[Any] = []
    for i, block in enumerate(new.content):
        if ("content", i) in texts:
            if text := texts["content", i]:
                mark = {k: v for k, v in _as_block(block).items() if k == "cache_control"}
                blocks.append({"type": "text", "text": text, **mark})
        elif not (_as_block(block).get("type") in _CALL_BLOCKS and _call_id(block) in gone):
            blocks.append(block)
    new.content = blocks or (REMOVED if message.type == "tool" else "")


class PolicyMiddleware(AgentMiddleware):  # type: ignore[misc]
    """Applies a policy to the model calls of an agent, and observes their usage.

    With a policy there is one session for each `thread_id` of the configuration, which is its
    session id; `options` are those of `Session`. A call without a `thread_id` raises `InputError`.
    With a `Session`, which needs `shapes=[LangChainShape()]`, all threads are one conversation.
    Calls of other conversations pass unchanged, such as those of a sub-agent with the same thread:
    see `AgentLoop.is_own`. With a function from the request to a session or None, its answer holds,
    and None means unchanged.

    The warnings of turns are logged. `Session.apply` raises its errors through the agent.
    """

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        super().__init__()
        self._sessions = HostSessions(session, LangChainShape(), options)

    def session_of(self, thread_id: str) -> Session:
        """Return the session of a thread; the one that was given if there is only one."""
        return self._sessions.of_id(thread_id)

    def wrap_model_call(self, request: HostObject, handler: Callable[[Any], Any]) -> HostObject:
        """Call the model with the edited list."""
        return at_once(self._answered(request, handler, blocks=True))

    async def awrap_model_call(
        self, request: HostObject, handler: Callable[[Any], Awaitable[Any]]
    ) -> HostObject:
        """Call the model with the edited list, without blocking the event loop."""
        return await self._answered(request, handler)

    async def _answered(
        self, request: HostObject, handler: Callable[[Any], Any], *, blocks: bool = False
    ) -> HostObject:
        if (turn := self._turn(request, blocks=blocks)) is None:
            return await settled(handler(request))
        sent = await turn.apply()
        try:
            response = await settled(handler(_edited(request, sent)))
        except Exception as error:
            if (again := await turn.again(error)) is None:
                raise
            response = await settled(handler(_edited(request, again)))
        turn.finish()
        await turn.observe(_usage(response))
        return response

    def _turn(self, request: HostObject, *, blocks: bool) -> Turn | None:
        """Return the turn that a model call is; None if it passes unchanged."""
        session = self._sessions.chosen(request, session_id=_thread_id, lacking=_LACKING)
        if session is None or not request.messages:
            return None
        messages = list(request.messages)
        # A repeated call is one with the same messages, before an answer to it has come.
        key = f"{len(messages)} {messages[-1].id}"
        tools = [*map(_schema, request.tools)]
        system, model = _system(request), _model(request)
        asked = Asked(key, messages, system, tools, plain=_compared, model=model)
        return self._sessions.turn(session, asked, blocks=blocks)


def _thread_id() -> object:
    return get_config().get("configurable", {}).get("thread_id")


def _edited(request: HostObject, sent: SentTurn) -> HostObject:
    """Return the request with the list that is sent; the same object if nothing changed."""
    if sent.messages is sent.given:
        return request
    return request.override(messages=list(sent.messages))


def _compared(message: Message) -> dict[str, Any]:
    """Return what the messages of two requests are compared by; an artifact may be anything."""
    calls = getattr(message, "tool_calls", ())
    return {"type": message.type, "content": message.content, "tool_calls": calls}


def _system(request: HostObject) -> object:
    """Return the system prompt; before langchain 1.1 a request has it as a text."""
    message = getattr(request, "system_message", None)
    return request.system_prompt if message is None else message.content


def _model(request: HostObject) -> str | None:
    """Return the name of the model that is called; LangChain's models name the attribute freely."""
    names = (getattr(request.model, name, None) for name in ("model_name", "model", "model_id"))
    return model_name((request.model_settings or {}).get("model"), *names)


def _schema(tool: object) -> dict[str, Any]:
    if isinstance(tool, dict):
        return tool
    found: dict[str, Any] = json.loads(compact_json(convert_to_openai_tool(tool)))
    return found


def _usage(response: HostObject) -> Usage | None:
    """Return the usage of the model's message in a response, None if it has none."""
    response = getattr(response, "model_response", response)
    messages = getattr(response, "result", [response])
    found = [getattr(message, "usage_metadata", None) for message in messages]
    usage = next((one for one in found if one and one.get("input_tokens")), None)
    if usage is None:
        return None
    whole, inside = usage["input_tokens"], usage.get("input_token_details") or {}
    read, written = inside.get("cache_read") or 0, inside.get("cache_creation") or 0
    return Usage.of_whole(whole, read, written, usage.get("output_tokens") or 0)
