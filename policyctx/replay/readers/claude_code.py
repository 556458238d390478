"""Sessions as Claude Code records them: JSON lines under `~/.claude/projects/`.

One API message is spread over several lines that share a `message.id`, with results of parallel
calls between them; records hang together by `parentUuid`, where records that are no message are
links as well; attachments hold what the program adds to a prompt; parallel calls branch the chain,
and so does a prompt that was taken back; a compaction starts a new root; sub-agents are marked
`isSidechain`, in this file or in their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.reading import is_message
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.claude_agent import ClaudeAgent
from policyctx.replay.readers.claude_attachments import is_of_user, text_of
from policyctx.replay.readers.fields import Record, mapping, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "claude-code"

_MESSAGES = ("user", "assistant")
# Records that tell of the session, of files or of the screen.
_NOT_PROMPT = frozenset({
    "agent-color", "agent-name", "agent-setting", "ai-title", "attachment", "attribution-snapshot",
    "bridge-session", "content-replacement", "custom-title", "file-history-snapshot", "last-prompt",
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
    session = _Session()
    for record in source.objects():
        session.read(record)
    agents = sorted(session.agents, key=lambda agent: agent.is_side)
    for position, agent in enumerate(agents):
        if position == 0:
            agent.builder.count(session.of_no_agent)
        agent.end()
        name = f"{source.name}#{agent.agent_id}" if position else source.name
        if not agent.builder.is_empty:
            yield agent.builder.recording(name, FORMAT)


class _Session:
    """The agents of one file, and which of them each record belongs to."""

    def __init__(self) -> None:
        self.agents: list[ClaudeAgent] = []
        self.of_no_agent = RecordingBuilder()
        """Counts what says nothing about whose it is."""
        self._by_uuid: dict[str, ClaudeAgent] = {}
        self._by_id: dict[str, ClaudeAgent] = {}

    def read(self, record: Record) -> None:
        """Hand a record to the agent that it belongs to."""
        kind = word(record.get("type"))
        if "uuid" not in record and kind not in _MESSAGES:
            self.of_no_agent.records += 1
            self.of_no_agent.pass_over(kind or "record without a type", known=kind in _NOT_PROMPT)
            return
        uuid = word(record.get("uuid"))
        agent = self._by_uuid.get(uuid) or self._agent(record)
        agent.builder.records += 1
        if uuid in self._by_uuid:
            agent.builder.pass_over("repeated record")
            return
        if uuid:
            self._by_uuid[uuid] = agent
        if record.get("isApiErrorMessage"):
            agent.pass_over(record, "API error")
        elif kind == "attachment" and (text := text_of(record)):
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
