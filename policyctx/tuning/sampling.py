"""Which sessions a search sees: stratified subsets of growing size, and folds by project."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from policyctx.tuning.evaluating import TunedSession

# Sessions are small, middling or large among those of their format.
_SIZES = 3


class Fold(NamedTuple):
    """Numbers of sessions; no project is in both."""

    train: tuple[int, ...]
    test: tuple[int, ...]


def stratified(sessions: Sequence[TunedSession], *, seed: int) -> list[int]:
    """Return the numbers of the sessions so that each beginning of the list has all kinds.

    The kinds are formats, and small, middling and large sessions in each. The order within a kind
    is drawn.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    by_format: dict[str, list[TunedSession]] = defaultdict(list)
    for session in sessions:
        by_format[session.format].append(session)
    places: list[tuple[float, float, int]] = []
    for _, of_format in sorted(by_format.items()):
        ordered = sorted(of_format, key=lambda one: (one.calls, one.number))
        for size in range(_SIZES):
            bounds = (len(ordered) * i // _SIZES for i in (size, size + 1))
            kind = ordered[slice(*bounds)]
            chance.shuffle(kind)
            places += [
                ((i + 0.5) / len(kind), chance.random(), one.number) for i, one in enumerate(kind)
            ]
    return [number for *_, number in sorted(places)]


def subset(
    ordered: Sequence[int], share: float, among: Collection[int] | None = None
) -> tuple[int, ...]:
    """Return the first share of a stratified list, at least one.

    With `among`, those of the share that are among these numbers, so that the subsets of a fold
    are parts of the subsets of all: what was replayed in the ones is not replayed for the others.
    """
    found = tuple(ordered[: max(1, math.ceil(share * len(ordered)))])
    if among is None:
        return found
    wanted = [number for number in ordered if number in among]
    return tuple(number for number in found if number in among) or tuple(wanted[:1])


def folds(sessions: Sequence[TunedSession], count: int, *, seed: int) -> list[Fold]:
    """Return folds in which each project is tested once, with about as many calls in each.

    There are as many folds as projects if there are fewer of these.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    by_project: dict[str, list[TunedSession]] = defaultdict(list)
    for session in sessions:
        by_project[session.project].append(session)
    projects = [*by_project]  # by their first sessions; a name may be a path of this machine
    chance.shuffle(projects)
    calls = {name: sum(1 + one.calls for one in by_project[name]) for name in projects}
    groups: list[list[str]] = [[] for _ in range(min(count, len(projects)))]
    loads = [0] * len(groups)
    for project in sorted(projects, key=lambda name: -calls[name]):
        least = loads.index(min(loads))
        groups[least].append(project)
        loads[least] += calls[project]
    return [
        Fold(
            tuple(one.number for one in sessions if one.project not in group),
            tuple(one.number for one in sessions if one.project in group),
        )
        for group in groups
    ]
