"""Trajectories in ATIF up to 1.8, as Harbor and Terminal-Bench write them for any agent.

A document, or one a line. A step of the agent is a reply, with its calls and their results. Where
some steps have metrics, only these are model calls, since some agents write each call of a reply as
a step. A sub-agent is a recording of its own. A step may say that a compaction took place; else it
shows in a prompt that is much shorter than the one before.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from policyctx.definitions.items import Message, PlainValue
from policyctx.replay.readers.building import (
    RecordingBuilder,
    RecordingNames,
    function_call,
    tool_message,
    usage,
)
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, number, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "atif"

_OF_STEP = frozenset({
    "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message",
    "reasoning_content", "tool_calls", "observation", "metrics", "is_copied_context",
    "llm_call_count", "extra",
})  # fmt: skip
_ROLES = {"system": "system", "user": "user", "agent": "assistant"}
# A prompt that has less than this share of the one before is of another context.
_SHRUNK = 0.5


def recognises(record: object) -> bool:
    """Is this the outline of a trajectory."""
    fields = mapping(record)
    return word(fields.get("schema_version")).startswith("ATIF-v1.") and "steps" in fields


def recordings(source: Source) -> Iterator[Recording]:
    """Yield each trajectory, and behind it those of its sub-agents."""
    names = source.names()
    if word(source.field("schema_version")):
        # The steps of a large document are read one at a time.
        whole = {name: source.field(name) for name in ("agent", "final_metrics", "session_id")}
        yield from _read(whole, lambda: source.elements("steps"), source.name, names)
        for inner in source.elements("subagent_trajectories"):
            yield from _trajectories(inner, names, _id(whole))
        return
    for record in source.records():
        if recognises(record):
            yield from _trajectories(record, names)
        else:
            source.pass_over("record that is not a trajectory", record)


def _trajectories(
    value: PlainValue, names: RecordingNames, parent: str = ""
) -> Iterator[Recording]:
    trajectory = mapping(value)
    own = _id(trajectory)
    name = names.of(*dict.fromkeys((parent, own)))
    steps = trajectory.get("steps")
    steps = steps if isinstance(steps, list) else []
    yield from _read(trajectory, lambda: steps, name, names)
    for inner in objects(trajectory.get("subagent_trajectories")):
        yield from _trajectories(inner, names, parent or own)


def _id(trajectory: Record) -> str:
    return word(trajectory.get("session_id")) or word(trajectory.get("trajectory_id"))


def _read(
    trajectory: Record, steps: Callable[[], Iterable[object]], name: str, names: RecordingNames
) -> Iterator[Recording]:
    """Yield a trajectory, and what a sub-agent of Claude Code did in steps of the same list."""
    agent = mapping(trajectory.get("agent"))
    prompts = defaultdict[str, list[int]](list)
    for one in map(mapping, steps()):
        if billed := _billed(mapping(one.get("metrics"))):
            prompts[_agent_of(one)].append(billed.prompt)
    is_billed = bool(prompts)
    agents = {"": _Trajectory(agent, prompts[""], is_billed=is_billed)}
    for step in steps():
        of = _agent_of(mapping(step))
        if of not in agents:
            agents[of] = _Trajectory(agent, prompts[of], is_billed=is_billed)
        agents[of].read(step)
    own = agents.pop("").builder
    if not is_billed and (total := _sum(mapping(trajectory.get("final_metrics")))) is not None:
        own.bill_together(total)
    yield from own.found(name, FORMAT)
    for of, side in agents.items():
        yield from side.builder.found(names.after(of), FORMAT)


def _agent_of(step: Record) -> str:
    """Return which sub-agent a step is of; nothing for the agent itself."""
    extra = mapping(step.get("extra"))
    is_side = extra.get("is_sidechain") is True
    return word(extra.get("agent_id")) or "sidechain" if is_side else ""


class _Trajectory:
    """A trajectory that is being read."""

    def __init__(self, agent: Record, prompts: list[int], *, is_billed: bool) -> None:
        self.builder = RecordingBuilder()
        self._model = word(agent.get("model_name")) or None
        self._tools = agent.get("tool_definitions")
        self._is_billed = is_billed
        self._prompt = 0
        self._prompts = prompts[::-1]
        """The tokens of the prompts from here on, the next one last."""
        self._said: list[Message] = []
        """What others than the agent said since it was called."""
        self._open: list[str] = []
        """The ids of calls without a result."""
        self._is_compacted = False
        """Whether a step after the last call says that the context was replaced."""

    def read(self, value: object) -> None:
        """Take a step."""
        step, builder = mapping(value), self.builder
        builder.records += 1
        role = _ROLES.get(word(step.get("source")))
        if role is None:
            builder.pass_over("step of an unknown source", known=False, record=value)
            return
        for field in sorted(step.keys() - _OF_STEP):
            if step[field] and isinstance(step[field], dict | list):
                builder.miss(f"field {field} of a step", step[field])
        managed = mapping(mapping(step.get("extra")).get("context_management"))
        if managed.get("type") == "compaction":
            self._is_compacted, self._said = True, []
            builder.pass_over("notice of a compaction")
            return
        calls = [
            function_call(one.get("tool_call_id"), one.get("function_name"), one.get("arguments"))
            for one in builder.objects(step.get("tool_calls"), "record that is not a call")
        ]
        message: Message = {"role": role, "content": self._content(step.get("message"))}
        if calls:
            message["tool_calls"] = calls
        if reasoning := word(step.get("reasoning_content")):
            message["reasoning_content"] = reasoning
        if role == "assistant":
            self._call(step)
        if message["content"] or calls:
            self._add(message)
        self._open += [call["id"] for call in calls]
        self._observe(mapping(step.get("observation")).get("results"))

    def _add(self, message: Message) -> None:
        if self.builder.add(message) and message["role"] in {"system", "user"}:
            self._said.append(message)

    def _answer(self, call_id: str, content: object, *, failed: bool = False) -> None:
        if call_id in self._open:
            self._open.remove(call_id)
        self._add(tool_message(call_id, content, is_error=failed))

    def _call(self, step: Record) -> None:
        metrics, count = mapping(step.get("metrics")), step.get("llm_call_count")
        billed = _billed(metrics)
        if billed is not None:
            self._prompts.pop()
        if count == 0 or step.get("is_copied_context") is True:
            return
        if self._is_billed and billed is None and not number(count):
            return  # a further call of the reply before
        if number(count) > 1 and metrics:
            self.builder.miss("sum of several calls", metrics)
            billed = None
        for call_id in [*self._open]:
            self._answer(call_id, "")  # what came back was empty; no API takes a call without it
        prompt = billed.prompt if billed else 0
        has_shrunk = 0 < prompt < self._prompt * _SHRUNK
        # Without a word it may be a call beside the conversation, which then goes on as it was.
        stays_short = bool(self._prompts) and self._prompts[-1] < self._prompt
        if self._is_compacted or (has_shrunk and (self._said or stays_short)):
            first = [one for one in self.builder.context if one not in self._said][:2]
            heads = [one for one in first if one["role"] in {"system", "user"}]
            self.builder.begin_anew([*heads, *self._said], why="compaction")
        model = word(step.get("model_name")) or self._model
        self.builder.called(billed, model, seconds(step.get("timestamp")), tools=self._tools)
        self._prompt, self._said, self._is_compacted = prompt or self._prompt, [], False

    def _observe(self, values: PlainValue) -> None:
        """Add results; of those that name no call, the last goes to the last call without one.

        Some agents have one result for all calls of a step: it is that of the last call. A result
        beside calls is a message to the agent.
        """
        results = [*self.builder.objects(values, "record that is not a result")]
        named = {word(one.get("source_call_id")) for one in results}
        loose = [one for one in results if not word(one.get("source_call_id"))]
        open_ids = [one for one in self._open if one not in named]
        open_ids = open_ids[-len(loose) :] if loose else []
        for result in results:
            extra = mapping(result.get("extra"))
            # Harbor shows results of Claude Code together with what its screen has of them.
            beside = mapping(extra.get("tool_result_metadata"))
            content = mapping(beside.get("raw_tool_result")).get("content")
            if not isinstance(content, str | list):
                content = self._content(result.get("content"))
            call_id = word(result.get("source_call_id")) or (open_ids.pop(0) if open_ids else "")
            if call_id:
                failed = True in (extra.get("is_error"), extra.get("tool_result_is_error"))
                self._answer(call_id, content, failed=failed)
            elif content:
                self._add({"role": "user", "content": content})

    def _content(self, value: PlainValue) -> str | list[Record]:
        """Return a text, or parts; images and sounds are files beside the trajectory."""
        if not isinstance(value, list):
            return word(value)
        parts: list[Record] = []
        for part in self.builder.objects(value, "record that is not a part"):
            kind, source = part.get("type"), mapping(part.get("source"))
            if kind in ("image", "audio"):
                shown = f"{kind}_url"
                parts.append({"type": shown, shown: {"url": word(source.get("path"))}})
            else:
                parts.append({"type": "text", "text": word(part.get("text"))})
                if kind != "text":
                    self.builder.miss(f"part of the type {kind}", part)
        return parts


def _billed(metrics: Record) -> Usage | None:
    """Return what a step was billed; its prompt has the tokens of the cache in it."""
    if not number(metrics.get("prompt_tokens")):
        return None
    return usage({**mapping(metrics.get("extra")), **metrics})


def _sum(final: Record) -> Usage | None:
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    return _billed({name: final.get(f"total_{name}") for name in names})
