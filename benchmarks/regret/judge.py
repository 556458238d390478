"""Holds the detector of regret against the labels that people gave.

    python -m benchmarks.regret.judge LABELS TRACES… [--half development|frozen|later] [--draw N]
    python -m benchmarks.regret.judge benchmarks/regret/blind.jsonl TRACES… --units blind.jsonl

`LABELS` is a file of JSON lines, or a folder of such files; each line is one judgement of one unit
of `units.jsonl`: `{"id", "needed", "kind", "range", …}`. Who judged is in `labeller`, or else in
the file's name: `labels-A1.jsonl` is by `A`. A unit is needed where most of its judgements say so;
a unit without a majority is left out and counted, and so is one whose item the policy no longer
removes. Only recordings of the half are opened; with `--units` those of all units of that file.

The interval of each figure is from the 2.5th to the 97.5th percentile of a bootstrap over sessions.
A weighted figure counts each unit by the inverse of the probability with which it was drawn.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from benchmarks.regret.sample import DRAWS, HERE, POLICIES, WHOLE, halves, units_drawn
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.reading import recordings_in
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.simulation import simulated

ROUNDS = 2_000
SEED = 20261123

Lines = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one person says of one unit."""

    labeller: str
    needed: bool
    kind: str | None = None
    """`used` or `asked`."""
    lines: Lines | None = None
    """The first and last line that must be read again."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A unit with what people say of it, and what the detector says."""

    id: str
    session: str
    probability: float
    needed: bool
    kind: str | None
    """By the labels, where it is needed."""
    found: frozenset[str]
    """By the detector: `used`, `asked`, both or nothing."""
    lines: tuple[Lines, ...] = ()
    """By the labels, of each who called it needed."""
    found_lines: tuple[Lines, ...] = ()
    """By the detector."""

    @property
    def weight(self) -> float:
        """How many units of its stratum it stands for."""
        return 1 / self.probability


@dataclass(frozen=True, slots=True)
class Found:
    """What the detector says of one unit."""

    kinds: frozenset[str] = frozenset()
    lines: tuple[Lines, ...] = ()
    is_out: bool = True
    """Whether the policy still removes the item for these calls."""


@dataclass(slots=True)
class _Tally:
    hits: float = 0.0
    of: float = 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """A share of units, and its 95 % interval."""

    value: float
    low: float
    high: float
    units: int
    """How many units it is a share of."""

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] of {self.units}"


def judgements(labels: Path) -> dict[str, list[Judgement]]:
    """Return the judgements of each unit; of one person's on one unit, the last counts."""
    files = sorted(labels.glob("*.jsonl")) if labels.is_dir() else [labels]
    found: dict[str, dict[str, Judgement]] = defaultdict(dict)
    for file in files:
        name = re.sub(r"\d*$", "", file.stem.removeprefix("labels-"))
        for line in file.read_text(encoding="utf-8").splitlines():
            if not line.strip():
                continue
            said = json.loads(line)
            labeller = said.get("labeller", name)
            lines = tuple(said["range"]) if said.get("range") else None
            found[said["id"]][labeller] = Judgement(
                labeller, bool(said["needed"]), said.get("kind"), lines
            )
    return {id_: list(of_one.values()) for id_, of_one in found.items()}


def kappa(judged: Mapping[str, Sequence[Judgement]]) -> dict[tuple[str, str], tuple[float, int]]:
    """Return Cohen's κ, and over how many units, of each two labellers who share units."""
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for of_unit in judged.values():
        for one, other in combinations(sorted(of_unit, key=lambda j: j.labeller), 2):
            pairs[one.labeller, other.labeller].append((one.needed, other.needed))
    return {names: (_kappa(said), len(said)) for names, said in pairs.items()}


def _kappa(said: Sequence[tuple[bool, bool]]) -> float:
    agreed = sum(one == other for one, other in said) / len(said)
    first = sum(one for one, _ in said) / len(said)
    second = sum(other for _, other in said) / len(said)
    chance = first * second + (1 - first) * (1 - second)
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def majority(judged: Sequence[Judgement]) -> Judgement | None:
    """Return what most say of a unit, None for a tie."""
    votes = Counter(one.needed for one in judged)
    if votes[True] == votes[False]:
        return None
    needed = votes[True] > votes[False]
    agreeing = [one for one in judged if one.needed == needed]
    kind = Counter(one.kind for one in agreeing).most_common(1)[0][0]
    return Judgement("majority", needed, kind)


