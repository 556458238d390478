"""Results of tau-bench: an array of tasks, each with its conversation in OpenAI's chat form.

Ids of calls are used again for other calls within one conversation. What the simulated user was
asked is not recorded, nor what anything cost.
"""

from collections.abc import Iterator

from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.chat import add_said
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import mapping
from policyctx.replay.recording import Recording

FORMAT = "tau-bench"


def recognises(record: object) -> bool:
    """Is this the result of a task."""
    fields = mapping(record)
    return "task_id" in fields and isinstance(fields.get("traj"), list)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield a recording for each task and trial."""
    names = source.names()
    for task in source.objects():
        builder = RecordingBuilder()
        for message in task["traj"] if recognises(task) else ():
            add_said(builder, message)
        if builder.is_empty:
            source.pass_over("task without a conversation", task)
        else:
            yield builder.recording(names.of(task.get("task_id"), task.get("trial")), FORMAT)
