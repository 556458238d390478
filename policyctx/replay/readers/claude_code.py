"""Sessions of Claude Code: JSON lines under `~/.claude/projects/`.

One API message is spread over several lines that share a `message.id`, with results of parallel
calls between them. Records form a tree by `parentUuid`, but the conversation is not simply one of
its branches:

- The lines of one reply, and the results of its calls, each hang on a line of their own. All of
  them belong to the prompt, wherever the chain continues.
- A branch omits something only where the user or the model spoke. A prompt that begins a branch
  takes back what it branches off from, unless the bill of the next reply shows that it was sent.

Records that are not messages are links of the chain as well. A compaction starts a new root;
sub-agents are marked `isSidechain`, in the same file or in their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from policyctx.definitions.items import Author, Authored, Message, written_by
from policyctx.definitions.tokenizers import DEFAULT_TOKENIZER
from policyctx.messages.editing import request_content
from policyctx.messages.reading import is_message
from policyctx.replay.readers.building import RecordingBuilder, usage
from policyctx.replay.readers.claude_attachments import as_text, is_of_user
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, objects, seconds, texts, word
from policyctx.replay.recording import Recording
from policyctx.tokens.counter import counter_for
from policyctx.tokens.usage import Usage

# Only for comparing a bill with what two lists would have cost, so any tokenizer does.
_TOKENIZER = DEFAULT_TOKENIZER
_LEAST_SCALE, _MOST_SCALE = 0.5, 4.0


@dataclass(slots=True, eq=False)
class _Node:
    """A message, and the one that it follows; those of a session form a tree."""

    message: Message
    parent: _Node | None
    after: str
    """The uuid of the message record that it hangs on."""
    is_said: bool
    """Whether the user or the model said it, and not the program."""
    reply_id: str = ""
    turn: _Node = field(init=False)
    """The first of the replies that follow one another without anything between them."""
    results: _Node | None = None
    """The message with the results of the calls of the turn that begins here."""
    call: int | None = None
    """The number of the model call that it is the reply to."""
    bill: int = 0
    """The tokens that were billed for the prompt of that call; 0 where nobody knows."""

    def __post_init__(self) -> None:
        self.turn = self

    @property
    def is_reply(self) -> bool:
        """Whether the model said it."""
        return bool(self.message["role"] == "assistant")

    @property
    def is_answer(self) -> bool:
        """Whether it holds results."""
        return bool(_blocks(self.message, "tool_result"))


class _Link(NamedTuple):
    """What a record continues: a message, and the record of it that the chain came through."""

    node: _Node | None = None
    uuid: str = ""


class ClaudeAgent:
    """The context of one agent, which each record continues or takes back to an earlier point."""

    def __init__(self, agent_id: str, *, is_side: bool) -> None:
        self.agent_id = agent_id
        self.is_side = is_side
        self.builder = RecordingBuilder()
        self._tip: _Node | None = None
        self._left: _Node | None = None
        """The end of what a branch left, while it is open whether that was taken back."""
        self._branch: list[_Node] = []
        """What that branch holds so far; the builder does not have it yet."""
        self._is_compacted = False
        """Whether the next root follows a compaction."""
        self._kept: list[str] = []
        """The uuids of what a compaction leaves behind its summary, which comes next."""
        self._newest = _Link()
        self._by_uuid: dict[str, _Link] = {}
        self._said: dict[tuple[str, ...], str] = {}
        """The first record of a message, by when it was said, by whom and what."""
        self._replies: dict[str, _Node] = {}
        self._callers: dict[str, _Node] = {}

    def has(self, record: Record) -> bool:
        """Whether a record repeats an earlier one under another uuid, which then links to it."""
        message, at = mapping(record.get("message")), word(record.get("timestamp"))
        blocks = objects(message.get("content"))
        ids = [one.get("id") or one.get("tool_use_id") or str(one) for one in blocks]
        said = at, word(message.get("id")), str(ids or message.get("content"))
        link = self._said.setdefault(said, word(record.get("uuid"))) if at and message else ""
        if link not in self._by_uuid:
            return False
        self._remember(record, self._by_uuid[link])
        return True

    def pass_over(self, record: Record, what: str, *, known: bool = True) -> None:
        """Count a record that is not a message, which may be a link between others all the same."""
        self.builder.pass_over(what, known=known, record=record)
        if record.get("subtype") == "compact_boundary":
            self._is_compacted = True
            kept = mapping(mapping(record.get("compactMetadata")).get("preservedMessages"))
            self._kept = texts(kept.get("uuids"))
        if "uuid" in record:
            self._remember(record, self._link(record))

    def add(self, record: Record) -> None:
        """Put a record's message into the context, or into the message that it is a part of."""
        message, link = record["message"], self._link(record)
        node = self._part_of(record, link.node)
        if node is not None:
            node.message["content"].extend(message["content"])
        elif (node := self._before_results(message)) is not None:
            node.message["content"] = [*message["content"], *_content(node.message)]
        else:
            node = self._appended(record, message, link)
        self._bill(node, message)
        self._learn_calls(node, message)
        if record.get("isCompactSummary") is True:
            node = self._keep(node)
        self._remember(record, _Link(node, word(record.get("uuid"))))

    def _keep(self, node: _Node) -> _Node:
        """Put behind a summary what its compaction kept, and return the newest message."""
        found = (self._by_uuid[one].node for one in self._kept if one in self._by_uuid)
        self._kept = []
        for old in {id(one): one for one in found}.values():
            if old is not None and node is self._tip:
                node = self._tip = _Node(old.message, node, old.after, old.is_said)
                self._learn_calls(node, node.message)
                self.builder.add(node.message)
        return node

    def attach(self, record: Record, text: str, *, is_said: bool = False) -> None:
        """Add an attachment to the user message that it follows, or as a message of its own.

        `is_said` tells that the user wrote it, and not the program.
        """
        link = self._link(record)
        node = _settled(link.node)
        block: Record = {"type": "text", "text": text}
        block = block if is_said else written_by("program", block)
        if node is None or node is not self._tip or node.is_reply:
            message: Message = {"role": "user", "content": [block]}
            node = self._appended({**record, "isMeta": not is_said}, message, link)
        else:
            node.message["content"] = [*_content(node.message), block]
        self._remember(record, _Link(node, link.uuid))

    def end(self) -> None:
        """Settle what is still open: no further record follows."""
        self._settle()

    def _link(self, record: Record) -> _Link:
        """Return what a record follows: in place of one that the file lacks, what comes before."""
        parent = record.get("parentUuid")
        return self._by_uuid.get(parent, self._newest) if isinstance(parent, str) else _Link()

    def _remember(self, record: Record, link: _Link) -> None:
        self._newest = link
        if isinstance(uuid := record.get("uuid"), str):
            self._by_uuid[uuid] = link

    def _part_of(self, record: Record, parent: _Node | None) -> _Node | None:
        """Return the message that a line continues: one reply, or the results of one turn."""
        message = record["message"]
        if not isinstance(message["content"], list):
            return None
        node: _Node | None
        if reply := _reply_id(record):
            node = self._replies.get(reply)
        elif _role(record) == "assistant":
            # Without an id the line continues the reply right before it: no API replies to one.
            is_next = parent is not None and parent is self._tip and parent.is_reply
            node = parent if is_next and parent is not None and not parent.reply_id else None
        else:
            caller = self._caller(message)
            node = caller and caller.turn.results
        return node if node is not None and isinstance(node.message["content"], list) else None

    def _before_results(self, message: Message) -> _Node | None:
        """Return what the user wrote while the calls that a message answers were running."""
        caller = self._caller(message)
        if caller is None:
            return None
        written = list(takewhile(lambda node: not node.is_reply, _back(self._tip)))
        before = written[-1].parent if written else None
        if before is None or before.turn is not caller.turn:
            return None
        caller.turn.results = written[-1]
        return written[-1]

    def _caller(self, message: Message) -> _Node | None:
        """Return the reply with the call that a message answers, None when it answers none."""
        ids = (word(block.get("tool_use_id")) for block in _blocks(message, "tool_result"))
        return next((self._callers[one] for one in ids if one in self._callers), None)

    def _appended(self, record: Record, message: Message, link: _Link) -> _Node:
        caller = self._caller(message)
        node = _node(record, message, link, is_answer=caller is not None)
        is_summary = record.get("isCompactSummary") is True
        self._is_compacted = self._tip is not None and (self._is_compacted or is_summary)
        if caller is not None:
            caller.turn.results = node
        if node.parent is not self._tip and not self._follows(node, caller):
            if caller is not None:
                # It came late, for a call that was taken back.
                self.builder.leave(node.message)
                return node
            self._begin_branch(node)
        if node.is_reply:
            self._settle(usage(message.get("usage")))
            self._call(node, record)
        self._tip = node
        if self._left is None:
            self.builder.add(node.message)
        else:
            self._branch.append(node)
        return node

    def _follows(self, node: _Node, caller: _Node | None) -> bool:
        """Put a message that takes nothing back behind the newest one; whether it is one."""
        left = [] if caller is not None else _left_by(self._tip, node.parent)
        if caller is not None:
            follows = any(one is caller for one in _back(self._tip))
        elif node.is_reply and node.parent is not None and not any(one.is_reply for one in left):
            # The user wrote while the model replied: a reply takes no prompt back.
            follows = True
        else:
            follows = not any(one.is_said for one in left) or _is_of_one_turn(node, left)
        if follows:
            node.parent = self._tip
        return follows

    def _begin_branch(self, node: _Node) -> None:
        """Begin a branch with a message. The next bill shows whether it took anything back.

        A root that follows no compaction may be a session that was taken up again.
        """
        self._settle()
        if node.parent is None and self._is_compacted:
            self.builder.begin_anew(why="compaction")
            self._is_compacted = False
        else:
            self._left, self._tip = self._tip, node.parent

    def _settle(self, billed: Usage | None = None) -> None:
        """Decide what is open: whether a branch took back what it left, by the bill for it."""
        left, branch = self._left, self._branch
        self._left, self._branch = None, []
        if left is None:
            return
        start = branch[0].parent if branch else self._tip
        if not _was_sent(left, start, branch, billed.prompt if billed else 0):
            kept = [node.message for node in _line(start)]
            self.builder.begin_anew(kept, why="rewind" if start else "change")
        elif branch:
            branch[0].parent = left
        else:
            self._tip = left
        for node in branch:
            self.builder.add(node.message)

    def _call(self, node: _Node, record: Record) -> None:
        message = record["message"]
        before = node.parent = self._tip if node.parent is not None else None
        if node.reply_id:
            self._replies[node.reply_id] = node
        if before is not None and before.is_reply and before.turn.results is None:
            node.turn = before.turn
        billed = usage(message.get("usage"))
        if billed is None or billed.prompt:
            node.call = _called(self.builder, record, billed)

    def _bill(self, node: _Node, message: Message) -> None:
        """Learn the usage of a reply; its last line is the least likely to show a stub."""
        billed = usage(message.get("usage"))
        if node.call is not None and billed is not None and billed.prompt:
            self.builder.bill(node.call, billed)
            node.bill = billed.prompt

    def _learn_calls(self, node: _Node, message: Message) -> None:
        for block in _blocks(message, "tool_use"):
            if call_id := word(block.get("id")):
                self._callers[call_id] = node


