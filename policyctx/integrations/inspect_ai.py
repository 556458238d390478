"""`PolicyCompaction`: sessions in the agents of Inspect.

    agent = react(tools=[bash()], compaction=PolicyCompaction("coding-agent", threshold=0.5))

Inspect calls the strategy when the input of the next model call is over the threshold, and goes on
with the list that it returns. The messages of the sample's state stay the originals. `InspectShape`
reads and edits Inspect's message objects; an edited message keeps its id.

Importing this module raises `MissingExtraError` without Inspect, and `InstallationError` with a
version that has no such strategies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, Medium, Message, Path, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Recent
from policyctx.messages.asked import Asked, model_name
from policyctx.messages.json_text import JSON, SPACED, json_text
from policyctx.messages.shapes.blocks import result_parts
from policyctx.messages.shapes.shape import REMOVED, Part, Shape, kind_of_text
from policyctx.session import Session
from policyctx.tokens.usage import Usage

with required(
    "the strategy for Inspect", "inspect_ai", needs="inspect-ai>=0.3.284", extra="inspect"
):
    from inspect_ai.log import transcript
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageBase,
        ChatMessageUser,
        CompactionStrategy,
        ContentText,
    )
    from inspect_ai.model._compaction.types import (
        CompactionResult,  # noqa: F401 - older versions repeat the system messages of a list
    )
    from inspect_ai.solver._task_state import sample_state

SessionOf: TypeAlias = Callable[[Sequence[Any]], Session | None]
# The sessions that are kept between calls; the store has what is needed to go on with another one.
_MOST_SESSIONS = 256
# What differs between messages that mean the same to the provider.
_NOT_COMPARED = {"id", "source", "metadata", "model"}
# The largest factor between a provider's count of a prompt and Inspect's.
_MOST_SCALE = 4.0


class InspectShape(Shape):
    """The shape of Inspect's chat messages."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a message of Inspect."""
        return isinstance(message, ChatMessageBase)

    def role(self, message: Message) -> str:
        """Return the role, which has the same names here."""
        return str(message.role)

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield the parts of the content, then the calls.

        Inspect marks the summaries that it writes into the user's messages.
        """
        by_inspect = message.role == "user" and "summary" in (message.metadata or {})
        yield from (
            part._replace(author="summary") if by_inspect else part for part in self._parts(message)
        )

    def _parts(self, message: Message) -> Iterator[Part]:
        role, content = self.role(message), message.content
        if role == "tool":
            yield from _result(message)
        elif isinstance(content, str):
            if content:
                yield Part(("content",), kind_of_text(role), content)
        else:
            for i, block in enumerate(content):
                yield _block(("content", i), block, role)
        for i, call in enumerate(getattr(message, "tool_calls", None) or ()):
            text = json_text(call.arguments, SPACED)
            yield Part(("tool_calls", i), "tool_call", text, tool=call.function, call_id=call.id)

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> HostObject:
        """Return a copy of the message, with its id, with these parts replaced or removed."""
        if message.role == "tool" and texts.get(("content",), "") is None:
            return None
        new = message.model_copy(deep=True)
        for path, text in texts.items():
            if path[0] == "tool_calls" and text is not None:
                new.tool_calls[path[1]].arguments = json.loads(text)
            elif path == ("content",) and getattr(new, "error", None) is not None:
                new.error.message = text
            elif path == ("content",):
                new.content = text or ""
            elif path[0] == "content":
                old = new.content[path[1]]
                keeps = text is not None and isinstance(old, ContentText)
                changed = old.model_copy(update={"text": text}) if keeps else None
                new.content[path[1]] = changed or ContentText(text=text or "")
        for name in ("content", "tool_calls"):
            values = getattr(new, name, None)
            if isinstance(values, list):
                left = [v for i, v in enumerate(values) if texts.get((name, i), "") is not None]
                setattr(new, name, left)
        if message.role == "tool":
            new.content = new.content or REMOVED
            return new
        return new if any(True for _ in self.parts(new)) else None

    def written(self, role: str, text: str) -> HostObject:
        """Return a message of the model or of the user, with an id that follows from its text."""
        id_ = f"policyctx-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        kind = ChatMessageAssistant if role == "assistant" else ChatMessageUser
        return kind(id=id_, content=text)

    def plain(self, message: Message) -> JSON:
        """Return the values of a message without ids, metadata and source."""
        found: JSON = message.model_dump(mode="json", exclude=_NOT_COMPARED, exclude_none=True)
        return found

    def block(self, message: Message, path: Path) -> JSON:
        """Return the block or call at a path; the message if the part is all of its content."""
        if len(path) == 1:
            return self.plain(message)
        dumped = message.model_dump(mode="json", exclude_none=True)
        found: JSON = dumped[path[0]][path[1]]
        return found


def _result(message: Message) -> Iterator[Part]:
    if message.error is not None:
        text, id_ = message.error.message, message.tool_call_id
        yield Part(("content",), "tool_result", text, call_id=id_, error=True)
        return
    content = message.content
    if isinstance(content, list):
        content = [_provider_block(block) for block in content]
    yield from result_parts(("content",), content, message.tool_call_id, error=False)


def _block(path: Path, block: HostObject, role: str) -> Part:
    if block.type == "text":
        return Part(path, kind_of_text(role), block.text)
    if block.type == "reasoning" and role == "assistant":
        return Part(path, "thinking", block.reasoning)
    text = block.model_dump_json(exclude_none=True)
    if block.type in {"image", "document"}:
        data = block.image if block.type == "image" else block.document
        start = data.find(",") + 1 if data.startswith("data:") else 0
        medium = Medium(block.type, "openai", data if start else "", start)
        return Part(path, block.type, text, "", (medium,))
    return Part(path, "unknown", text)


def _provider_block(block: HostObject) -> dict[str, Any]:
    """Return a block of a result in the form of Anthropic's API."""
    given: dict[str, Any] = block.model_dump(mode="json", exclude_none=True)
    data = given.get("image", given.get("document"))
    if block.type not in {"image", "document"} or not isinstance(data, str):
        return {"type": "text", "text": block.text} if block.type == "text" else given
    head, _, encoded = data.partition(",")
    media_type = head.removeprefix("data:").partition(";")[0]
    if not encoded:
        return {"type": block.type, "source": {"type": "url", "url": data}}
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    return {"type": block.type, "source": source}


