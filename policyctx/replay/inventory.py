"""The sessions of the agents on this machine: the files that have them, and what was billed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from policyctx.errors import InputError, PolicyctxError, counted, nearest
from policyctx.pricing.dollars import dollars
from policyctx.pricing.rows import row_of
from policyctx.replay.cost import shares_of
from policyctx.replay.executing import unexpected
from policyctx.replay.places import Place, RecordingFile, place_of
from policyctx.replay.readers.home import Home, HomeFile, HomeFiles, files_of
from policyctx.replay.readers.registered import glances, homes, readers
from policyctx.replay.readers.source import source_of
from policyctx.replay.recording import ModelCall, Recording, is_used_since, repeats
from policyctx.replay.running import FailedRecording, PartlyRead
from policyctx.replay.terms import UNNAMED
from policyctx.resources import open_file
from policyctx.tokens.usage import Usage

_WAY_ON = "PATHS after the command reads recordings that are elsewhere; `policyctx demo` needs none"
Repeated: TypeAlias = dict[Place, Counter[str]]
"""By file: the ids of calls that a newer one has, too; empty for those of the file itself."""


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """The folders of one agent, and the files of sessions in them."""

    agent: str
    format: str
    found: Mapping[Home, HomeFiles]
    older: Sequence[HomeFile] = ()
    """Files that did not change since the time that was asked for."""

    @property
    def files(self) -> list[HomeFile]:
        """The files; one that two folders have is there once."""
        each = {file.path: file for found in self.found.values() for file in found.files}
        return [*each.values()]

    @property
    def unreadable(self) -> dict[Path, str]:
        """Folders that cannot be listed and files that cannot be looked up, and why."""
        return {path: why for of in self.found.values() for path, why in of.unreadable.items()}

    def looked(self) -> Iterator[str]:
        """Yield each folder, with the variable that moves it; as one for editors that agree."""
        lines = dict[str, None]()
        for home, found in self.found.items():
            why = next(iter(found.unreadable.values()), "") if found.is_there else "not there"
            moved = f"; {home.variable} moves it" if home.variable else ""
            place = str(home.path()).replace(f"/{home.editor}/User/", "/*/User/")
            lines[f"{place}: {why or 'nothing there'}{moved}"] = None
        yield from lines


def files_of_agents(wanted: Sequence[str] = (), since: float | None = None) -> list[AgentFiles]:
    """Return the files of the named agents, by default of all, that changed since a time.

    Raises `InputError` for an agent that has no reader with a folder.
    """
    known = [(agent, reader, of) for reader in readers() for agent, of in homes(reader).items()]
    names = {agent for agent, *_ in known}
    if unknown := [agent for agent in wanted if agent not in names]:
        near = nearest(unknown[0], names, 0.7)
        meant = f"did you mean {near!r}? " if near else ""
        listed = ", ".join(sorted(names))
        raise InputError(f"unknown agent {unknown[0]!r}; {meant}known are {listed}")
    made = []
    for agent, reader, of in known:
        if wanted and agent not in wanted:
            continue
        # A variable may move two of them to one folder.
        found = {home: files_of(home) for home in {one.path(): one for one in of}.values()}
        older = {f.path: f for one in found.values() for f in one.files if f.changed < (since or 0)}
        for one in found.values():
            one.files = [file for file in one.files if file.path not in older]
        made.append(AgentFiles(agent, reader.FORMAT, found, [*older.values()]))
    return made


def require_files(looked: Sequence[AgentFiles], *, named: bool) -> None:
    """Raise `InputError` where no agent has a file; where it was looked for if it was `named`."""
    if any(of.files for of in looked):
        return
    agents = ", ".join(sorted({of.agent for of in looked}))
    nothing = f"no session was found in the folders of {agents}"
    if older := [file.changed for of in looked for file in of.older]:
        raise InputError(f"{nothing}; {older_in_words(older, 'file')}")
    lines = [f"{of.agent}: {place}" for of in looked for place in of.looked()]
    if not named:
        why = [f"{path}: {why}" for of in looked for path, why in of.unreadable.items()]
        lines = [*why, "`--agent NAME` shows the folders of an agent", _WAY_ON]
    raise InputError("\n  ".join((nothing, *lines)))


def older_in_words(ended: Sequence[float], what: str) -> str:
    """Say how many sessions or files `--since` leaves out, and when the newest was used."""
    newest = datetime.fromtimestamp(max(ended))  # noqa: DTZ006 - as `--since` is given
    are = "is" if len(ended) == 1 else "are"
    return f"{counted(len(ended), what)} {are} older, the newest of {newest:%Y-%m-%d %H:%M}"


class UsedCall(NamedTuple):
    """A model call, without its prompt."""

    id: str
    usage: Usage | None
    dollars: float | None
    """None where no price is known, or no usage."""
    model: str
    at: float | None
    compacted: bool
    """Whether a compaction came before it."""


@dataclass(frozen=True, slots=True)
class UsedSession:
    """What was billed for one session."""

    agent: str
    project: str
    name: str
    path: Place
    calls: Sequence[UsedCall]

    @property
    def last(self) -> float | None:
        """When the last of its calls was made."""
        return max((call.at for call in self.calls if call.at is not None), default=None)


def used_sessions(
    asked: tuple[str, str, HomeFile],
) -> list[UsedSession | FailedRecording | PartlyRead]:
    """Return what was billed in a file of an agent, in any process; no file stops the others."""
    agent, format_, file = asked
    try:
        reader = next(one for one in readers() if format_ == one.FORMAT)
        source = source_of(file.path.name, partial(open_file, file.path))
        found = [_used(agent, file.path, file.project, one) for one in glances(reader, source)]
    except PolicyctxError as error:
        return [FailedRecording(str(file.path), str(error))]
    except OSError as error:
        return [FailedRecording(str(file.path), error.strerror or str(error))]
    except Exception as error:  # noqa: BLE001 - whatever is in the file
        return [FailedRecording(str(file.path), unexpected(error))]
    return [*found, PartlyRead(str(file.path), dict(source.not_understood))]


def used_recording(recording: Recording, path: str) -> UsedSession:
    """Return what was billed for a recording of a file that was named, in any process."""
    return _used(recording.format, place_of(path), "", recording)


def _used(agent: str, path: Place, folder: str, recording: Recording) -> UsedSession:
    calls, bill = recording.calls, recording.bill
    if bill is not None and bill.usage.prompt:
        shares = shares_of([1] * len(calls), bill)[: bill.calls]
        calls = (*(replace(c, usage=u) for c, u in zip(calls, shares, strict=False)),)
    project = recording.project or folder
    return UsedSession(agent, project, recording.name, path, [*map(_call, calls)])


def _call(call: ModelCall) -> UsedCall:
    name, usage = call.language_model or UNNAMED, call.usage
    row = row_of(name, at=call.at) if usage is not None else None
    cost = None
    if row is not None and usage is not None:
        prices, _ = row.billed(usage.tier, at=call.at)
        cost = dollars(usage, prices).total
    return UsedCall(call.id, usage, cost, name, call.at, call.why_anew == "compaction")


def counted_once(
    sessions: Iterable[UsedSession], since: float | None
) -> tuple[list[UsedSession], Repeated]:
    """Return the sessions used since a time, the newest first, each call in the first that has it.

    Also the calls that were left out for that.
    """
    found, repeated, seen = list[UsedSession](), Repeated(), set[str]()
    of_file: dict[Place, set[str]] = {}
    for session in sorted(sessions, key=lambda one: one.last or 0, reverse=True):
        if not is_used_since(session.last, since):
            continue
        again, here = [*repeats((call.id for call in session.calls), seen)], session.path
        calls = [*zip(session.calls, again, strict=True)]
        own = [call for call, is_again in calls if not is_again]
        ids = of_file.setdefault(here, set())
        ids |= {call.id for call in own}
        left_out = ("" if call.id in ids else call.id for call, is_again in calls if is_again)
        repeated.setdefault(here, Counter()).update(left_out)
        found += [replace(session, calls=own)] if own else []
    return found, repeated


def by_project(sessions: Iterable[UsedSession]) -> list[list[UsedSession]]:
    """Return the sessions by agent and project, as they are ordered."""
    made: dict[tuple[str, str], list[UsedSession]] = {}
    for session in sessions:
        made.setdefault((session.agent, session.project), []).append(session)
    return [*made.values()]


@dataclass(frozen=True, slots=True)
class Used:
    """The sums of sessions."""

    sessions: int
    calls: int
    usage: Usage
    dollars: float | None
    """Of the calls with prices; None without any."""
    without_price: Mapping[str, int]
    """By model: how many calls have a usage and no price."""
    without_usage: int
    compactions: int


def used(sessions: Sequence[UsedSession]) -> Used:
    """Return the sums of sessions."""
    calls = [call for session in sessions for call in session.calls]
    billed = [call for call in calls if call.usage is not None]
    costs = [call.dollars for call in billed if call.dollars is not None]
    return Used(
        len(sessions),
        len(calls),
        sum((call.usage for call in billed if call.usage), Usage(0)),
        sum(costs) if costs else None,
        # `asdict` copies no Counter: it would count pairs.
        dict(Counter(call.model for call in billed if call.dollars is None)),
        len(calls) - len(billed),
        sum(call.compacted for call in calls),
    )


def files_to_replay(
    sessions: Sequence[UsedSession], repeated: Repeated, chosen: int, *, partial: bool = False
) -> list[RecordingFile]:
    """Return the files of agents with the first sessions of a list that has the newest first.

    Of a file with others as well, what was used before the last of these is left out.
    """
    known: dict[Place, RecordingFile] = {
        one.path: RecordingFile(
            *(one.path, True, one.path.stat().st_size if one.path.exists() else 0, partial),
            repeated=frozenset(repeated[one.path]),
        )
        for one in sessions[:chosen]
        if isinstance(one.path, Path)
    }
    return with_first(sessions, known, chosen)


def with_first(
    sessions: Sequence[UsedSession], known: Mapping[Place, RecordingFile], chosen: int
) -> list[RecordingFile]:
    """Return those of the known files that have the first sessions of a list, as above."""
    first, oldest = sessions[:chosen], sessions[:chosen][-1].last
    mixed = {one.path for one in sessions[chosen:]}
    return [
        replace(known[path], since=oldest) if path in mixed else known[path]
        for path in dict.fromkeys(one.path for one in first)
    ]
