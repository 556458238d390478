"""What the library's own presets come to in recorded sessions: the source of each figure of them.

    python -m benchmarks.presets             measure, write benchmarks/presets.tsv and the example
                                             of docs/replay.md
    python -m benchmarks.presets FOLDER …    measure recordings elsewhere, and write nothing

Both print net dollars with their 95 % interval (bootstrap over repositories), sessions that get
dearer, and tokens that are needed again, of each policy and client. `scripts/docs` then writes the
figures of the file into the pages and the descriptions of the presets. The policies are the
presets, their summaries alone, and CANDIDATES: other settings from which the default was chosen.
The row LEFT_OUT is the default as it would have been chosen without the sessions of an
organisation, in these sessions.

A line of the file is a policy in the sessions of one repository and one client. Sessions without
prices are left out, and sessions that cost nothing without a policy, which no policy makes dearer.
"""

from __future__ import annotations

import csv
import math
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.replay.common import Common
from policyctx.replay.places import files
from policyctx.replay.recording import Recording
from policyctx.replay.running import SUMMARISE_ONLY, summarise_only, worked
from policyctx.tokens.usage import HOUR
from policyctx.tuning.evaluating import project_of
from policyctx.tuning.outcomes import (
    Interval,
    SessionOutcome,
    Sums,
    bootstrap_interval,
    outcome_of,
    sums,
)

SHARED = Path(__file__).parents[2] / "shared"
FOLDERS = (SHARED / "traces", SHARED / "traces-2026")
DEFAULT = "coding-agent"
FILE = Path(__file__).with_name("presets.tsv")
EXAMPLE = Path(__file__).parents[1] / "docs" / "replay.md"
_EXAMPLE = re.compile(
    rf"(?<=\$ policyctx replay {DEFAULT} RECORDINGS --details\n).*?\n(?=```)", re.DOTALL
)
# Lines below one with the same label.
_FURTHER = re.compile(r"^((?:step|untouched|unmarked) +)(.*\n)(?:(?:\1.*|…)\n)+", re.MULTILINE)
# Lines that say more than the page explains.
_LEFT_OUT = re.compile(
    r"^(?:usage|largest|window|prices|output|ttl|tier|untouched|unmarked|unread|time) .*\n"
    r"(?: .*\n)*",
    re.MULTILINE,
)
_SHOWN = 2

PRESETS = (DEFAULT, "few-re-reads", "small-context")
_STEP = """
steps:
  - name: retire-old-results
    do: offload
    when: [{{idle: {{over: cache_ttl}}}}, {gates}]
    select: {{types: [tool_result], keep_recent: {{items: 3, per: all}}, with_input: {inputs}}}
"""
_PAYS = "pays_back: {at_most: 25%}, frees: {at_least: 5000}"
# What each has in place of the default's own keys.
CANDIDATES = {
    "idle or frees 50,000": _STEP.format(gates="{frees: {at_least: 50000}}", inputs="false"),
    "idle or pays_back 25 %, with inputs": _STEP.format(gates=f"{{{_PAYS}}}", inputs="true"),
    "idle or pays_back 25 % from 50 messages on, with inputs": _STEP.format(
        gates=f"{{{_PAYS}, messages: {{at_least: 50}}}}", inputs="true"
    ),
    "idle, frees 30,000 or pays_back 25 % from 120 messages on, with inputs": _STEP.format(
        gates=f"{{frees: {{at_least: 30000}}}}, {{{_PAYS}, messages: {{at_least: 120}}}}",
        inputs="true",
    ),
}
LEFT_OUT = "organisation left out"
# A candidate is chosen only if it makes no more than this share of the sessions dearer.
MOST_DEARER = 0.01
_CLIENTS = {"claude-code": "Claude Code", "codex": "Codex", "pi": "Pi"}
OTHERS = "other"


class Row(NamedTuple):
    """A policy in the sessions of one repository and client, of those of one folder."""

    date: str
    folder: str
    repository: str
    client: str
    policy: str
    sums: Sums

    @property
    def organisation(self) -> str:
        """Who owns the repository."""
        return self.repository.partition("/")[0]


Rows: TypeAlias = Sequence[Row]


def policies() -> dict[str, OffloadPolicy]:
    """Return what is measured, by its name."""
    found = {name: OffloadPolicy.load(name) for name in PRESETS}
    found[SUMMARISE_ONLY] = summarise_only(found[DEFAULT])
    for name, keys in CANDIDATES.items():
        text = f"apiVersion: policyctx/v1\nname: candidate\nextends: {DEFAULT}\n{keys}"
        found[name] = OffloadPolicy(parsed_policy(PolicySource(name, text)))
    return found


class Priced(NamedTuple):
    """What each policy comes to in one session that costs something."""

    repository: str
    client: str
    outcomes: dict[str, SessionOutcome]


def client_of(recording: Recording) -> str:
    """Return the client that made a recording; one that caches for an hour says so."""
    known = _CLIENTS.get(recording.format, OTHERS)
    ttls = {call.usage.write_ttl for call in recording.calls if call.usage is not None}
    return f"{known} 1 h" if HOUR in ttls else known


def _priced(
    tried: Mapping[str, OffloadPolicy], owners: Mapping[str, str], recording: Recording, path: str
) -> Priced | None:
    if not recording.calls:
        return None
    common = Common(recording)
    outcomes = {}
    for name, policy in tried.items():
        outcome = outcome_of(recording, policy, common=common)
        if not isinstance(outcome, SessionOutcome) or not outcome.without:
            return None
        outcomes[name] = outcome
    return Priced(owners.get(path) or project_of(recording, path), client_of(recording), outcomes)


