"""Trajectories of mini-swe-agent: one document with the messages as they were sent.

Commands are in the text of a reply and their output in a user message; later versions have a
tool. What the provider answered lies in `extra`, beside the message; nothing of it is sent again.
The texts that the agent itself writes into user messages begin as its templates do.
"""

import re
from collections.abc import Iterator

from policyctx.definitions.items import written_by
from policyctx.replay.readers.building import RecordingBuilder, usage
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, seconds, word
from policyctx.replay.recording import Recording

FORMAT = "mini-swe-agent"

# The templates of the first messages; where a field of a template begins; and the fewest characters
# before it by which a text is known.
_TASK = ("system_template", "instance_template")
_FIELD = re.compile(r"\{[{%]")
_SHORTEST = 8
_ROLES = ("system", "user", "assistant", "tool")


def recognises(record: object) -> bool:
    """Is this the outline of a trajectory."""
    fields = mapping(record)
    named = word(fields.get("trajectory_format")).startswith("mini-swe-agent")
    return named or ("mini_version" in mapping(fields.get("info")) and "messages" in fields)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the one conversation."""
    builder = RecordingBuilder()
    configured = source.field("info", "config", "model", "model_name")
    # At the end the agent writes what it submits into a message.
    submitted = word(source.field("info", "submission")).strip() or None
    beginnings = tuple(_beginnings(mapping(source.field("info", "config", "agent"))))
    for message in map(mapping, source.elements("messages")):
        builder.records += 1
        role = message.get("role")
        if role not in _ROLES:
            builder.pass_over(f"{role} message", known=role == "exit", record=message)
            continue
        if role == "assistant":
            _call(builder, mapping(message.get("extra")), word(configured))
        sent = {key: value for key, value in message.items() if key != "extra"}
        text = word(message.get("content"))
        is_agents = role == "user" and (text.startswith(beginnings) or text.strip() == submitted)
        builder.add(written_by("program", sent) if is_agents else sent)
    yield from builder.found(source.name, FORMAT)


def _beginnings(agent: Record) -> Iterator[str]:
    """Yield how the texts begin that the agent writes, except the task: its templates."""
    for name, template in agent.items():
        begins = _FIELD.split(word(template), maxsplit=1)[0].lstrip()
        if name.endswith("_template") and name not in _TASK and len(begins) >= _SHORTEST:
            yield begins


def _call(builder: RecordingBuilder, extra: Record, configured: str) -> None:
    response = mapping(extra.get("response"))
    at = seconds(extra.get("timestamp", response.get("created")))
    model = word(response.get("model")) or configured or None
    builder.called(usage(response.get("usage")), model, at)