def found_in(unit: Mapping[str, Any], session: SimulatedSession) -> Found:
    """Return what the detector says of a unit; raises `ValueError` if its item is another one."""
    place = unit["part"], unit["position"]
    [item] = [item for item in session.items if (item.part, item.position) == place]
    if sha256(item.text.encode("utf-8", "surrogatepass")).hexdigest() != unit["text_sha256"]:
        raise ValueError(f"{unit['id']}: the recording is read in another way than it was drawn")
    since, until = unit["since"], unit["until"]
    if not any(one.since < until and since < one.until for one in item.absences):
        return Found(is_out=False)
    needs = [
        need
        for regret in session.regrets
        if (regret.removal.part, regret.removal.position) == place
        for need in regret.needs
        if since <= need.call < until
    ]
    return Found(
        frozenset("asked" if need.kind == "asked again" else "used" for need in needs),
        tuple((one.first, one.last) for need in needs for one in need.ranges),
    )


def detected(
    units: Iterable[Mapping[str, Any]], traces: Path, half: str | None
) -> Iterator[tuple[Mapping[str, Any], Found]]:
    """Yield the units of a half, None for all, with what the detector says.

    Other recordings stay closed. Units of recordings in another folder are left out.
    """
    policies = {name: OffloadPolicy.load(str(HERE / f"{name}.yaml")) for name in POLICIES}
    half_of = halves(traces)
    wanted: dict[str, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for unit in units:
        is_of_half = half is None or half_of.get(unit["file"]) == half
        if is_of_half and (traces / unit["file"]).is_file():
            wanted[unit["file"]][unit["session"]].append(unit)
    for file, by_session in wanted.items():
        for recording in recordings_in(traces / file):
            of_session = by_session.get(recording.name, ())
            for name in {unit["policy"] for unit in of_session}:
                session = simulated(recording, policies[name], excerpt=WHOLE)
                for unit in of_session:
                    if unit["policy"] == name:
                        yield unit, found_in(unit, session)


@dataclass(frozen=True, slots=True)
class Judging:
    """All units of a half that were judged, and how many were left out."""

    units: Sequence[Judged]
    ties: int = 0
    """Units without a majority."""
    kept: int = 0
    """Units whose item the policy does not remove any more."""
    ids: frozenset[str] = frozenset()
    """Of all units that were judged, those without a majority too."""
    by_session: Mapping[str, Sequence[Judged]] = field(default_factory=dict)


def judging(
    labels: Mapping[str, Sequence[Judgement]], found: Iterable[tuple[Mapping[str, Any], Found]]
) -> Judging:
    """Return labels and findings joined."""
    units: list[Judged] = []
    ties = kept = 0
    ids: set[str] = set()
    for unit, one in found:
        said = labels.get(unit["id"])
        if not said:
            continue
        ids.add(unit["id"])
        whole = majority(said)
        if whole is None:
            ties += 1
            continue
        if not one.is_out:
            kept += 1
            continue
        units.append(
            Judged(
                id=unit["id"],
                session=f"{unit['file']}#{unit['session']}",
                probability=unit["probability"],
                needed=whole.needed,
                kind=whole.kind if whole.needed else None,
                found=one.kinds,
                lines=tuple(j.lines for j in said if j.needed and j.lines is not None),
                found_lines=one.lines,
            )
        )
    by_session: dict[str, list[Judged]] = defaultdict(list)
    for one_unit in units:
        by_session[one_unit.session].append(one_unit)
    return Judging(units, ties, kept, frozenset(ids), by_session)


def share(
    judged: Judging,
    of: Callable[[Judged], bool],
    hit: Callable[[Judged], bool],
    *,
    weighted: bool = False,
) -> Share:
    """Return which share of the units `of` something is a `hit`, with its interval."""
    sums: dict[str, _Tally] = defaultdict(_Tally)
    count = 0
    for unit in judged.units:
        if of(unit):
            count += 1
            weight = unit.weight if weighted else 1.0
            sums[unit.session].of += weight
            sums[unit.session].hits += weight * hit(unit)
    chance = random.Random(SEED)  # noqa: S311 - no secret
    names = list(judged.by_session)
    drawn = sorted(
        value
        for _ in range(ROUNDS)
        if (value := _ratio(sums[n] for n in chance.choices(names, k=len(names)))) is not None
    )
    value = _ratio(sums.values())
    if value is None:
        return Share(float("nan"), float("nan"), float("nan"), 0)
    low, high = drawn[int(0.025 * len(drawn))], drawn[min(int(0.975 * len(drawn)), len(drawn) - 1)]
    return Share(value, low, high, count)


def _ratio(sums: Iterable[_Tally]) -> float | None:
    hits = of = 0.0
    for one in sums:
        hits, of = hits + one.hits, of + one.of
    return hits / of if of else None


def covered(judged: Judging) -> tuple[float, float, int]:
    """Return, over needs found and labelled with lines, the medians of two shares and their number.

    The first is how much of the labelled lines was found, the second how much of the found lines
    was labelled; each is the best over the labellers.
    """
    shares: list[tuple[float, float]] = []
    for unit in judged.units:
        if unit.needed and unit.found_lines and unit.lines:
            found = {n for first, last in unit.found_lines for n in range(first, last + 1)}
            labelled = [set(range(first, last + 1)) for first, last in unit.lines]
            both = max(labelled, key=lambda lines: len(lines & found) / len(lines | found))
            common = len(both & found)
            shares.append((common / len(both), common / len(found)))
    if not shares:
        return float("nan"), float("nan"), 0
    middle = len(shares) // 2
    found_part, labelled_part = (sorted(one) for one in zip(*shares, strict=True))
    return found_part[middle], labelled_part[middle], len(shares)


def report(judged: Judging, labels: Mapping[str, Sequence[Judgement]]) -> Iterator[str]:
    """Yield the lines of the report."""
    ids = judged.ids
    sessions = len(judged.by_session)
    left_out = f"left out: {judged.ties} ties, {judged.kept} no longer removed"
    yield f"units {len(judged.units)}, sessions {sessions}; {left_out}"
    found = sum(bool(unit.found) for unit in judged.units)
    yield f"needed {sum(unit.needed for unit in judged.units)}, found {found}"
    for (one, other), (value, number) in kappa(
        {id_: said for id_, said in labels.items() if id_ in ids}
    ).items():
        yield f"κ {one} and {other}: {value:.3f} over {number} units"
    for weighted in (False, True):
        name = "weighted" if weighted else "as drawn"
        precision = share(judged, lambda u: bool(u.found), lambda u: u.needed, weighted=weighted)
        recall = share(judged, lambda u: u.needed, lambda u: bool(u.found), weighted=weighted)
        yield f"precision, {name}: {precision}"
        yield f"recall, {name}: {recall}"
        for kind in ("used", "asked"):
            precision = share(judged, _found_as(kind), lambda u: u.needed, weighted=weighted)
            recall = share(judged, _labelled(kind), lambda u: bool(u.found), weighted=weighted)
            yield f"  {kind}: precision {precision}; recall {recall}"
    of_labels, of_found, number = covered(judged)
    yield (
        f"ranges of {number} needs, medians: {of_labels:.2f} of the labelled lines found,"
        f" {of_found:.2f} of the found lines labelled"
    )


def _found_as(kind: str) -> Callable[[Judged], bool]:
    """Whether the detector found a unit as this kind; what is both counts as used."""
    if kind == "used":
        return lambda unit: "used" in unit.found
    return lambda unit: unit.found == {"asked"}


def _labelled(kind: str) -> Callable[[Judged], bool]:
    return lambda unit: unit.kind == kind


def wrong(judged: Judging) -> Iterator[str]:
    """Yield each unit on which labels and detector differ."""
    for unit in judged.units:
        if unit.needed != bool(unit.found):
            found = ", ".join(sorted(unit.found)) or "nothing"
            yield f"{unit.id}: labelled {unit.kind or 'not needed'}, found {found}; {unit.session}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret.judge")
    parser.add_argument("labels", type=Path, help="a file of JSON lines, or a folder of them")
    parser.add_argument("traces", type=Path, nargs="+", help="the folders of the recordings")
    parser.add_argument("--half", choices=["development", "frozen", "later"], default="development")
    parser.add_argument("--draw", type=int, choices=sorted(DRAWS), help="only units of this draw")
    parser.add_argument("--units", help="a file of units beside this module, all of them")
    parser.add_argument("--wrong", action="store_true", help="list the units that differ")
    given = parser.parse_args(arguments)
    labels = judgements(given.labels)
    units = units_drawn(given.draw, HERE / (given.units or "units.jsonl"))
    half = None if given.units else given.half
    found = (detected(units, folder, half) for folder in given.traces)
    judged = judging(labels, chain.from_iterable(found))
    print("\n".join(report(judged, labels)))
    if given.wrong:
        print("\n".join(wrong(judged)))


if __name__ == "__main__":
    main()
