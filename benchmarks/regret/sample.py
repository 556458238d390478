"""Draws the units of regret that people label, and writes what they need to judge them.

    python -m benchmarks.regret.sample ../shared/traces PACKETS [DRAW]

A unit is a removed item and one absence of it. From each session at most ten are drawn, in the
second draw seven others, in the third three, in the fourth five of files that no draw before has,
under the two fixed policies beside this module: units that the detector flags and units that it
does not, each from its own stratum, with the probability that the unit had.
`PACKETS` gets a folder for each session: the transcript, with the calls at which each item was out,
and a file for each unit. What the detector says is in `units.jsonl` only, and the packets do not
show it. Units of another draw stay in `units.jsonl`.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.reading import files_in, recordings_in
from policyctx.replay.recording import Recording
from policyctx.replay.simulated import SeenItem, SimulatedSession
from policyctx.replay.simulation import simulated

HERE = Path(__file__).parent
POLICIES = ("coding-agent", "harsh")

SESSIONS = 4
"""Sessions of one file with removals; some files hold a hundred."""
WHOLE = 10**9


class Draw(NamedTuple):
    """One of the draws; a later one takes units that the earlier ones have not."""

    seed: str
    most: int
    """Units of one session."""
    is_of_new_files: bool = False
    """Whether it takes no file of which an earlier draw has units."""


DRAWS = {
    1: Draw("20261123", 10),
    2: Draw("second", 7),
    3: Draw("third", 3),
    4: Draw("fourth", 5, is_of_new_files=True),
}


KEY = ("file", "session", "policy", "part", "position", "absence")
"""What tells a unit from the others."""


def units_drawn(draw: int | None = None, file: Path = HERE / "units.jsonl") -> list[dict[str, Any]]:
    """Return the units of a file, or those of one draw."""
    with file.open(encoding="utf-8") as lines:
        units = [json.loads(line) for line in lines]
    return [unit for unit in units if draw in {None, unit["draw"]}]


def halves(traces: Path) -> dict[str, str]:
    """Return the half of each recording's file, by its path below `traces`."""
    of_repository = {
        repository: half
        for half, repositories in json.loads((HERE / "split.json").read_text())["halves"].items()
        for repository in repositories
    }
    with (traces / "MANIFEST.tsv").open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return {row["file"]: of_repository[row["source_repo"]] for row in rows}


def units_of(session: SimulatedSession, policy: str) -> Iterator[dict[str, Any]]:
    """Yield the units of one session: what a later reply could have needed."""
    needed: dict[tuple[int, int], list[int]] = defaultdict(list)
    for regret in session.regrets:
        place = regret.removal.part, regret.removal.position
        needed[place] += [need.call for need in regret.needs]
    removed = {(removal.part, removal.position) for removal in session.removals}
    last = len(session.calls)
    for item in session.items:
        place = item.part, item.position
        if place not in removed:
            continue
        for number, absence in enumerate(item.absences):
            until = min(absence.until, last + 1)
            if absence.since >= until:
                continue
            yield {
                "policy": policy,
                "part": item.part,
                "position": item.position,
                "absence": number,
                "since": absence.since,
                "until": int(until),
                "item_type": item.item_type,
                "tool": item.tool,
                "tokens": item.tokens,
                "text_sha256": sha256(item.text.encode("utf-8", "surrogatepass")).hexdigest(),
                "flagged": any(absence.since <= call < until for call in needed[place]),
            }


