"""From recordings to the sessions of a study: those that have prices under the incumbent."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from policyctx.messages.reading import items_of
from policyctx.replay.recording import Recording
from policyctx.replay.running import FailedRecording
from policyctx.tuning.evaluating import Evaluator, Failure, Tried, TunedSession
from policyctx.tuning.outcomes import Unpriced

# Stands between the name of a project and the rest in the names of many exported files.
_SEPARATOR = "__"


class ProjectBy(StrEnum):
    """What makes two recordings ones of the same project."""

    RECORDED = "recorded"
    """The working directory in the recording; where it has none, the file's folder and the
    beginning of its name before `__`."""
    FOLDER = "folder"
    """The folder of the file."""
    FILE = "file"
    """The file; all sessions in it belong together."""


def project_of(recording: Recording, path: str, by: ProjectBy = ProjectBy.RECORDED) -> str:
    """Return the project of a recording in the file at `path`."""
    if by is ProjectBy.FILE:
        return path
    folder, name = PurePath(path).parent, PurePath(path).name
    if by is ProjectBy.FOLDER:
        return str(folder)
    if recording.project:
        return recording.project
    start, separator, _ = name.partition(_SEPARATOR)
    return str(folder / start) if start and separator else str(folder)


@dataclass(frozen=True, slots=True)
class Read:
    """What a study asks of a recording beside its replays."""

    name: str
    format: str
    calls: int
    path: str
    project: str
    tools: frozenset[str]

    def session(self, number: int) -> TunedSession:
        """Return it as a session of a study."""
        return TunedSession(
            number=number,
            name=self.name,
            path=self.path,
            format=self.format,
            project=self.project,
            calls=self.calls,
            tools=self.tools,
        )


def read(recording: Recording, path: str, *, by: ProjectBy) -> Read:
    """Return what a study asks of a recording of the file at `path`; work of `worked`."""
    tools = {
        item.tool
        for call in recording.calls
        for item in items_of(call.new)
        if item.kind == "tool_call" and item.tool is not None
    }
    return Read(
        name=recording.name,
        format=recording.format,
        calls=len(recording.calls),
        path=path,
        project=project_of(recording, path, by),
        tools=frozenset(tools),
    )


@dataclass(frozen=True, slots=True)
class Priced:
    """What the incumbent shows of the recordings."""

    sessions: tuple[TunedSession, ...]
    """Those that have prices."""
    failures: tuple[FailedRecording, ...]
    """Those that cannot be replayed."""
    unpriced: Mapping[str, int]
    """How many sessions without prices have each language model."""
    without_price: int
    """Sessions without prices."""


def priced(recordings: Sequence[Read], evaluator: Evaluator, incumbent: Tried) -> Priced:
    """Replay every recording under the incumbent, and take those that have prices."""
    numbers = range(len(recordings))
    evaluator.evaluate([incumbent], numbers)
    sessions: list[TunedSession] = []
    failures: list[FailedRecording] = []
    unpriced: Counter[str] = Counter()
    without_price = 0
    for number in numbers:
        one, outcome = recordings[number], evaluator.outcome(incumbent.digest, number)
        if isinstance(outcome, Failure):
            failures.append(FailedRecording(one.path, outcome.why, one.name))
        elif isinstance(outcome, Unpriced):
            without_price += 1
            unpriced.update(outcome.models)
        else:
            sessions.append(one.session(number))
    return Priced(tuple(sessions), tuple(failures), dict(unpriced), without_price)
