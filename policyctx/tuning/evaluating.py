"""`Evaluator`: the outcome of any setting in any session, each replayed once.

A process reads a recording when it first replays it, and keeps what it has read lately. Sessions
of one part of the recordings are shared between the processes, and a process goes on with its own.
The sessions of a study are the recordings that have prices under the incumbent.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePath
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from policyctx.errors import PolicyctxError, PolicyError, ReplayError
from policyctx.messages.reading import items_of
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import loaded
from policyctx.policy.sources import made_source
from policyctx.replay.common import Common
from policyctx.replay.executing import Executor, Here, Job, LostJob, unexpected
from policyctx.replay.places import RecordingOrigin, WorkPart
from policyctx.replay.recording import Recording
from policyctx.replay.running import FailedRecording, LoadedPolicy, compiled
from policyctx.replay.terms import PricesOf
from policyctx.tuning.outcomes import SessionOutcome, Unpriced, outcome_of

# What comes of a policy in a session.
Found: TypeAlias = "SessionOutcome | Unpriced | Failure"
# Bytes of recordings that a thread keeps; the bundle that it works on may be larger.
_KEPT_BYTES = 128 * 2**20
K = TypeVar("K")
# Stands between the name of a project and the rest in the names of many exported files.
_SEPARATOR = "__"


@dataclass(frozen=True, slots=True)
class TunedSession:
    """What a study asks of a recording beside its replays."""

    name: str
    path: str
    format: str
    project: str
    calls: int
    tools: frozenset[str]
    number: int = 0
    """Its place among the recordings of the study."""


class Progress(Protocol):
    """Shows how far the work is; sizes are model calls to replay."""

    def begin(self, calls: int) -> None:
        """Hear how much work a batch is."""

    def advance(self, calls: int) -> None:
        """Hear how much of it was done."""


class Trial(NamedTuple):
    """A policy to try in a session."""

    digest: str
    session: int


class Failure(NamedTuple):
    """Why a policy has no outcome in a session."""

    why: str


class Tried(NamedTuple):
    """A policy as text, under the digest of what it says."""

    digest: str
    text: str


def compiled_text(text: str) -> OffloadPolicy:
    """Compile the text of a policy; raises `PolicyError`."""
    policy, root = loaded(made_source("setting", text))
    return OffloadPolicy(policy, root=root)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Sessions of one part that one process reads together."""

    part: WorkPart
    indices: tuple[int, ...]
    """The positions of their recordings in the part, ascending."""

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from the other bundles of a study."""
        return str(self.part.file.path), self.part.number, self.indices[0]

    @property
    def bytes(self) -> int:
        """About as many bytes as its recordings have in the file; the whole part may be its own."""
        return self.part.bytes

    def read(self) -> dict[int, Recording]:
        """Return its recordings by their positions. Raises `UnreadableRecordingError`."""
        wanted, found = set(self.indices), {}
        for index, recording in enumerate(self.part.recordings()):
            if index in wanted:
                found[index] = recording
            if len(found) == len(wanted):
                break
        return found


class _Trial(NamedTuple):
    """A policy to try in a session, for any process."""

    task: Trial
    policy: LoadedPolicy
    bundle: Bundle
    position: int
    prices: PricesOf


class _Kept(threading.local):
    """The bundles that this thread used last. Each thread has its own: `Common` belongs to one."""

    def __init__(self) -> None:
        self._bundles: dict[tuple[object, ...], tuple[int, dict[int, tuple[Recording, Common]]]]
        self._bundles = {}

    def recording(self, bundle: Bundle, index: int) -> tuple[Recording, Common]:
        """Return a recording of a bundle, which is read if it is not kept."""
        key = *bundle.key, bundle.indices, bundle.part.file.bytes
        kept = self._bundles.pop(key, None)
        if kept is None:
            held = sum(size for size, _ in self._bundles.values())
            while self._bundles and held + bundle.bytes > _KEPT_BYTES:
                held -= self._bundles.pop(next(iter(self._bundles)))[0]
            kept = bundle.bytes, {i: (one, Common(one)) for i, one in bundle.read().items()}
        self._bundles[key] = kept
        return kept[1][index]


_KEPT = _Kept()


def _found(trial: _Trial) -> Found:
    """Replay one session under a policy."""
    try:
        recording, common = _KEPT.recording(trial.bundle, trial.position)
        return outcome_of(recording, compiled(trial.policy), trial.prices, common=common)
    except PolicyctxError as error:
        return Failure(str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        # A recording may hold anything; one that a replay cannot take is left out.
        return Failure(unexpected(error))


class Evaluator:
    """Outcomes of policies in sessions, remembered by the digest of the policy."""

    def __init__(
        self,
        origins: Sequence[RecordingOrigin],
        calls: Sequence[int],
        *,
        executor: Executor | None = None,
        prices: PricesOf = "recorded",
        progress: Progress | None = None,
    ) -> None:
        """Take where the recordings are, in the order of their numbers, and the calls of each."""
        self._known: dict[Trial, Found] = {}
        self._calls = [*calls]
        self._origins = [*origins]
        self._executor = executor or Here()
        self._prices: PricesOf = prices
        self._progress = progress
        self.replays = 0
        """How many sessions were replayed so far, each under one policy."""
        self._bundles = _bundles(self._origins, self._calls, self._executor.workers)

    def evaluate(self, policies: Iterable[Tried], sessions: Sequence[int]) -> None:
        """Replay each session under each policy, unless it is known; large sessions first.

        Raises `ReplayError` if a session ended the processes that replayed it.
        """
        texts = {one.digest: one.text for one in policies}
        missing = [
            task
            for number in sorted(sessions, key=lambda number: (-self._calls[number], number))
            for digest in texts
            if (task := Trial(digest, number)) not in self._known
        ]
        if self._progress is not None:
            self._progress.begin(sum(self._calls[task.session] for task in missing))
        asked = {task.digest for task in missing}
        loaded_policies = {
            key: LoadedPolicy(compiled_text(texts[key])) for key in texts if key in asked
        }
        jobs = []
        for task in missing:
            bundle, index = self._bundles[task.session], self._origins[task.session].index
            trial = _Trial(task, loaded_policies[task.digest], bundle, index, self._prices)
            jobs.append(Job(trial, bundle.key))
        for job, outcome in self._executor.results(_found, jobs):
            if isinstance(outcome, LostJob):
                raise ReplayError(f"{outcome.why}; try fewer --jobs")
            task = job.argument.task
            self.learn(task, outcome)
            if self._progress is not None:
                self._progress.advance(self._calls[task.session])

    def learn(self, task: Trial, outcome: Found) -> None:
        """Remember what came of a policy in a session that was replayed."""
        self._known[task] = outcome
        self.replays += 1

    def outcome(self, digest: str, session: int) -> Found:
        """Return a known outcome; raises `KeyError` for what was not evaluated."""
        return self._known[Trial(digest, session)]

    def knows(self, digest: str, sessions: Iterable[int]) -> bool:
        """Return whether a policy was evaluated in each of the sessions."""
        return all(Trial(digest, session) in self._known for session in sessions)


def _bundles(
    origins: Sequence[RecordingOrigin], calls: Sequence[int], workers: int
) -> list[Bundle]:
    """Return the bundle of each session: those of a part in one for each worker, alike in calls."""
    by_part: dict[tuple[str, int], list[int]] = {}
    for number, origin in enumerate(origins):
        key = str(origin.part.file.path), origin.part.number
        by_part.setdefault(key, []).append(number)
    found: dict[int, Bundle] = {}
    for numbers in by_part.values():
        for share in balanced({number: 1 + calls[number] for number in numbers}, workers):
            part = origins[share[0]].part
            bundle = Bundle(part, tuple(sorted(origins[number].index for number in share)))
            found |= dict.fromkeys(share, bundle)
    return [found[number] for number in range(len(origins))]


def balanced(sizes: Mapping[K, int], count: int) -> list[list[K]]:
    """Return the keys in so many groups of about the same size, no more groups than keys."""
    groups: list[list[K]] = [[] for _ in range(min(count, len(sizes)))]
    loads = [0] * len(groups)
    for key in sorted(sizes, key=lambda key: -sizes[key]):
        least = loads.index(min(loads))
        groups[least].append(key)
        loads[least] += sizes[key]
    return groups


def tried(text: str) -> Tried | None:
    """Return a policy to try, under its digest; None for one that is not valid."""
    try:
        return Tried(compiled_text(text).digest, text)
    except PolicyError:
        return None


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


def read(recording: Recording, path: str, *, by: ProjectBy) -> TunedSession:
    """Return what a study asks of a recording of the file at `path`; work of `worked`."""
    tools = {
        item.tool
        for call in recording.calls
        for item in items_of(call.new)
        if item.kind == "tool_call" and item.tool is not None
    }
    project = project_of(recording, path, by)
    calls = len(recording.calls)
    return TunedSession(recording.name, path, recording.format, project, calls, frozenset(tools))


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


def priced(recordings: Sequence[TunedSession], evaluator: Evaluator, incumbent: Tried) -> Priced:
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
            sessions.append(replace(one, number=number))
    return Priced(tuple(sessions), tuple(failures), dict(unpriced), without_price)
