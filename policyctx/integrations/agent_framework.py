"""`PolicyMiddleware`: sessions in the agents of Microsoft's Agent Framework.

    policy = PolicyMiddleware("coding-agent")
    agent = Agent(client, tools=tools, middleware=[policy])
    result = await agent.run(task, session=agent.create_session(session_id="fix-the-tests"))

The agent's client calls the middleware around each model call. The messages of the agent's session
stay the originals. `AgentFrameworkShape` reads and edits the framework's message objects.

Importing this module raises `MissingExtraError` without the framework, and `InstallationError` with
a version that is too old.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, Path, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Turn
from policyctx.messages.asked import Asked, model_name
from policyctx.messages.json_text import JSON, SPACED, json_text, plain_value
from policyctx.messages.shapes.block_texts import BlockList
from policyctx.messages.shapes.blocks import block_type, file_part, shown_files
from policyctx.messages.shapes.shape import REMOVED, RESULT_ROLES, Part, Shape, kind_of_text
from policyctx.session import Session
from policyctx.tokens.usage import Usage

with required(
    "the middleware for Agent Framework",
    "agent_framework",
    needs="agent-framework-core>=1.11",
    extra="agent-framework",
):
    from agent_framework import ChatContext, ChatMiddleware, Content, Message

    if "session" not in signature(ChatContext).parameters:
        raise ImportError  # a call does not say to which session it belongs

SessionOf: TypeAlias = Callable[[ChatContext], Session | None]
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
# Questions of the agent and their answers, which no summary can tell.
_STATE = frozenset(
    {"function_approval_request", "function_approval_response", "oauth_consent_request"}
)
_LACKING = (
    "a session needs the session of the agent:"
    ' agent.run(…, session=agent.create_session(session_id="…")), or give the middleware a Session'
)


class AgentFrameworkShape(Shape):
    """The shape of the messages of Agent Framework."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a message of Agent Framework."""
        return isinstance(message, Message)

    def role(self, message: HostObject) -> str:
        """Return the role; a role of the caller's own is one of the user."""
        role = str(message.role)
        return role if role in _ROLES else "user"

    def parts(self, message: HostObject) -> Iterator[Part]:
        """Yield the contents, and the files in a result after it."""
        role = self.role(message)
        for i, content in enumerate(message.contents):
            yield from _content((i,), content, role)

    def replaced(self, message: HostObject, texts: Mapping[Path, str | None]) -> HostObject:
        """Return a copy of the message with these parts replaced or removed."""
        contents = []
        for i, content in enumerate(message.contents):
            mine = {path[1:]: text for path, text in texts.items() if path[0] == i}
            if (new := _edited(content, mine)) is not None:
                contents.append(new)
        edited = copy.copy(message)
        edited.contents = contents
        edited.additional_properties = dict(message.additional_properties or {})
        return edited if any(True for _ in self.parts(edited)) else None

    def written(self, role: str, text: str) -> HostObject:
        """Return a message with one text."""
        return Message(role, [Content.from_text(text)])

    def plain(self, message: HostObject) -> JSON:
        """Return what `Message.from_dict` takes, without ids and properties of the caller's."""
        contents = [_plain(content) for content in message.contents]
        found: dict[str, JSON] = {"type": "message", "role": str(message.role)}
        if message.author_name is not None:
            found["author_name"] = message.author_name
        return {**found, "contents": contents}

    def block(self, message: HostObject, path: Path) -> JSON:
        """Return the content at a path."""
        content = message.contents[path[0]]
        block: JSON = _plain(content if len(path) == 1 else content.items[path[1]])
        return block

    def stays(self, message: HostObject) -> bool:
        """Return whether the message asks the user for something, or answers that."""
        return any(content.type in _STATE for content in message.contents)


