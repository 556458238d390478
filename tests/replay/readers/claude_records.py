"""Records of Claude Code, and what its reader makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policyctx.definitions.items import Message
from policyctx.replay.recording import ModelCall
from tests.replay.readers.reading import read_lines

Record = dict[str, Any]


def record(uuid: str, parent: str | None, kind: str, **more: Any) -> Record:
    links = {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": False}
    return {"type": kind, **links, **more}


def user(uuid: str, parent: str | None, content: object, **more: Any) -> Record:
    return record(uuid, parent, "user", message={"role": "user", "content": content}, **more)


def reply(uuid: str, parent: str | None, message_id: str, *blocks: Record) -> Record:
    message = {"id": message_id, "role": "assistant", "content": list(blocks)}
    return record(uuid, parent, "assistant", message=message)


def aside(this: Record) -> Record:
    """The same record, in a sub-agent's conversation."""
    return {**this, "isSidechain": True}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def call(call_id: str) -> Record:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}


def result(call_id: str) -> Record:
    return {"type": "tool_result", "tool_use_id": call_id, "content": f"of {call_id}"}


def said(messages: list[Message]) -> list[object]:
    """What the messages hold in short: a string, or the words and ids of the blocks."""
    return [
        content
        if isinstance(content := message["content"], str)
        else [b.get("text") or b.get("id") or b.get("tool_use_id") for b in content]
        for message in messages
    ]


def context_of(records: Sequence[Record]) -> list[Message]:
    return read_lines(records)[0].messages()


def contexts_of(records: Sequence[Record]) -> list[list[object]]:
    return [said(context) for context in read_lines(records)[0].contexts()]


def calls_of(records: Sequence[Record]) -> tuple[ModelCall, ...]:
    return read_lines(records)[0].calls


DONE = [user("1", None, "go"), reply("2", "1", "m1", text("done"))]
CALLED = [user("1", None, "go"), reply("2", "1", "m1", call("a"))]
PARALLEL = [
    user("1", None, "go"),
    reply("2", "1", "m1", call("a")),
    user("3", "2", [result("a")]),
    reply("4", "2", "m1", call("b")),
    user("5", "4", [result("b")]),
    reply("6", "5", "m2", text("done")),
]
