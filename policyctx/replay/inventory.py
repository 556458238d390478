"""The sessions of the agents on this machine: the files that have them, and what was billed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from policyctx.errors import InputError, PolicyctxError
from policyctx.pricing.dollars import dollars
from policyctx.pricing.rows import row_of
from policyctx.replay.cost import shares_of
from policyctx.replay.executing.executor import unexpected
from policyctx.replay.places import RecordingFile
from policyctx.replay.readers.home import Home, HomeFile, HomeFiles, files_of
from policyctx.replay.readers.registered import glances, homes, readers
from policyctx.replay.readers.source import source_of
from policyctx.replay.recording import ModelCall, Recording
from policyctx.replay.terms import UNNAMED
from policyctx.resources import open_file
from policyctx.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """The folders of one agent, and the files of sessions in them."""

    agent: str
    format: str
    found: Mapping[Home, HomeFiles]

    @property
    def files(self) -> list[HomeFile]:
        """The files; one that two folders have is there once."""
        each = {file.path: file for found in self.found.values() for file in found.files}
        return [*each.values()]

    def looked(self) -> Iterator[str]:
        """Yield each folder, with the variable that moves it."""
        for home, found in self.found.items():
            why = next(iter(found.unreadable.values()), "") if found.is_there else "not there"
            moved = f"; {home.variable} moves it" if home.variable else ""
            yield f"{home.path()}: {why or 'nothing there'}{moved}"


def files_of_agents(wanted: Sequence[str] = (), since: float | None = None) -> list[AgentFiles]:
    """Return the files of the named agents, by default of all, that changed since a time.

    Raises `InputError` for an agent that has no reader with a folder.
    """
    known = {agent: (reader, of) for reader in readers() for agent, of in homes(reader).items()}
    if unknown := [agent for agent in wanted if agent not in known]:
        raise InputError(f"unknown agent {unknown[0]!r}; known are {', '.join(sorted(known))}")
    made = []
    for agent, (reader, of) in known.items():
        if wanted and agent not in wanted:
            continue
        found = {home: files_of(home) for home in of}
        for one in found.values():
            one.files = [file for file in one.files if since is None or file.changed >= since]
        made.append(AgentFiles(agent, reader.FORMAT, found))
    return made


def require_files(looked: Sequence[AgentFiles], since: float | None = None) -> None:
    """Raise `InputError` where no agent has a file, and say where it was looked for."""
    if any(of.files for of in looked):
        return
    places = "".join(f"\n  {of.agent}: {place}" for of in looked for place in of.looked())
    when = "" if since is None else f" since {datetime.fromtimestamp(since):%Y-%m-%d %H:%M}"  # noqa: DTZ006 - as it was given
    raise InputError(f"no session{when} was found in the folders of the agents:{places}")


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
    """What was billed for one session, or for all of a project."""

    agent: str
    project: str
    name: str
    path: Path
    calls: Sequence[UsedCall]
    repeated: int = 0
    """How many calls it has that another one has, too; they are not in `calls`."""

    @property
    def last(self) -> float | None:
        """When the last of its calls was made."""
        return max((call.at for call in self.calls if call.at is not None), default=None)

    def counted_once(self, seen: set[str]) -> UsedSession:
        """Return it without the calls that were `seen`, and add its own to them."""
        own = [call for call in self.calls if not call.id or call.id not in seen]
        seen.update(call.id for call in self.calls)
        return replace(self, calls=own, repeated=len(self.calls) - len(own))


@dataclass(frozen=True, slots=True)
class UsedFile:
    """What a glance at a file showed."""

    file: HomeFile
    sessions: tuple[UsedSession, ...] = ()
    not_understood: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    """Why it cannot be read."""


def used_file(asked: tuple[str, str, HomeFile]) -> UsedFile:
    """Return what was billed in a file of an agent, in any process; no file stops the others."""
    agent, format_, file = asked
    try:
        reader = next(one for one in readers() if format_ == one.FORMAT)
        source = source_of(file.path.name, partial(open_file, file.path))
        found = tuple(_used(agent, file, one) for one in glances(reader, source))
    except PolicyctxError as error:
        return UsedFile(file, why=str(error))
    except OSError as error:
        return UsedFile(file, why=error.strerror or str(error))
    except Exception as error:  # noqa: BLE001 - whatever is in the file
        return UsedFile(file, why=unexpected(error))
    return UsedFile(file, found, dict(source.not_understood))


def _used(agent: str, file: HomeFile, recording: Recording) -> UsedSession:
    calls, bill = recording.calls, recording.bill
    if bill is not None and bill.usage.prompt and bill.calls:
        shares = shares_of([1] * len(calls), bill)[: bill.calls]
        calls = (*(replace(c, usage=u) for c, u in zip(calls, shares, strict=False)),)
    project = recording.project or file.project
    return UsedSession(agent, project, recording.name, file.path, [*map(_call, calls)])


def _call(call: ModelCall) -> UsedCall:
    name, usage = call.language_model or UNNAMED, call.usage
    row = row_of(name, at=call.at) if usage is not None else None
    cost = None if row is None or usage is None else dollars(usage, row.prices).total
    return UsedCall(call.id, usage, cost, name, call.at, call.why_anew == "compaction")


@dataclass(frozen=True, slots=True)
class UsedProject:
    """What was billed for the sessions of an agent in one project."""

    agent: str
    project: str
    sessions: Sequence[UsedSession]

    @property
    def calls(self) -> list[UsedCall]:
        """Their calls."""
        return [call for session in self.sessions for call in session.calls]


def by_project(sessions: Iterable[UsedSession]) -> list[UsedProject]:
    """Return the sessions with calls by agent and project, the one used last first."""

    def key(session: UsedSession) -> tuple[str, str]:
        return session.agent, session.project

    with_calls = sorted((one for one in sessions if one.calls), key=key)
    made = [UsedProject(*names, newest_first(of)) for names, of in groupby(with_calls, key)]
    return sorted(made, key=lambda one: one.sessions[0].last or 0, reverse=True)


def newest_first(sessions: Iterable[UsedSession]) -> list[UsedSession]:
    """Return the sessions, the one used last first."""
    return sorted(sessions, key=lambda one: one.last or 0, reverse=True)


@dataclass(frozen=True, slots=True)
class Used:
    """The sums of calls."""

    calls: int
    usage: Usage
    dollars: float | None
    """Of the calls with prices; None without any."""
    unpriced: Mapping[str, int]
    """By model: how many calls have a usage and no price."""
    unbilled: int
    """How many calls have no usage."""
    compactions: int


def used(calls: Sequence[UsedCall]) -> Used:
    """Return the sums of calls."""
    billed = [call for call in calls if call.usage is not None]
    costs = [call.dollars for call in billed if call.dollars is not None]
    return Used(
        len(calls),
        sum((call.usage for call in billed if call.usage), Usage(0)),
        sum(costs) if costs else None,
        Counter(call.model for call in billed if call.dollars is None),
        len(calls) - len(billed),
        sum(call.compacted for call in calls),
    )


def files_to_replay(
    sessions: Sequence[UsedSession], chosen: Sequence[UsedSession], *, partial: bool = False
) -> list[RecordingFile]:
    """Return the files of the chosen sessions, the newest of all sessions.

    Of a file with others as well, what was used before the oldest of the chosen is left out.
    """
    oldest = min((one.last for one in chosen if one.last is not None), default=None)
    taken = set(map(id, chosen))
    mixed = {one.path for one in sessions if one.calls and id(one) not in taken}
    return [
        RecordingFile(
            path,
            named=True,
            bytes=os.path.getsize(path) if path.exists() else 0,  # noqa: PTH202
            partial=partial,
            since=oldest if path in mixed else None,
        )
        for path in dict.fromkeys(one.path for one in chosen)
    ]
