"""What `claude -p --output-format stream-json` prints, and Qwen Code in the same form.

A line holds a part of a reply, or results of its calls. In Claude Code the lines of a reply share
the id of a message and its bill, without the output: that shows in the sum at the end. In Qwen
Code each line has an id of its own, and the last line of a reply has the bill. A sub-agent's lines
name the call that it works for. The prompt is printed only where the program is told to.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

from policyctx.definitions.items import Message, written_by
from policyctx.messages.reading import is_message
from policyctx.replay.readers.building import RecordingBuilder, usage
from policyctx.replay.readers.chat import miss_unknown
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import (
    Record,
    mapping,
    number,
    objects,
    seconds,
    size_of,
    texts,
    word,
)
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "claude-stream-json"

_MESSAGES = ("user", "assistant")
# What tells of the run, or repeats parts of a reply while it is written.
_NOT_PROMPT = frozenset({
    "auth_status", "control_cancel_request", "control_request", "control_response", "keep_alive",
    "prompt_suggestion", "rate_limit_event", "result", "stream_event", "system", "tool_progress",
    "tool_use_summary",
})  # fmt: skip


def recognises(record: object) -> bool:
    """Is this a line with a message, or the first line of a run."""
    fields = mapping(record)
    if fields.get("type") == "system" and fields.get("subtype") == "init":
        return "session_id" in fields and "tools" in fields
    is_message = fields.get("type") in _MESSAGES and "content" in mapping(fields.get("message"))
    return is_message and fields.keys() >= {"session_id", "parent_tool_use_id"}


def recordings(source: Source) -> Iterator[Recording]:
    """Yield each session, and its sub-agents."""
    agents: dict[tuple[str, str], _Agent] = {}
    project = ""
    for record in source.objects():
        project = project or word(record.get("cwd"))
        key = word(record.get("session_id")), word(record.get("parent_tool_use_id"))
        if key[0] == "" and agents:
            key = next(reversed(agents))
        agents.setdefault(key, _Agent()).read(record)
    for position, ((session, call), agent) in enumerate(agents.items()):
        agent.builder.project = project
        name = f"{source.name}#{call or session}" if position else source.name
        yield from agent.builder.found(name, FORMAT)


class _Agent:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._reply: Message | None = None
        """The newest reply."""
        self._reply_id = ""
        self._call = 0
        self._is_open = False
        """Whether a line with another id belongs to the newest reply."""
        self._billed: list[tuple[int, Usage, Message]] = []
        self._ended = 0
        """How many of these are of runs that have ended."""
        self._settled = 0
        """How many of them have their part of a sum, or get none."""
        self._sums = [0, 0]
        """The prompts and the outputs of all of them."""
        self._by_uuid: dict[str, Message] = {}
        self._kept: list[Message] | None = None
        """What a compaction leaves behind its summary, which comes next."""

    def read(self, record: Record) -> None:
        self.builder.records += 1
        kind, message = word(record.get("type")), mapping(record.get("message"))
        shown = {"role": kind, "content": message.get("content")}
        if kind in _MESSAGES and "content" in message and is_message(shown):
            miss_unknown(self.builder, shown)
            if kind == "user":
                self._hear(shown, record)
            elif record.get("error") or message.get("model") == "<synthetic>":
                self.builder.pass_over("API error")
            else:
                self._say(message, record)
            self._by_uuid[word(record.get("uuid"))] = (self.builder.context or [shown])[-1]
            return
        subtype = word(record.get("subtype"))
        if subtype == "compact_boundary":
            preserved = mapping(mapping(record.get("compact_metadata")).get("preserved_messages"))
            kept = preserved.get("uuids")
            self._kept = [self._by_uuid[one] for one in texts(kept) if one in self._by_uuid]
            self.builder.begin_anew(why="compaction")
        elif kind == "result":
            self._share(usage(record.get("usage")))
        what = f"system {subtype}" if kind == "system" else kind or "record without a type"
        self.builder.pass_over(what, known=kind in _NOT_PROMPT, record=record)

    def _hear(self, shown: Message, record: Record) -> None:
        self._is_open = False
        blocks = objects(shown["content"])
        if self._kept is not None:
            self.builder.add(written_by("summary", shown))
            for one in {id(one): one for one in self._kept}.values():
                self.builder.add(one)
            self._kept = None
        elif record.get("isSynthetic") is True:
            self.builder.add(written_by("program", shown))
        elif any(block.get("type") == "tool_result" for block in blocks):
            self.builder.extend("user", blocks)
        else:
            self.builder.add(shown)

    def _say(self, message: Record, record: Record) -> None:
        billed, blocks = _usage(message.get("usage")), objects(message["content"])
        if text := word(message["content"]):
            blocks = [{"type": "text", "text": text}]
        reply_id = word(message.get("id"))
        if self._reply is not None and (self._is_open or reply_id == self._reply_id != ""):
            self._reply["content"].extend(blocks)
        else:
            model, at = word(message.get("model")) or None, seconds(record.get("timestamp"))
            self._call = self.builder.called(None, model, at)
            self._reply = {"role": "assistant", "content": blocks}
            self.builder.add(self._reply)
        self._reply_id, self._is_open = reply_id, billed is None
        if billed is not None:
            if self._billed and self._billed[-1][0] == self._call:
                self._sum_up(self._billed.pop()[1], -1)
            self._billed.append((self._call, billed, self._reply))
            self._sum_up(billed)
            self.builder.bill(self._call, billed)

    def _sum_up(self, billed: Usage, sign: int = 1) -> None:
        self._sums[0] += sign * billed.prompt
        self._sums[1] += sign * billed.output

    def _share(self, total: Usage | None) -> None:
        """Give each reply its part of the output that is billed as a sum, by its length.

        The sum is of this run or of all so far, whichever has the same prompts.
        """
        self._is_open = False
        run = sum((billed for _, billed, _ in self._billed[self._ended :]), Usage(0))
        sums = (self._ended, [run.prompt, run.output]), (self._settled, self._sums)
        for begin, (prompt, output) in sums:
            if total is None or prompt != total.prompt or output >= total.output:
                continue
            if replies := self._billed[begin:]:
                more = total.output - output
                whole = more + sum(billed.output for _, billed, _ in replies)
                sizes = [0, *accumulate(size_of(reply["content"]) for _, _, reply in replies)]
                parts = pairwise(whole * size // sizes[-1] for size in sizes)
                for place, (start, end) in enumerate(parts, begin):
                    call, billed, reply = self._billed[place]
                    billed = replace(billed, output=end - start)
                    self._billed[place] = call, billed, reply
                    self.builder.bill(call, billed)
                self._sums[1] += more
                self._settled = len(self._billed)
                break
        self._ended = len(self._billed)


def _usage(fields: object) -> Usage | None:
    """Return what was billed; Qwen Code, which has a total, has what was cached in its input."""
    found, given = usage(fields), mapping(fields)
    if found is not None and given.get("total_tokens") == found.input + found.output:
        cached = min(found.input, number(given.get("cache_read_input_tokens")))
        found = replace(found, input=found.input - cached, cache_read=cached)
    return found if found is not None and found.prompt else None