def _content(path: Path, content: HostObject, role: str) -> Iterator[Part]:
    kind, text = content.type, content.text
    if kind == "text" and role not in RESULT_ROLES:
        if text:
            yield Part(path, kind_of_text(role), text)
    elif kind == "text_reasoning" and role == "assistant":
        yield Part(path, "thinking", text or json_text(_plain(content)))
    elif kind == "function_call" and role == "assistant" and not getattr(content, "hosted", None):
        given = json_text(_arguments(content.arguments), SPACED)
        yield Part(path, "tool_call", given, tool=content.name, call_id=content.call_id)
    elif kind == "function_result" and (role == "user" or role in RESULT_ROLES):
        yield from _result(path, content)
    else:
        call_id = getattr(content, "call_id", None) if kind.endswith(("_call", "_result")) else None
        tool = (content.name or kind) if call_id and kind.endswith("_call") else None
        unknown = Part(path, "unknown", json_text(_plain(content)), tool=tool, call_id=call_id)
        yield _file(path, content) or unknown


def _arguments(given: HostObject) -> HostObject:
    if not isinstance(given, str):
        return dict(given or {})
    try:
        return json.loads(given) if given else {}
    except ValueError:
        return given


def _result(path: Path, content: HostObject) -> Iterator[Part]:
    items = list(getattr(content, "items", None) or ())
    files = [part for j, item in enumerate(items) if (part := _file((*path, j), item))]
    error, call_id = content.exception is not None, content.call_id
    texts = _texts_of(items)
    seen = "\n".join(texts) if items else content.result
    seen = seen if isinstance(seen, str) else json_text(seen)
    text, blocks = seen, BlockList([_plain(item) for item in items], texts) if files else None
    if blocks is not None and not seen:
        text, blocks = blocks.json, None
    media = tuple(medium for part in files for medium in part.media)
    result = Part(
        path, "tool_result", text, seen, media, call_id=call_id, error=error, blocks=blocks
    )
    yield from (result, *shown_files(result, files))


def _texts_of(items: Sequence[Any]) -> tuple[str, ...]:
    return tuple(item.text or "" for item in items if item.type == "text")


def _file(path: Path, content: HostObject) -> Part | None:
    """Return the part of an image, a document or a sound, None for another content."""
    media_type, url = str(content.media_type or ""), str(content.uri or "")
    kind = block_type(media_type)
    if content.type not in {"data", "uri"} or kind is None:
        return None
    source = {"type": "url", "url": url}
    if content.type == "data":
        data = url.partition(",")[2]
        source = {"type": "base64", "media_type": media_type, "data": data}
    block = {"type": kind, "source": source}
    return file_part(path, block, json_text(_plain(content)), media_type)


def _edited(content: HostObject, texts: Mapping[Path, str | None]) -> HostObject:
    """Return a copy of a content with new texts at the paths in it, None if it is removed."""
    new = copy.copy(content)
    new.additional_properties = dict(content.additional_properties or {})
    if not texts:
        return new
    new.raw_representation = None
    if () not in texts:
        items = [(texts.get((j,), item), item) for j, item in enumerate(content.items)]
        _set_items(new, [_item(text) for text, _ in items if text is not None])
        return new
    if (text := texts[()]) is None:
        return None
    if content.type == "function_call":
        new.arguments = text if isinstance(content.arguments, str) else json.loads(text)
    elif content.type == "function_result":
        _set_items(new, [_item(text)])
    elif content.type in {"data", "uri"}:
        new = _item(text)
    else:
        new.text = text
    return new


def _item(given: HostObject) -> HostObject:
    return Content.from_text(given) if isinstance(given, str) else copy.copy(given)


def _set_items(result: HostObject, items: list[Any]) -> None:
    """Set the items of a result, and its text, which repeats them."""
    result.items = items or [_item(REMOVED)]
    result.result = "\n".join(_texts_of(result.items))


def _plain(content: HostObject) -> HostObject:
    """Return the JSON values of a content; a property of the caller's may be any object."""
    return plain_value(content.to_dict(exclude={"raw_representation"}))


