"""Sessions as Copilot CLI records them: JSON lines of events under `~/.copilot/session-state/`.

Replies name the calls that they ask for; what a tool gave comes with the event that it was done.
Events of sub-agents carry an id, or name the call that the agent was started by.

A reply says how many tokens it has. What the prompts were billed stands in `session.shutdown`, as
sums by model; it also says what the system prompt and the schemas of the tools take, which are in
every prompt. Input there includes what was read from the cache and written to it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from policyctx.definitions.items import written_by
from policyctx.messages.json_text import text_of
from policyctx.replay.readers.building import (
    RecordingBuilder,
    calls_of,
    thinking,
    tool_message,
    usage,
)
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, number, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "copilot-cli"
HOMES = (Home("~/.copilot/session-state", "**/*.jsonl", "COPILOT_HOME", "~/.copilot"),)

# Families of events that tell of the session, and those that repeat what others hold.
_NOT_PROMPT = ("session.", "hook.", "skill.", "subagent.", "assistant.", "tool.", "abort")


def recognises(record: object) -> bool:
    """Is this an event in its envelope."""
    fields = mapping(record)
    kind = word(fields.get("type"))
    known = kind == "user.message" or kind.startswith(("session.", "assistant.", "tool.execution"))
    return known and isinstance(fields.get("data"), dict) and "id" in fields


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session, then its sub-agents."""
    session = _CopilotSession()
    for event in source.objects():
        session.read(event, mapping(event.get("data")))
    session.end()
    names = source.names()
    for agent, builder in session.builders.items():
        name = source.name if builder.is_empty or not agent else names.of(agent)
        yield from builder.found(name, FORMAT)


class _CopilotSession:
    def __init__(self) -> None:
        self.builders: dict[str, RecordingBuilder] = {}
        self._model: str | None = None
        self._models: dict[str, Counter[str]] = defaultdict(Counter)
        """By agent: how many calls of each language model it made."""
        self._sums: dict[str, Usage] = {}
        """By language model: what was billed up to the last shutdown."""
        self._calls_then: dict[str, int] = {}
        """By agent: the calls up to then."""
        self._beside = 0

    def builder(self, agent: str) -> RecordingBuilder:
        """Return what an agent's events go into; the session's own agent has no name."""
        return self.builders.setdefault(agent, RecordingBuilder())

    def read(self, event: Record, fields: Record) -> None:
        kind = word(event.get("type"))
        self._model = word(fields.get("newModel") or fields.get("selectedModel")) or self._model
        agent = word(event.get("agentId")) or word(fields.get("parentToolCallId"))
        builder = self.builder(agent)
        builder.records += 1
        if kind == "user.message":
            said = word(fields.get("transformedContent")) or word(fields.get("content"))
            builder.add({"role": "user", "content": said})
        elif kind == "system.message":
            builder.add({"role": "system", "content": word(fields.get("content"))})
        elif kind == "assistant.message":
            model = word(fields.get("model")) or self._model
            self._models[agent][model or ""] += 1
            builder.called(_usage(fields), model, seconds(event.get("timestamp")))
            builder.add(_reply(fields))
        elif kind == "tool.execution_complete":
            builder.add(_result(fields))
        elif kind == "session.compaction_complete" and word(fields.get("summaryContent")):
            _compact(builder, fields)
        elif kind == "session.shutdown":
            builder.pass_over(kind)
            self._shut_down(fields)
        else:
            known = kind.startswith(_NOT_PROMPT)
            builder.pass_over(kind or "event without a type", known=known, record=event)

    def _shut_down(self, fields: Record) -> None:
        """Learn the sums. A session that was resumed has several, of its parts or of all so far."""
        made = sum(self._models.values(), Counter[str]())
        for model, metric in mapping(fields.get("modelMetrics")).items():
            requests = number(mapping(mapping(metric).get("requests")).get("count"))
            billed, before = _summed(mapping(mapping(metric).get("usage"))), self._sums.get(model)
            is_of_all = before is None or requests >= max(1, made[model])
            self._sums[model] = billed if is_of_all or before is None else before + billed
        self._calls_then = {agent: one.calls for agent, one in self.builders.items()}
        has_system = any(message["role"] == "system" for message in self.builder("").context)
        system = 0 if has_system else number(fields.get("systemTokens"))
        self._beside = number(fields.get("toolDefinitionsTokens")) + system

    def end(self) -> None:
        """Give each agent the sums of the language models that no other agent called."""
        callers = Counter(model for models in self._models.values() for model in models)
        for agent, calls in self._calls_then.items():
            mine = {model for model in self._models[agent] if callers[model] == 1}
            if len(self._models) == 1:
                mine |= self._sums.keys()
            elif mine != self._models[agent].keys():
                mine = set()
            billed = sum((self._sums[one] for one in mine & self._sums.keys()), Usage(0))
            beside = 0 if agent else self._beside
            if calls and (billed.prompt or beside):
                self.builders[agent].bill_together(billed, calls, beside)


def _usage(fields: Record) -> Usage | None:
    """Return what a reply says of its own bill: often its output alone."""
    found = usage(fields.get("usage"))
    output = number(fields.get("outputTokens"))
    return found if found is not None or not output else Usage(0, output=output)


def _summed(fields: Record) -> Usage:
    names = "inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"
    return Usage.of_whole(*counts(fields, *names))


def _reply(fields: Record) -> Record:
    said: str | list[Record] = word(fields.get("content"))
    if reasoning := word(fields.get("reasoningText")):
        # The API takes it back with the reply, so it is in the prompts that follow.
        thought = thinking(reasoning)
        said = [thought, {"type": "text", "text": said}] if said else [thought]
    calls = calls_of(fields.get("toolRequests"), "toolCallId")
    return {"role": "assistant", "content": said, **calls}


def _result(fields: Record) -> Record:
    result = fields.get("result")
    content = mapping(result).get("content", result)
    error = mapping(fields.get("error")).get("message", fields.get("error"))
    said = content if fields.get("success") is not False else error or content
    failed = fields.get("success") is False
    return tool_message(fields.get("toolCallId"), text_of(said), is_error=failed)


def _compact(builder: RecordingBuilder, fields: Record) -> None:
    """Begin the context anew with its system prompt and the summary."""
    head = [message for message in builder.context if message["role"] == "system"]
    summary = {"role": "user", "content": word(fields.get("summaryContent"))}
    builder.begin_anew([*head, written_by("summary", summary)], why="compaction")