def _node(record: Record, message: Message, link: _Link, *, is_answer: bool) -> _Node:
    content, parent = message["content"], _settled(link.node)
    own = list(content) if isinstance(content, list) else content
    is_said = not is_answer and record.get("isMeta") is not True
    shown: Message = {"role": _role(record), "content": own}
    if (author := _author(record)) and not is_answer:
        shown = Authored(shown, author)
    return _Node(shown, parent, link.uuid, is_said, _reply_id(record))


def _author(record: Record) -> Author | Literal[""]:
    """Return who wrote a record where it says that the user did not; empty elsewhere."""
    if record.get("isCompactSummary") is True:
        return "summary"
    # The blocks of an attachment say it themselves.
    is_program = record.get("isMeta") is True and record.get("type") == "user"
    return "program" if is_program else ""


def _role(record: Record) -> str:
    kind = "assistant" if record.get("type") == "assistant" else "user"
    return word(mapping(record.get("message")).get("role")) or kind


def _reply_id(record: Record) -> str:
    """Return what the lines of one reply share."""
    found = word(mapping(record.get("message")).get("id"))
    return found or (word(record.get("requestId")) if _role(record) == "assistant" else "")


def _settled(node: _Node | None) -> _Node | None:
    """Return where what follows a message goes on: after the results of its calls."""
    return node.turn.results if node is not None and node.turn.results is not None else node


