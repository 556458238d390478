"""`ClaudeAgent`: one agent of a Claude Code session, its records put together as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.fields import Record, objects, seconds, usage, word

if TYPE_CHECKING:
    from policyctx.messages.items import Message


class _Node:
    """A message, and the one that it follows; those of a session form a tree."""

    __slots__ = ("call", "message", "parent", "results")

    def __init__(self, message: Message, parent: _Node | None) -> None:
        self.message = message
        self.parent = parent
        self.results: _Node | None = None
        """The message with the results of the calls that this one makes."""
        self.call: int | None = None
        """Which call of a model it is the reply to."""


class ClaudeAgent:
    """The context of one agent, which each record continues or takes back to an earlier point."""

    def __init__(self, agent_id: str, *, is_side: bool) -> None:
        self.agent_id = agent_id
        self.is_side = is_side
        self.builder = RecordingBuilder()
        self._tip: _Node | None = None
        self._newest: _Node | None = None
        self._by_uuid: dict[str, _Node | None] = {}
        self._replies: dict[str, _Node] = {}
        self._callers: dict[str, _Node] = {}

    def pass_over(self, record: Record, what: str, *, known: bool = True) -> None:
        """Count a record that is no message, which may be a link between others all the same."""
        self.builder.pass_over(what, known=known)
        if "uuid" in record:
            self._remember(record, self._parent(record))

    def add(self, record: Record) -> None:
        """Put a record's message into the context, or into the message that it is a part of."""
        message, parent = record["message"], self._parent(record)
        node = self._part_of(message)
        if node is None:
            node = self._appended(record, _settled(parent))
        else:
            node.message["content"].extend(message["content"])
        self._bill(node, message)
        self._learn_calls(node, message)
        self._remember(record, node)

    def _parent(self, record: Record) -> _Node | None:
        """Return what a record follows: in place of one that the file lacks, what stands before."""
        parent = record.get("parentUuid")
        return self._by_uuid.get(parent, self._newest) if isinstance(parent, str) else None

    def _remember(self, record: Record, node: _Node | None) -> None:
        self._newest = node
        if isinstance(uuid := record.get("uuid"), str):
            self._by_uuid[uuid] = node

    def _part_of(self, message: Message) -> _Node | None:
        """Return the message that this line continues: of one reply, or of one reply's results."""
        if not isinstance(message["content"], list):
            return None
        if reply := word(message.get("id")):
            node = self._replies.get(reply)
        else:
            caller = self._caller(message)
            node = caller and caller.results
        return node if node is not None and isinstance(node.message["content"], list) else None

    def _caller(self, message: Message) -> _Node | None:
        """Return the reply with the call that a message answers, None when it answers none."""
        ids = (word(block.get("tool_use_id")) for block in _blocks(message, "tool_result"))
        return next((self._callers[one] for one in ids if one in self._callers), None)

    def _appended(self, record: Record, parent: _Node | None) -> _Node:
        message = record["message"]
        content = message["content"]
        role = word(message.get("role")) or record["type"]
        caller = self._caller(message)
        kept = list(content) if isinstance(content, list) else content
        node = _Node({"role": role, "content": kept}, parent)
        if parent is not self._tip:
            self.builder.begin_anew(_path(parent))
        if role == "assistant":
            self._call(node, record)
        elif caller is not None:
            caller.results = node
        self.builder.add(node.message)
        self._tip = node
        return node

    def _call(self, node: _Node, record: Record) -> None:
        message = record["message"]
        if reply := word(message.get("id")):
            self._replies[reply] = node
        billed = usage(message.get("usage"))
        if billed is None or billed.prompt:
            model = word(message.get("model")) or None
            node.call = self.builder.called(billed, model, seconds(record.get("timestamp")))

    def _bill(self, node: _Node, message: Message) -> None:
        """Learn the usage of a reply; its last line is the least likely to show a stub."""
        billed = usage(message.get("usage"))
        if node.call is not None and billed is not None and billed.prompt:
            self.builder.bill(node.call, billed)

    def _learn_calls(self, node: _Node, message: Message) -> None:
        for block in _blocks(message, "tool_use"):
            if call_id := word(block.get("id")):
                self._callers[call_id] = node


def _settled(node: _Node | None) -> _Node | None:
    """Return where what follows a message goes on: after the results of its calls."""
    return node.results if node is not None and node.results is not None else node


def _path(node: _Node | None) -> list[Message]:
    path: list[Message] = []
    while node is not None:
        path.append(node.message)
        node = node.parent
    return path[::-1]


def _blocks(message: Message, kind: str) -> list[dict[str, Any]]:
    return [block for block in objects(message["content"]) if block.get("type") == kind]