def repositories(folder: Path) -> dict[str, str]:
    """Return `owner/name` of each recording of a folder, by its path, as its manifest says."""
    manifest = folder / "MANIFEST.tsv"
    if not manifest.is_file():
        return {}
    with manifest.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return {str(folder / row["file"]): row["source_repo"] for row in rows}


def measured(
    tried: Mapping[str, OffloadPolicy], folders: Sequence[Path], part: str = ""
) -> Iterator[Row]:
    """Yield what policies come to in the recordings of folders, or of this part of each."""
    today = datetime.now(UTC).date().isoformat()
    for folder in folders:
        groups: defaultdict[tuple[str, str, str], list[SessionOutcome]] = defaultdict(list)
        for one in worked(files([folder / part]), partial(_priced, tried, repositories(folder))):
            if isinstance(one, Priced):
                for name, outcome in one.outcomes.items():
                    groups[one.repository, one.client, name].append(outcome)
        for group, outcomes in sorted(groups.items()):
            whole = sums(outcomes)
            rounded = replace(whole, without=round(whole.without, 4), net=round(whole.net, 4))
            yield Row(today, folder.name, *group, rounded)


def together(rows: Iterable[Row]) -> Sums:
    """Return the sums over rows."""
    return Sums(*map(sum, zip(*(astuple(row.sums) for row in rows), strict=True)))


def interval(rows: Rows, other: Rows = ()) -> Interval | None:
    """Return the interval of what a policy costs more than another or none, in $."""
    nets: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        nets[row.repository].append(row.sums.net)
    for row in other:
        nets[row.repository].append(-row.sums.net)
    return bootstrap_interval([math.fsum(nets[name]) for name in sorted(nets)], seed=0)


def of(rows: Rows, policy: str, client: str = "") -> Rows:
    """Return the rows of a policy, and of the clients whose names begin like this."""
    return [row for row in rows if row.policy == policy and row.client.startswith(client)]


def left_out(rows: Rows) -> Iterator[Row]:
    """Yield for each organisation the rows of what is chosen by the sessions of all others."""

    def badness(policy: str, without: str) -> tuple[bool, float]:
        found = together(row for row in of(rows, policy) if row.organisation != without)
        return found.dearer > MOST_DEARER * found.sessions, found.net

    names = (DEFAULT, *CANDIDATES)
    for organisation in sorted({row.organisation for row in rows}):
        chosen = min(names, key=lambda policy: badness(policy, organisation))
        for row in of(rows, chosen):
            if row.organisation == organisation:
                yield row._replace(policy=LEFT_OUT)


_COLUMNS = (*Row._fields[:-1], *(one.name for one in fields(Sums)))


@cache
def committed() -> Rows:
    """Return the rows of the file, and those with an organisation left out."""
    names = [one.name for one in fields(Sums)]
    with FILE.open(encoding="utf-8", newline="") as lines:
        rows = [
            Row(
                one["date"],
                one["folder"],
                one["repository"],
                one["client"],
                one["policy"],
                TypeAdapter(Sums).validate_strings({name: one[name] for name in names}),
            )
            for one in csv.DictReader(lines, delimiter="\t")
        ]
    return [*rows, *left_out(rows)]


def write(rows: Rows) -> None:
    """Write the file."""
    with FILE.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, delimiter="\t", lineterminator="\n")
        writer.writerow(_COLUMNS)
        for *names, found in rows:
            writer.writerow([*names, *astuple(found)])


def example(folders: Sequence[Path]) -> str:
    """Return what `policyctx replay` prints, without its tables and many of its lines."""
    command = [
        sys.executable,
        "-m",
        "policyctx",
        "replay",
        DEFAULT,
        *map(str, folders),
        "--details",
    ]
    environment = {**os.environ, "COLUMNS": "100"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    answer, _, shown = run.stdout.partition("\n\n")
    shown = shown.partition("\n\nnet cost")[0] + "\n"
    sessions, total, rest = shown.partition("\ntotal ")
    head, *rows = sessions.splitlines()
    largest = sorted(rows, key=_dollars)[-_SHOWN:]
    begins = [" ".join(answer.split()), "", head]
    shown = "\n".join([*begins, *(row for row in rows if row in largest), "…" + total + rest])
    return _LEFT_OUT.sub("", _FURTHER.sub(r"\1\2", shown))


def _dollars(row: str) -> float:
    """Return by how many $ the session of a row gets cheaper or dearer."""
    text = row.rsplit(maxsplit=1)[-1].replace(",", "").lstrip("−+-")
    return float(text or 0)


def main(arguments: Sequence[str]) -> int:
    """Print the table, and write the file if it is about the shared recordings."""
    rows = list(measured(policies(), [Path(a) for a in arguments] or FOLDERS))
    if not arguments:
        write(rows)
        page = EXAMPLE.read_text(encoding="utf-8")
        shown = example(FOLDERS)
        EXAMPLE.write_text(_EXAMPLE.sub(lambda _: shown, page), encoding="utf-8")
    columns = ("client", "net, $", "without, $", "acted", "dearer", "needed again")
    table = Table("policy", *columns, box=None)
    rows += left_out(rows)
    for policy in dict.fromkeys(row.policy for row in rows):
        for client in ("", *sorted({row.client for row in rows})):
            if found := of(rows, policy, client):
                total, bounds = together(found), interval(found)
                between = f" [{bounds.low:+.2f}, {bounds.high:+.2f}]" if bounds else ""
                table.add_row(
                    policy,
                    client or "all",
                    f"{total.net:+.2f} ({-total.saved:+.1%}){between}",
                    f"{total.without:.2f} in {total.sessions}",
                    f"{total.sessions - total.idle}",
                    f"{total.dearer}",
                    f"{total.regret_tokens:,}",
                )
    Console(width=140).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