class PolicyCompaction(CompactionStrategy):  # type: ignore[misc]
    """Applies a policy to the input of model calls that are over the threshold.

    `threshold` is in tokens of Inspect's count, or a share of the context window. With a policy
    each conversation of a sample has one session: see `session_of`; `options` are those of
    `Session`. With a `Session`, which needs `shapes=[InspectShape()]`, all calls are one
    conversation, and the lists of others come back unchanged: see `AgentLoop.is_own`. With a
    function from the messages to a session or None, its answer holds, and None means unchanged.

    Inspect raises an error if the list that comes back is still over the threshold. The warnings of
    turns are logged. `Session.apply` raises its errors through the agent.
    """

    def __init__(
        self,
        session: Session | SessionOf | PolicyLike,
        *,
        threshold: float = 0.5,
        memory: bool = True,
        **options: SessionOption,
    ) -> None:
        super().__init__(type="edit", threshold=threshold, memory=memory)
        self._sessions = HostSessions(session, InspectShape(), options, most=_MOST_SESSIONS)
        # The conversation of a list whose first message is a summary, by the id of the summary.
        self._begins: Recent[str, str] = Recent(_MOST_SESSIONS)

    @property
    def preserve_prefix(self) -> bool:
        """False: the policy says what stays, and Inspect adds only missing system messages."""
        return False

    def session_of(self, sample: str, first_message: str) -> Session:
        """Return the session of a conversation: the uuid of its sample, and its first message's id.

        The given one if there is only one. Its own id is `SAMPLE/FIRST_MESSAGE`.
        """
        return self._sessions.of_id(f"{sample}/{first_message}")

    async def compact(
        self, model: HostObject, messages: list[Any], tools: list[Any]
    ) -> tuple[list[Any], None]:
        """Return the edited list, and no message for the history.

        Inspect does not show a strategy what the list was billed, so the session learns it from
        Inspect's count, scaled as the last model call was, and decides again with it.
        """
        if not messages:
            return messages, None
        session = self._sessions.chosen(messages, session_id=partial(self._session_id, messages))
        schemas = [tool.model_dump(mode="json", exclude_none=True) for tool in tools]
        name, given = model_name(model.name), messages
        for is_last in (False, True):
            asked = Asked(
                None, given, None, schemas, plain=_compared, model=name, takes_markers=False
            )
            if (turn := self._sessions.turn(session, asked)) is None:
                return messages, None
            given = list((await turn.apply()).messages)
            if not is_last:
                await turn.observe(Usage(await _tokens(model, given, tools)))
        if given:
            self._begins.put(_list_id(given), self._session_id(messages))
        return given, None

    def _session_id(self, messages: Sequence[Any]) -> str:
        """Return the id of the session of a list, which may begin with a summary by now."""
        found = _list_id(messages)
        return self._begins.get(found, found)


def _list_id(messages: Sequence[Any]) -> str:
    """Return the uuid of the sample of a list, and the id of its first message."""
    state = sample_state()
    return f"{state.uuid if state else ''}/{messages[0].id}"


async def _tokens(model: HostObject, messages: list[Any], tools: list[Any]) -> int:
    """Return what a list will be billed: Inspect's count, scaled as in the last model call."""
    for_tools = await model.count_tool_tokens(tools) if tools else 0
    count = await model.count_tokens(messages) + for_tools
    for event in reversed(list(transcript().events)):
        usage = getattr(getattr(event, "output", None), "usage", None)
        if event.event != "model" or usage is None or not event.input:
            continue
        names = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
        billed = sum(getattr(usage, name, None) or 0 for name in names)
        counted = await model.count_tokens(list(event.input)) + for_tools
        return int(count * min(max(billed / max(counted, 1), 1.0), _MOST_SCALE))
    return int(count)


def _compared(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": str(message.id)}
