"""Work on many recordings, part by part, beside the policy that only summarises.

A replayed session takes some 55 KB of memory, its figures a third of that: a table of many sessions
holds `ShownSessions`, without calls, removals and regrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias, TypeVar

from policyctx.errors import PolicyctxError, ReaderError, UnreadableRecordingError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models import Step
from policyctx.replay.common import Common
from policyctx.replay.executing import Executor, Here, Job, LostJob, unexpected
from policyctx.replay.places import PART_BYTES, RecordingFile, WorkPart, parts, told_apart
from policyctx.replay.recording import Recording
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import Figures, SummedSession, figures_of, summed, total
from policyctx.replay.terms import PricesOf

SUMMARISE_ONLY = "summarise-only"
FEW = 3
"""A file with more sessions than this has one line for all of them."""

# What summarises where a policy has no step that does.
_STEP = Step.model_validate(
    {"name": SUMMARISE_ONLY, "do": "compact", "when": {"tokens": {"at_least": "80%"}}}
)
T = TypeVar("T")
# Done in another process as well, so it and what it returns are pickled.
Work: TypeAlias = "Callable[[Recording, str], T]"
OfPart: TypeAlias = "T | FailedRecording | PassedOver | PartlyRead"
Outcome: TypeAlias = "OfPart[T] | Done"
ShownOutcome: TypeAlias = "ShownSessions | FailedRecording | PassedOver | PartlyRead"


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def summarise_only(policy: OffloadPolicy) -> OffloadPolicy:
    """Return the policy with none of its steps but those that summarise.

    A policy without such a step gets one that summarises at 80 % of the context window, with the
    policy's own settings for compaction. A policy that has no other step is returned as it is.
    """
    document = policy.policy
    steps = tuple(step for step in document.steps if step.action.takes_messages)
    if steps and steps == document.steps:
        return policy
    alone = document.model_copy(update={"steps": steps or (_STEP,)})
    return OffloadPolicy(alone, hints=policy.hints, root=policy.tree)


def replayed(
    policy: str | LoadedPolicy,
    recording: Recording,
    path: str,
    *,
    excerpt: int | None = None,
    prices: PricesOf = "recorded",
) -> SummedSession:
    """Replay one recording of the file at `path` under a policy, or one given by name or path.

    The session has its figures and those of the baseline. Raises as `simulated` does, and
    `PolicyError`.
    """
    given, common = compiled(policy), Common(recording)
    session = simulated(recording, given, path=path, excerpt=excerpt, prices=prices, common=common)
    figures = figures_of(session, unedited=common.unedited)
    other, baseline = summarise_only(given), figures
    if other is not given:
        # Its layouts are shown nowhere, so none is priced but the one that is sent.
        alone = simulated(recording, other, path=path, prices=prices, layouts=(), common=common)
        baseline = figures_of(alone, unedited=common.unedited)
    return summed(session, figures, {SUMMARISE_ONLY: baseline})


class LoadedPolicy:
    """A policy that is sent to other processes, which need not have its file.

    Two of the same name and with the same values are equal.
    """

    __slots__ = ("_key", "policy")

    def __init__(self, policy: OffloadPolicy) -> None:
        self.policy = policy
        self._key = policy.name, policy.digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoadedPolicy) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def compiled(policy: str | LoadedPolicy) -> OffloadPolicy:
    """Return a policy, or the one given by name or path, read once in this process.

    Of equal policies it is the first, whose texts are counted already.
    """
    return OffloadPolicy.load(policy) if isinstance(policy, str) else policy.policy


@dataclass(frozen=True, slots=True)
class FailedRecording:
    """A file, or one recording of it, of which nothing came."""

    path: str
    why: str
    recording: str = ""
    """Its name; empty when the file itself could not be read."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A file of a folder that is not a recording of a known format."""

    path: str


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """What of a file, or of a part of it, is not understood or not counted again."""

    path: str
    counts: Mapping[str, int]
    """What is not understood: how often, by what it is."""
    repeated: int = 0
    """How many calls an earlier file has, too."""
    older: Sequence[float] = ()
    """When the sessions ended that `since` leaves out, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Done:
    """A part that was worked on to its end."""

    part: WorkPart


def worked(
    found: Sequence[RecordingFile],
    work: Work[T],
    executor: Executor | None = None,
    *,
    part_bytes: int = PART_BYTES,
) -> Generator[Outcome[T], None, None]:
    """Yield what `work` makes of each recording, what failed, and each part when it is done.

    The outcomes of a part are consecutive: one for each of its recordings, in their order, then
    what of it is not understood or failed, then its `Done`. This process takes the files in their
    order; with another executor, the part that is done first comes first, and a large file with
    several recordings has several parts. No file stops the others: a file that cannot be read, an
    exception of any class that it causes, and the end of its process, as when the memory is full,
    are each a `FailedRecording`. Raises `ReaderError` for a registered reader that cannot be
    loaded, which concerns every file.
    Closing the generator cancels the work.
    """
    executor = executor or Here()
    if executor.is_here:
        for file in told_apart(found, executor):
            yield from _of_part(work, WorkPart(file))
            yield Done(WorkPart(file))
        return
    made = parts(told_apart(found, executor, part_bytes=part_bytes), part_bytes=part_bytes)
    for job, result in executor.results(partial(_listed, work), [*map(Job, made)]):
        part = job.argument
        if isinstance(result, LostJob):
            yield FailedRecording(str(part.file.path), _in_part(part, result.why))
        else:
            yield from result
        yield Done(part)


def _listed(work: Work[T], part: WorkPart) -> list[OfPart[T]]:
    return list(_of_part(work, part))


def _of_part(work: Work[T], part: WorkPart) -> Iterator[OfPart[T]]:
    path = str(part.file.path)
    unread: Counter[str] = Counter()
    repeated, older = 0, list[float]()
    try:
        for recording in part.recordings(older):
            unread += Counter(recording.not_understood)
            if recording.repeated and not recording.calls:
                yield PartlyRead(path, {}, recording.repeated)
                continue
            repeated += recording.repeated
            yield _outcome(work, recording, path)
        if unread or repeated or older:
            yield PartlyRead(path, unread, repeated, older)
    except UnreadableRecordingError as error:
        if error.is_other and not part.file.named:
            yield PassedOver(path)
        else:
            yield FailedRecording(path, _in_part(part, error.why))
    except ReaderError:
        raise
    except PolicyctxError as error:
        yield FailedRecording(path, _in_part(part, str(error)))
    except Exception as error:  # noqa: BLE001 - no file stops the others
        yield FailedRecording(path, _in_part(part, unexpected(error)))


def _in_part(part: WorkPart, why: str) -> str:
    """Say in which recordings of a file something failed, if that is not the whole file."""
    if (own := part.range) is None:
        return why
    return f"recordings {own.start + 1:,} to {own.stop:,}: {why}"


def _outcome(work: Work[T], recording: Recording, path: str) -> T | FailedRecording:
    try:
        return work(recording, path)
    except PolicyctxError as error:
        return FailedRecording(path, str(error), recording.name)
    except Exception as error:  # noqa: BLE001 - no file stops the others
        return FailedRecording(path, unexpected(error), recording.name)


@dataclass(frozen=True, slots=True)
class ShownSessions:
    """A session, or several of one file, as the table shows them."""

    name: str
    """Of the session; empty for several."""
    format: str
    path: str
    figures: Figures

    @classmethod
    def of(cls, session: SimulatedSession) -> ShownSessions:
        """Return what is shown of one session."""
        return cls(session.name, session.format, session.path, figures_of(session))


def shown(
    policy: str | LoadedPolicy, recording: Recording, path: str, *, prices: PricesOf = "recorded"
) -> ShownSessions:
    """Replay one recording as `replayed` does; return what is shown of it."""
    return ShownSessions.of(replayed(policy, recording, path, prices=prices))


def in_one_line(outcomes: list[ShownOutcome]) -> list[ShownOutcome]:
    """Return the outcomes of one file, with its sessions added up if they have one line."""
    sessions = [one for one in outcomes if isinstance(one, ShownSessions)]
    if len(sessions) <= FEW:
        return outcomes
    others = [one for one in outcomes if not isinstance(one, ShownSessions)]
    first, figures = sessions[0], total(one.figures for one in sessions)
    return [*others, ShownSessions("", first.format, first.path, figures)]