def _left_by(tip: _Node | None, start: _Node | None) -> list[_Node]:
    """Return what a branch from `start` leaves, the newest first."""
    newer = list(takewhile(lambda node: node is not start, _back(tip)))
    if not newer or newer[-1].parent is start:
        return newer
    stays = {id(node) for node in _back(start)}
    return [node for node in newer if id(node) not in stays]


def _is_of_one_turn(node: _Node, left: Sequence[_Node]) -> bool:
    """Whether a message and those before it came with different results of the same turn."""
    start = node.parent
    if start is None or not start.is_answer or any(one.is_reply for one in left):
        return False
    return left[-1].parent is start and left[-1].after != node.after


def _was_sent(left: _Node, start: _Node | None, branch: Sequence[_Node], bill: int) -> bool:
    """Whether a call was sent what its branch left, by what was billed for its prompt."""
    whole, short = [*_line(left), *branch], [*_line(start), *branch]
    if not bill or not any(node.bill for node in whole):
        # A prompt replaces what it branches from, and a reply one that failed before its results.
        return not branch and any(node.is_answer for node in _left_by(left, start))
    return abs(bill - _expected(whole, whole)) < abs(bill - _expected(short, whole))


def _expected(nodes: Sequence[_Node], known: Sequence[_Node]) -> float:
    """Return the tokens that a prompt would be billed as; `known` has a reply with its bill."""
    billed = [i for i, node in enumerate(known) if node.bill]
    first, last = billed[0], billed[-1]
    counted, grown = _counted(known[first:last]), known[last].bill - known[first].bill
    scale = min(_MOST_SCALE, max(_LEAST_SCALE, grown / counted)) if counted else 1.0
    here = [i for i, node in enumerate(nodes) if node.bill]
    if here:
        return nodes[here[-1]].bill + scale * _counted(nodes[here[-1] :])
    return known[first].bill + scale * (_counted(nodes) - _counted(known[:first]))


