"""`PolicyCapability`: sessions in the agents of Pydantic AI.

    policy = PolicyCapability("coding-agent")
    agent = Agent(model, tools=tools, capabilities=[policy])
    result = await agent.run(task, conversation_id="fix-the-tests")

The agent calls the capability before and after each model request. `PydanticAIShape` reads and
edits the requests and responses of Pydantic AI.

Importing this module raises `MissingExtraError` without Pydantic AI, and `InstallationError` with a
version that is too old.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, Message, Path, SessionOption, joined
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Recent, Turn
from policyctx.messages.asked import Asked, model_name
from policyctx.messages.json_text import JSON, SPACED, json_text
from policyctx.messages.shapes.block_texts import BlockList, medium_of, shown_texts
from policyctx.messages.shapes.blocks import block_type, file_part, shown_files
from policyctx.messages.shapes.shape import REMOVED, Part, Shape
from policyctx.session import Session
from policyctx.tokens.usage import Usage

with required(
    "the capability for Pydantic AI",
    "pydantic_ai",
    needs="pydantic-ai-slim>=2.17",
    extra="pydantic-ai",
):
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext

SessionOf: TypeAlias = Callable[[RunContext[Any]], Session | None]
# The requests whose usage is awaited; one that failed is never answered.
_MOST_AWAITED = 256

# The time of a message that a compaction writes, which has to be the same in another process.
_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)

# The parts that are one text, by their field `part_kind`.
_TEXTS = {"system-prompt": "system_prompt", "user-prompt": "user_message"}
_TEXTS |= {"text": "assistant_message", "thinking": "thinking"}
# Parts that the agent or the provider reads as state, and that no summary can tell.
_STATE = frozenset(
    {
        "system-prompt", "compaction", "instruction-baseline", "instruction-delta",
        "capability-load-delta", "model-settings-delta", "tool-availability-delta",
    }
)  # fmt: skip
_URLS = {f"{kind}-url": kind for kind in ("image", "document", "audio", "video")}
# What differs between messages that mean the same to the provider, and what may be any object.
_PART_FIELDS = {"timestamp": True, "metadata": True}
_FIELDS = {"run_id", "conversation_id", "usage", "cost", "instructions", "provider_response_id"}
_NOT_COMPARED: Any = {
    "__all__": {**dict.fromkeys(_FIELDS, True), **_PART_FIELDS, "parts": {"__all__": _PART_FIELDS}}
}


class PydanticAIShape(Shape):
    """The shape of the requests and responses of Pydantic AI."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a message of Pydantic AI."""
        return isinstance(message, ModelRequest | ModelResponse)

    def role(self, message: Message) -> str:
        """Return `user` for a request and `assistant` for a response."""
        return "user" if isinstance(message, ModelRequest) else "assistant"

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield the parts, and the pieces of a prompt or the files in a result as parts."""
        for i, part in enumerate(message.parts):
            kind = part.part_kind
            if _is_result(part):
                yield from self._result(i, part, message)
            elif kind == "tool-call" and not _has_kind(part):
                text = json_text(_arguments(part), SPACED)
                yield Part((i,), "tool_call", text, tool=part.tool_name, call_id=part.tool_call_id)
            elif kind == "user-prompt" and not isinstance(part.content, str):
                yield from self._pieces(i, part, message)
            elif kind in _TEXTS:
                text = part.content or (
                    "" if kind != "thinking" else json_text(self._at(message, i), SPACED)
                )
                if text:
                    yield Part((i,), _TEXTS[kind], text)
            else:  # a tool that the provider runs has its call and its return in the response
                text = json_text(self._at(message, i), SPACED)
                call_id = getattr(part, "tool_call_id", None)
                tool = part.tool_name if call_id and kind.endswith("-call") else None
                yield Part((i,), "unknown", text, tool=tool, call_id=call_id)

    def _result(self, i: int, part: HostObject, message: Message) -> Iterator[Part]:
        error = getattr(part, "outcome", "failed") in {"failed", "retried"}
        content, seen = part.content, _result_text(part)
        files = [(j, piece) for j, piece in enumerate(_listed(content)) if _block(piece)]
        media = tuple(medium_of(_block(piece)) for _, piece in files)
        whole = self._at(message, i)["content"]
        text, blocks = json_text(whole, SPACED) if files else seen, None
        texts = shown_texts(whole, {j for j, _ in files}) if isinstance(content, list) else None
        if texts is not None:
            text, blocks = joined(texts), BlockList(text, texts)
        call_id = part.tool_call_id
        result = Part(
            (i,), "tool_result", text, seen, media, call_id=call_id, error=error, blocks=blocks
        )
        values = whole if isinstance(content, list) else [whole]
        yield from (result, *shown_files(result, (_file((i, j), p, values[j]) for j, p in files)))

    def _pieces(self, i: int, part: HostObject, message: Message) -> Iterator[Part]:
        for j, piece in enumerate(part.content):
            text = piece if isinstance(piece, str) else getattr(piece, "content", None)
            if isinstance(text, str):
                if text:
                    yield Part((i, j), "user_message", text)
            elif _kind(piece) != "cache-point":  # it is a mark, and says nothing
                value = self._at(message, i)["content"][j]
                if _block(piece):
                    yield _file((i, j), piece, value)
                else:
                    yield Part((i, j), "unknown", json_text(value, SPACED))

    def _at(self, message: Message, i: int) -> HostObject:
        found: Any = self.plain(message)
        return found["parts"][i]

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> HostObject:
        """Return a copy of the message with these parts replaced or removed."""
        parts = []
        for i, part in enumerate(message.parts):
            mine = {path[1:]: text for path, text in texts.items() if path[0] == i}
            if not mine:
                parts.append(_copy(part))
            elif (edited := _edited(part, mine)) is not None:
                parts.append(edited)
        new = _copy(replace(message, parts=[]))
        new.parts = parts
        return new if any(True for _ in self.parts(new)) else None

    def written(self, role: str, text: str) -> HostObject:
        """Return a response of the model, or a request with a prompt of the user."""
        if role == "assistant":
            return ModelResponse([TextPart(text)], timestamp=_WRITTEN)
        return ModelRequest([UserPromptPart(text, timestamp=_WRITTEN)])

    def plain(self, message: Message) -> JSON:
        """Return what `ModelMessagesTypeAdapter` takes, without times, ids of runs and usage."""
        found: JSON = ModelMessagesTypeAdapter.dump_python(
            [message], mode="json", exclude=_NOT_COMPARED
        )[0]
        return found

    def block(self, message: Message, path: Path) -> JSON:
        """Return the part at a path, or the piece of its content."""
        found = self._at(message, int(path[0]))
        if len(path) > 1:
            content = found["content"]
            found = content[int(path[1])] if isinstance(content, list) else content
        block: JSON = found
        return block

    def stays(self, message: Message) -> bool:
        """Return whether the message has a part that the agent or the provider reads as state."""
        return any(part.part_kind in _STATE or _has_kind(part) for part in message.parts)


def _is_result(part: HostObject) -> bool:
    """Return whether a part is a result, or asks to repeat a call."""
    if part.part_kind == "retry-prompt":
        return part.tool_name is not None
    return bool(part.part_kind == "tool-return") and not _has_kind(part)


def _has_kind(part: HostObject) -> bool:
    """Return whether a call or a result is one of those that the agent itself reads."""
    return getattr(part, "tool_kind", None) is not None


def _result_text(part: HostObject) -> str:
    """Return what the model reads of a result, without files and without the mark of an error."""
    if isinstance(part.content, str):
        return part.content
    if part.part_kind == "retry-prompt":
        text: str = part.model_response()
    elif getattr(part, "outcome", "success") == "success":
        text = part.model_response_str()
    else:
        text = replace(part, outcome="success").model_response_str()
    return text


def _arguments(part: HostObject) -> HostObject:
    try:
        return part.args_as_dict()
    except (AssertionError, ValueError):  # older versions raise for what is not JSON
        return {"INVALID_JSON": part.args}


def _kind(piece: object) -> str:
    return str(getattr(piece, "kind", ""))


def _listed(content: object) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _block(piece: HostObject) -> Mapping[str, Any]:
    """Return a file as the block by which it is sized, an empty map for any other value."""
    if (kind := _kind(piece)) == "binary":
        media_type = str(piece.media_type)
        source = {"type": "base64", "media_type": media_type, "data": piece.base64}
        block = block_type(media_type)
    else:
        source, block = {"type": "url", "url": str(getattr(piece, "url", ""))}, _URLS.get(kind)
    return {} if block is None else {"type": block, "source": source}


def _file(path: Path, piece: HostObject, value: JSON) -> Part:
    block = _block(piece)
    return file_part(path, block, json_text(value, SPACED), block["source"].get("media_type"))


def _copy(value: HostObject) -> HostObject:
    """Return a deep copy of a message or a part; its metadata may be anything, and is shared."""
    metadata = getattr(value, "metadata", None)
    shared = {} if metadata is None else {id(metadata): metadata}
    new = object.__new__(type(value))  # `copy` would warn about parts that are deprecated
    vars(new).update(copy.deepcopy(vars(value), shared))
    return new


def _edited(part: HostObject, texts: Mapping[Path, str | None]) -> HostObject:
    """Return a copy of a part with new texts at the paths in it, None if nothing is left."""
    new = _copy(part)
    if () in texts:
        text = texts[()]
        if text is None:
            return None
        if part.part_kind == "tool-call":
            new.args = json.loads(text)
        elif part.part_kind == "retry-prompt":  # which adds a sentence to its text
            name, call_id = part.tool_name, part.tool_call_id
            kept = {"timestamp": part.timestamp, "outcome": "failed"}
            new = ToolReturnPart(name, text, call_id, **kept)
        else:
            new.content = text
        return new
    whole = {int(path[0]): text for path, text in texts.items()}
    pieces = enumerate(_listed(new.content) if _is_result(part) else new.content)
    left = [whole.get(j, piece) for j, piece in pieces if whole.get(j, piece) is not None]
    if _is_result(part):
        new.content = left if isinstance(new.content, list) and left else (left or [REMOVED])[0]
    else:
        new.content = left
    return new if any(_kind(piece) != "cache-point" for piece in left) or _is_result(part) else None


class PolicyCapability(AbstractCapability[Any]):  # type: ignore[misc]
    """Applies a policy to the model requests of an agent, and observes their usage.

    With a policy there is one session for each `conversation_id` of a run, which is its session id;
    `options` are those of `Session`. With a `Session`, which needs `shapes=[PydanticAIShape()]`,
    all runs are one conversation. Requests of other conversations pass unchanged, such as those of
    an agent that runs inside a tool: see `AgentLoop.is_own`. With a function from the `RunContext`
    to a session or None, its answer holds, and None means unchanged.

    The warnings of turns are logged. `Session.apply` raises its errors through the run.
    """

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        self._sessions = HostSessions(session, PydanticAIShape(), options)
        self._shape = PydanticAIShape()
        self._awaited: Recent[tuple[object, int], Turn] = Recent(_MOST_AWAITED)

    @classmethod
    def get_serialization_name(cls) -> None:
        """Return None: a specification in YAML cannot hold a session."""

    def session_of(self, conversation_id: str) -> Session:
        """Return the session of a conversation; the one that was given if there is only one."""
        return self._sessions.of_id(conversation_id)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Return the request with the edited list."""
        session = self._sessions.chosen(
            ctx,
            session_id=lambda: ctx.conversation_id,
            lacking="a session needs the conversation_id of a run",
        )
        if (turn := self._sessions.turn(session, self._asked(request_context))) is None:
            return request_context
        sent = await turn.apply()
        self._awaited.put((ctx.run_id, ctx.run_step), turn)
        if sent.messages is not sent.given:
            request_context.messages = list(sent.messages)
        return request_context

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - as the agent calls it
        response: ModelResponse,
    ) -> ModelResponse:
        """Observe the usage of a response, and return it unchanged."""
        turn = self._awaited.pop((ctx.run_id, ctx.run_step), None)
        usage = response.usage
        if turn is not None and usage.input_tokens:
            read, written = usage.cache_read_tokens, usage.cache_write_tokens
            billed = Usage.of_whole(usage.input_tokens, read, written, usage.output_tokens)
            await turn.observe(billed)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Send a request that was refused as too long once more; raise any other error."""
        turn = self._awaited.get((ctx.run_id, ctx.run_step))
        sent = None if turn is None else await turn.again(error)
        if sent is None:
            raise error
        request_context.messages = list(sent.messages)
        settings = request_context.model_settings, request_context.model_request_parameters
        return await request_context.model.request(request_context.messages, *settings)

    def _asked(self, request: ModelRequestContext) -> Asked:
        given = request.model_request_parameters
        system = "\n\n".join(part.content for part in given.instruction_parts or ())
        tools = [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            }
            for tool in (*given.function_tools, *given.output_tools)
        ]
        model = model_name(request.model.model_name)
        # The agent repeats an attempt without coming here.
        return Asked(None, list(request.messages), system, tools, plain=self._compared, model=model)

    def _compared(self, message: Message) -> dict[str, Any]:
        found: Any = self._shape.plain(message)
        return {"kind": message.kind, "content": found["parts"]}
