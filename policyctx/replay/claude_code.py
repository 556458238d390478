"""Sessions as Claude Code records them: JSON lines under `~/.claude/projects/`.

What the format asks of a reader: one API message is spread over several lines that share a
`message.id`, with results of parallel calls between them; records hang together by `parentUuid`,
where records that are no message are links as well; parallel calls branch the chain, and so does a
prompt that was taken back; a compaction starts a new root; sub-agents are marked `isSidechain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from policyctx.errors import UsageError
from policyctx.replay.model_call import ModelCall
from policyctx.tokens.usage import usage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.messages.items import Message
    from policyctx.tokens.usage import Usage

Record: TypeAlias = dict[str, Any]


def recognises(record: Record) -> bool:
    """Is this a message as Claude Code writes one."""
    return _is_message(record) and "parentUuid" in record and "sessionId" in record


def context_of(records: Sequence[Record]) -> list[Message]:
    """Return the messages that a model would be sent next, system prompt and tools apart.

    What lies before the last compaction, what was taken back, and a sub-agent's own messages are
    not part of it; a sub-agent's file, which holds nothing else, is read as its own session.
    """
    main = _main(records)
    return _context(records, main, main[-1]) if main else []


def calls_of(records: Sequence[Record]) -> Iterator[ModelCall]:
    """Yield each call of a model whose usage is recorded, in the order of the replies.

    A reply over several lines is one call, and the calls of sub-agents are left out as in
    `context_of`. A reply that was billed nothing, such as an error shown as one, is no call.
    """
    main = _main(records)
    ours = {id(record) for record in main}
    before: list[Record] = []
    seen: set[str] = set()
    for i, record in enumerate(records):
        if id(record) not in ours:
            continue
        message = record["message"]
        reply, usage = _word(message.get("id")) or str(i), _usage(message.get("usage"))
        if usage is not None and usage.prompt and reply not in seen:
            seen.add(reply)
            context = _context(records[: i + 1], before, record)
            yield ModelCall(context, usage, _word(message.get("model")) or None)
        before.append(record)


def _usage(fields: object) -> Usage | None:
    try:
        return usage_of(fields)
    except UsageError:
        return None


def _main(records: Sequence[Record]) -> list[Record]:
    """Return the messages of the session itself: not of sub-agents, unless there are no others."""
    messages = [record for record in records if _is_message(record)]
    return [record for record in messages if not record.get("isSidechain")] or messages


def _context(records: Sequence[Record], main: Sequence[Record], last: Record) -> list[Message]:
    """Return what of `main` the chain up to `last` holds, as messages."""
    kept = _with_parallel_branches(_chain(records, last), main)
    return _merged(record for record in main if id(record) in kept)


def _is_message(record: Record) -> bool:
    message = record.get("message")
    return (
        record.get("type") in ("user", "assistant")
        and isinstance(message, dict)
        and isinstance(message.get("content"), str | list)
        and not record.get("isApiErrorMessage")
    )


def _chain(records: Sequence[Record], last: Record) -> set[int]:
    """Return the ids (of the objects) of `last` and all that it follows from."""
    position = {id(record): i for i, record in enumerate(records)}
    by_uuid = {record["uuid"]: record for record in records if isinstance(record.get("uuid"), str)}
    chain: set[int] = set()
    record: Record | None = last
    while record is not None and id(record) not in chain:
        chain.add(id(record))
        parent = record.get("parentUuid")
        if not isinstance(parent, str):
            break
        record = by_uuid.get(parent) or _linked_before(records, position[id(record)])
    return chain


def _linked_before(records: Sequence[Record], end: int) -> Record | None:
    """Stand in for a parent that the file lacks: the record of the same agent written before."""
    side = records[end].get("isSidechain", False)
    before = (records[i] for i in range(end - 1, -1, -1))
    return next((r for r in before if "uuid" in r and r.get("isSidechain", False) == side), None)


def _with_parallel_branches(chain: set[int], main: Sequence[Record]) -> set[int]:
    """Add to the chain the other lines of its API messages, and the results of their calls."""
    kept = set(chain)
    ids = {_word(r["message"].get("id")) for r in main if id(r) in kept} - {""}
    kept |= {id(record) for record in main if _word(record["message"].get("id")) in ids}
    calls = {_word(b.get("id")) for r in main if id(r) in kept for b in _blocks(r, "tool_use")} - {
        ""
    }
    for record in main:
        results = _blocks(record, "tool_result")
        if any(_word(block.get("tool_use_id")) in calls for block in results):
            kept.add(id(record))
    return kept


def _word(value: object) -> str:
    """An id as it should be; anything but a string is none."""
    return value if isinstance(value, str) else ""


def _merged(records: Iterable[Record]) -> list[Message]:
    """Put the lines of one API message together, and the results of one message's calls."""
    messages: list[Message] = []
    gathering: dict[tuple[str, str], Message] = {}
    callers: dict[str, str] = {}
    for record in records:
        content = record["message"]["content"]
        key = _gathered_with(record, callers)
        if key in gathering:
            gathering[key]["content"].extend(content)
            continue
        message = {"role": record["message"].get("role", record["type"]), "content": content}
        messages.append(message)
        if key is not None:
            message["content"] = list(content)
            gathering[key] = message
    return messages


def _gathered_with(record: Record, callers: dict[str, str]) -> tuple[str, str] | None:
    """Name the message that this line is a part of; `callers` learns who made which call."""
    reply = record["message"].get("id")
    if not isinstance(record["message"]["content"], list):
        return None
    if isinstance(reply, str):
        callers |= {_word(block.get("id")): reply for block in _blocks(record, "tool_use")}
        return "reply", reply
    answered = (
        callers.get(block.get("tool_use_id", "")) for block in _blocks(record, "tool_result")
    )
    caller = next(answered, None)
    return None if caller is None else ("results", caller)


def _blocks(record: Record, kind: str) -> Iterator[dict[str, Any]]:
    content = record["message"]["content"]
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block