def _counted(nodes: Sequence[_Node]) -> int:
    if not nodes:
        return 0
    content = request_content([node.message for node in nodes])
    return counter_for(_TOKENIZER).count_request(content)


def _back(node: _Node | None) -> Iterator[_Node]:
    """Yield a message and those before it, the newest first."""
    while node is not None:
        yield node
        node = node.parent


def _line(node: _Node | None) -> list[_Node]:
    return list(_back(node))[::-1]


def _content(message: Message) -> list[dict[str, Any]]:
    """Return the blocks of a message, which may be a text alone."""
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _blocks(message: Message, kind: str) -> list[dict[str, Any]]:
    return [block for block in objects(message["content"]) if block.get("type") == kind]


FORMAT = "claude-code"
HOMES = (
    Home("~/.claude/projects", "**/*.jsonl", "CLAUDE_CONFIG_DIR", "~/.claude"),
    Home("~/.config/claude/projects", "**/*.jsonl", "CLAUDE_CONFIG_DIR", "~/.config/claude"),
)

_MESSAGES = ("user", "assistant")
# Records that tell of the session, of files or of the screen.
_NOT_PROMPT = frozenset({
    "agent-color", "agent-name", "agent-setting", "ai-title", "attachment", "attribution-snapshot",
    "bridge-session", "content-replacement", "custom-title", "file-history-delta",
    "file-history-snapshot", "last-prompt",
    "mode", "permission-mode", "pr-link", "progress", "queue-operation", "summary", "system", "tag",
    "task-summary", "worktree-state",
})  # fmt: skip