def drawn(units: list[dict[str, Any]], chance: random.Random, most: int) -> list[dict[str, Any]]:
    """Return at most `most` units, half of them flagged if enough are."""
    strata = [[u for u in units if u["flagged"]], [u for u in units if not u["flagged"]]]
    wanted = min(most // 2, len(strata[0]))
    sizes = wanted, min(most - wanted, len(strata[1]))
    sizes = min(most - sizes[1], len(strata[0])), sizes[1]
    found = []
    for stratum, size in zip(strata, sizes, strict=True):
        probability = size / len(stratum) if stratum else 0.0
        found += [{**unit, "probability": probability} for unit in chance.sample(stratum, size)]
    chance.shuffle(found)  # the order must not show the stratum
    return found


def sessions(traces: Path) -> Iterator[tuple[str, str, Recording]]:
    """Yield each recording with its file below `traces` and its half."""
    half = halves(traces)
    for path in files_in([traces]):
        file = path.relative_to(traces).as_posix()
        if file in half:
            for recording in recordings_in(path):
                yield file, half[file], recording


def write_packet(folder: Path, replayed: dict[str, SimulatedSession], units: list[Any]) -> None:
    """Write the transcript under each policy and a file for each unit."""
    folder.mkdir(parents=True, exist_ok=True)
    for policy in {unit["policy"] for unit in units}:
        items = replayed[policy].items
        with (folder / f"transcript-{policy}.txt").open("w", encoding="utf-8") as out:
            for item in items:
                out.write(_shown(item))
    for unit in units:
        item = next(
            item
            for item in replayed[unit["policy"]].items
            if (item.part, item.position) == (unit["part"], unit["position"])
        )
        absence = item.absences[unit["absence"]]
        lines = "\n".join(f"{i:5} {line}" for i, line in enumerate(item.text.split("\n"), 1))
        head = (
            f"unit {unit['id']}\npolicy {unit['policy']}\nitem {item.part}.{item.position}"
            f" {item.item_type} {item.tool or ''}, first seen by call {item.arrived}\n"
            f"out for calls {unit['since']} to {unit['until'] - 1}\n"
            f"what stood in its place: {absence.left!r}\n\nthe item, with line numbers:\n"
        )
        (folder / f"{unit['id']}.txt").write_text(
            head + lines.encode("utf-8", "replace").decode() + "\n", encoding="utf-8"
        )


def _shown(item: SeenItem) -> str:
    out = "".join(
        f" [out for calls {one.since} to {one.until}, in its place: {one.left[:200]!r}]"
        for one in item.absences
    )
    written = item.role == "assistant"
    when = f"reply to call {item.arrived - 1}" if written else f"first seen by call {item.arrived}"
    text = item.text.encode("utf-8", "replace").decode()
    return (
        f"=== item {item.part}.{item.position} {item.item_type} {item.tool or ''}"
        f" ({when}){out}\n{text}\n"
    )


def main(traces: Path, packets: Path, draw: int = 1) -> None:
    """Draw units of all recordings; write them to `units.jsonl` beside other draws, and packets."""
    policies = {name: OffloadPolicy.load(str(HERE / f"{name}.yaml")) for name in POLICIES}
    seed, most, is_of_new_files = DRAWS[draw]
    others = [unit for unit in units_drawn() if unit["draw"] != draw]
    before = [unit for unit in others if unit["draw"] < draw]
    had = {tuple(unit[key] for key in KEY) for unit in before}
    used: dict[str, int] = defaultdict(int)
    if is_of_new_files:
        used |= {unit["file"]: SESSIONS for unit in before}
    number = 300 * (draw - 1)
    found: list[dict[str, Any]] = []
    for file, half, recording in sessions(traces):
        if used[file] >= SESSIONS:
            continue
        replayed = {
            name: simulated(recording, policy, excerpt=WHOLE) for name, policy in policies.items()
        }
        chance = random.Random(f"{seed} {file} {recording.name}")  # noqa: S311 - no secret
        of_session = {"file": file, "session": recording.name}
        units = [of_session | unit for name in POLICIES for unit in units_of(replayed[name], name)]
        units = drawn([u for u in units if tuple(u[k] for k in KEY) not in had], chance, most)
        if not units:
            continue
        used[file] += 1
        named = []
        for unit in units:
            number += 1
            named.append({"id": f"u{number:03}", "draw": draw, "half": half, **unit})
        found += named
        name = "".join(c if c.isalnum() else "-" for c in recording.name)[:50]
        write_packet(packets / half / f"{name}-{named[0]['id']}", replayed, named)
    with (HERE / "units.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(u) + "\n" for u in sorted(others + found, key=itemgetter("id")))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:4]))