class PolicyMiddleware(ChatMiddleware):  # type: ignore[misc]
    """Applies a policy to the model calls of an agent, and observes their usage.

    With a policy there is one session for each session of the framework, with the same id;
    `options` are those of `Session`. A call without a session raises `InputError`. With a
    `session_id` among the options, or with a `Session`, which needs
    `shapes=[AgentFrameworkShape()]`, all calls are one conversation. Calls of other conversations
    pass unchanged, such as those of an agent that is used as a tool: see `AgentLoop.is_own`. With a
    function from the `ChatContext` to a session or None, its answer holds, and None means
    unchanged.

    A call whose history the server holds passes unchanged, with one warning in the log. The
    warnings of turns are logged too. `Session.apply` raises its errors through the agent.
    """

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        self._shape = AgentFrameworkShape()
        self._sessions = HostSessions(session, self._shape, options)

    def session_of(self, session_id: str) -> Session:
        """Return the session of an id; the one that was given if there is only one."""
        return self._sessions.of_id(session_id)

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Call the model with the edited list."""
        if (turn := self._turn(context)) is None:
            await call_next()
            return
        sent = await turn.apply()
        if sent.messages is not sent.given:
            context.messages = list(sent.messages)

        async def answered(response: HostObject) -> HostObject:
            turn.finish()
            await _observe(turn, response)
            return response

        if context.stream:
            context.stream_result_hooks.append(answered)
            await call_next()
        else:
            try:
                await call_next()
            except Exception as error:
                if (again := await turn.again(error)) is None:
                    raise
                context.messages = list(again.messages)
                await call_next()
            await answered(context.result)

    def _turn(self, context: ChatContext) -> Turn | None:
        """Return the turn that a call is; None if it passes unchanged."""
        messages = list(context.messages)
        options: Mapping[str, Any] = context.options or {}
        if self._is_held(messages, options):
            return None
        session_id = None if context.session is None else context.session.session_id
        session = self._sessions.chosen(context, session_id=lambda: session_id, lacking=_LACKING)
        tools = [*map(_schema, options.get("tools") or ())]
        # A repeated call is one with the same messages, before an answer to it has come.
        key = f"{len(messages)} {session_id}"
        system = options.get("instructions")
        model = model_name(options.get("model"), getattr(context.client, "model", None))
        asked = Asked(key, messages, system, tools, plain=self._compared, model=model)
        return self._sessions.turn(session, asked)

    def _is_held(self, messages: Sequence[Any], options: Mapping[str, Any]) -> bool:
        """Return whether the server holds the history of a call."""
        contents = [content for message in messages for content in message.contents]
        results = {each.call_id for each in contents if each.type == "function_result"}
        calls = {each.call_id for each in contents if each.type == "function_call"}
        if not options.get("conversation_id") and results <= calls:
            return False
        self._sessions.warn(
            "a list of messages was sent unchanged: the server holds its history, so there is"
            " nothing to edit; the option store=False of the client keeps it here"
        )
        return True

    def _compared(self, message: HostObject) -> dict[str, Any]:
        found: Any = self._shape.plain(message)
        return {"from": found["role"], "content": found["contents"]}


async def _observe(turn: Turn, response: HostObject) -> None:
    usage = getattr(response, "usage_details", None) or {}
    whole, output = usage.get("input_token_count") or 0, usage.get("output_token_count") or 0
    read = usage.get("cache_read_input_token_count") or 0
    written = usage.get("cache_creation_input_token_count") or 0
    if read + written <= whole:  # most clients count the cache in the input
        whole -= read + written
    if whole + read + written:
        await turn.observe(Usage(whole, read, written, output))


def _schema(tool: HostObject) -> dict[str, Any]:
    """Return what a tool adds to a request, as far as it is known."""
    if isinstance(tool, dict):
        return tool
    name = str(getattr(tool, "name", type(tool).__name__))
    schema = {"name": name, "description": str(getattr(tool, "description", ""))}
    parameters = getattr(tool, "parameters", None)
    return {**schema, "parameters": parameters()} if callable(parameters) else schema