def recognises(record: object) -> bool:
    """Is this a message as Claude Code writes one."""
    return (
        isinstance(record, dict)
        and record.get("type") in _MESSAGES
        and isinstance(mapping(record.get("message")).get("content"), str | list)
        and not record.get("isApiErrorMessage")
        and "parentUuid" in record
        and "sessionId" in record
    )


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session, then its sub-agents in the order in which they began.

    A reply over several lines is one call. One that was billed nothing, such as an error shown as
    one, is no call.
    """
    session = _ClaudeSession()
    for record in source.objects():
        session.read(record)
    agents = sorted(session.agents, key=lambda agent: agent.is_side)
    for position, agent in enumerate(agents):
        if position == 0:
            agent.builder.count(session.of_no_agent)
        agent.end()
        agent.builder.project = session.project
        name = f"{source.name}#{agent.agent_id}" if position else source.name
        if not agent.builder.is_empty:
            yield agent.builder.recording(name, FORMAT)


def glances(source: Source) -> Iterator[Recording]:
    """Yield the calls of the session and of its sub-agents together, without messages."""
    builder, replies = RecordingBuilder(), dict[str, tuple[int, Usage | None]]()
    for record in source.objects(b'"assistant"', b'"compact_boundary"', b'"isCompactSummary"'):
        builder.project = builder.project or word(record.get("cwd"))
        message, reply = mapping(record.get("message")), _reply_id(record)
        if record.get("subtype") == "compact_boundary" or record.get("isCompactSummary") is True:
            builder.mark_anew("compaction")
        if record.get("type") != "assistant" or record.get("isApiErrorMessage"):
            continue
        if not _has_content(message):
            continue
        billed = usage(message.get("usage"))
        if billed is not None and not billed.prompt:
            continue
        call, known = replies.get(reply, (-1, None))
        if call < 0:
            call = _called(builder, record, billed)
        elif billed is not None and billed != known:
            builder.bill(call, billed)
        if reply:
            replies[reply] = call, billed or known
    yield builder.recording(source.name, FORMAT)


def _called(builder: RecordingBuilder, record: Record, billed: Usage | None) -> int:
    """Note the call that a reply begins; return its number."""
    message = record["message"]
    ids = message.get("id"), record.get("requestId")
    return builder.called(
        billed,
        word(message.get("model")) or None,
        seconds(record.get("timestamp")),
        call_id=" ".join(map(str, ids)) if all(ids) else "",
    )


class _ClaudeSession:
    """The agents of one file, and which of them each record belongs to."""

    def __init__(self) -> None:
        self.agents: list[ClaudeAgent] = []
        self.of_no_agent = RecordingBuilder()
        """Counts what says nothing about whose it is."""
        self.project = ""
        """The folder in which it began."""
        self._by_uuid: dict[str, ClaudeAgent] = {}
        self._by_id: dict[str, ClaudeAgent] = {}

    def read(self, record: Record) -> None:
        """Hand a record to the agent that it belongs to."""
        kind = word(record.get("type"))
        self.project = self.project or word(record.get("cwd"))
        if "uuid" not in record and kind not in _MESSAGES:
            self.of_no_agent.records += 1
            what, known = kind or "record without a type", kind in _NOT_PROMPT
            self.of_no_agent.pass_over(what, known=known, record=record)
            return
        uuid = word(record.get("uuid"))
        agent = self._by_uuid.get(uuid) or self._agent(record)
        agent.builder.records += 1
        if uuid in self._by_uuid or agent.has(record):
            agent.builder.pass_over("repeated record")
            return
        if uuid:
            self._by_uuid[uuid] = agent
        if record.get("isApiErrorMessage"):
            agent.pass_over(record, "API error")
        elif kind == "attachment" and (text := as_text(record)):
            agent.attach(record, text, is_said=is_of_user(record))
        elif kind not in _MESSAGES:
            agent.pass_over(record, kind or "record without a type", known=kind in _NOT_PROMPT)
        elif _has_content(record.get("message")):
            agent.add(record)
        else:
            agent.pass_over(record, f"{kind} message", known=False)

    def _agent(self, record: Record) -> ClaudeAgent:
        """Return the agent that a record is of. A sub-agent without an id begins at a root."""
        if record.get("isSidechain") is not True:
            return self._named("", is_side=False)
        if agent_id := word(record.get("agentId")):
            return self._named(agent_id, is_side=True)
        parent = record.get("parentUuid")
        before = self._by_uuid.get(word(parent))
        if before is not None and before.is_side:
            return before
        side = [agent for agent in self.agents if agent.is_side]
        if side and parent is not None and before is None:
            return side[-1]
        return self._named(word(record.get("uuid")), is_side=True)

    def _named(self, agent_id: str, *, is_side: bool) -> ClaudeAgent:
        if agent_id not in self._by_id:
            self._by_id[agent_id] = ClaudeAgent(agent_id, is_side=is_side)
            self.agents.append(self._by_id[agent_id])
        return self._by_id[agent_id]


def _has_content(message: object) -> bool:
    fields = mapping(message)
    with_role = fields if "role" in fields else {"role": "user", **fields}
    return isinstance(fields.get("content"), str | list) and is_message(with_role)
