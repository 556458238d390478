"""What the best edits of recorded sessions save: the ruler that a policy is held against.

    python -m benchmarks.oracle [--policy NAME] … [FOLDER] …

A line for each client and for each organisation: dollars without a policy, saved by each policy,
and saved by the oracle. FOLDERs hold recordings and may have a `MANIFEST.tsv`, whose columns `file`
and `source_repo` name the organisations.

The oracle knows the prices, when each item is needed again, and the last call. It lets a result of
a tool, or the input of a call, leave at any call after the reply to it, once, for the placeholder
of `coding-agent`, and pays for what a later reply needs of it as a replay charges it. An edit costs
what a cache with a breakpoint at every block would bill: what was cached behind the first change is
written instead of read.

The edits are found by dynamic programming over the call of the last edit. An item that an edit
leaves in the list can leave later only where the cache holds nothing behind it. So the figure is
one that can be reached, and no bound: a local search over all sets of edits saved 0.3 points more.
It has no summaries, and keeps the client's breakpoints. Needs are found twice: first with all items
out, which overstates them, since two items that hold one text are both missed; then with those that
leave.

`--hide` adds columns with less knowledge of the future. In them an edit is made as soon as
it pays, from the item on from which it pays best. `knows all` still knows the end and the needs.
`no end` takes as many calls to come as there were so far, `no needs` takes nothing to be needed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rich.console import Console
from rich.table import Table

from benchmarks.presets import FOLDERS, client_of, repositories
from policyctx.errors import present
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Facts
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.replay.common import Common
from policyctx.replay.cost import BilledCall, billed_calls, scales_of
from policyctx.replay.places import files
from policyctx.replay.recording import Recording
from policyctx.replay.regret.needs import Lost
from policyctx.replay.running import worked
from policyctx.replay.simulated import Need, Regret, Removal
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import ReReads
from policyctx.replay.timeline import SessionPart
from policyctx.tuning.outcomes import SessionOutcome, outcome_of, sums

_MILLION = 1_000_000

# All leaves after the reply to it: what is needed later is then seen.
_ALL_OUT = """\
apiVersion: policyctx/v1
name: all-out
extends: coding-agent
items: {tool_call: {offload: true}}
steps:
  - name: retire-old-results
    do: offload
    when: {tokens: {at_least: 0}}
    select: {types: [tool_result, tool_call], keep_recent: {messages: 1}, min_tokens: 20}
  - {name: make-it-fit, remove: true}
  - {name: summarise, remove: true}
"""


class Rates(NamedTuple):
    """What a token of one call's prompt costs, in $, and how many tokens its cache holds."""

    read: float
    write: float
    cached: int

    @property
    def anew(self) -> float:
        """What it costs more to write a token than to read it."""
        return self.write - self.read

    def of(self, offset: float) -> float:
        """Return what the token at an offset costs."""
        return self.read if offset < self.cached else self.write


class Leaving(NamedTuple):
    """What is saved if an item leaves at a call, in $, and the call; None if it stays."""

    saved: float
    call: int | None


@dataclass(frozen=True, slots=True)
class Removable:
    """An item that may leave; calls are indices from 0 on, tokens are the provider's."""

    position: int
    first: int
    """The first call that may be made without it."""
    offset: float
    """Tokens before it."""
    freed: float
    saved: Sequence[float]
    """The $ that are saved if it is out from each call on, the first one first."""

    def at(self, call: int, rates: Sequence[Rates]) -> Leaving:
        """Return what is saved by an edit of a call that takes it."""
        one = rates[call]
        unwritten = self.freed * one.anew if self.offset < one.cached else 0.0
        return Leaving(self.saved[call - self.first] + unwritten, call)

    def alone(self, rates: Sequence[Rates]) -> list[Leaving]:
        """Return for each call from the first on how it leaves best without an edit.

        Nothing is written anew where the cache holds nothing behind it.
        """
        found = [Leaving(0.0, None)]
        for i in reversed(range(len(self.saved))):
            is_free = self.offset >= rates[self.first + i].cached
            now = Leaving(self.saved[i], self.first + i) if is_free else found[-1]
            found.append(max(found[-1], now, key=lambda one: one.saved))
        return found[:0:-1]


class Edit(NamedTuple):
    """The best that may have been done until an edit of a call."""

    saved: float
    """In $, what leaves later without an edit included."""
    before: int
    """The call of the edit before it."""
    cut: float
    """The first token that it changes; infinity where it changes nothing that is cached."""


def best_edits(
    items: Sequence[Removable], rates: Sequence[Rates], calls: range
) -> tuple[float, dict[int, int]]:
    """Return the $ that the best edits save, and the call at which each item leaves."""
    new: defaultdict[int, list[tuple[Removable, list[Leaving]]]] = defaultdict(list)
    for item in sorted(items, key=lambda one: -one.offset):
        new[item.first].append((item, item.alone(rates)))
    start = calls.start - 1
    edits = {start: Edit(0.0, start, math.inf)}
    for call in calls:
        edits[call] = max(_edits(call, start, edits, new, rates), key=lambda one: one.saved)
    behind = 0.0
    found = Edit(-math.inf, start, math.inf)
    for call in range(calls.stop - 1, start - 1, -1):
        found = max(found, Edit(edits[call].saved + behind, call, 0), key=lambda one: one.saved)
        behind += sum(alone[0].saved for _, alone in new[call])
    leaves: dict[int, int | None] = {}
    call, end = found.before, calls.stop
    for first in range(call + 1, end):
        leaves |= {item.position: alone[0].call for item, alone in new[first]}
    while call > start:
        before, cut = edits[call].before, edits[call].cut
        for item, alone in (one for first in range(before + 1, call + 1) for one in new[first]):
            kept, taken = alone[call - item.first], item.at(call, rates)
            is_taken = item.offset >= cut and taken.saved > kept.saved
            leaves[item.position] = taken.call if is_taken else kept.call
        call = before
    return found.saved, {position: call for position, call in leaves.items() if call is not None}


def _edits(
    call: int,
    start: int,
    edits: Mapping[int, Edit],
    new: Mapping[int, Sequence[tuple[Removable, list[Leaving]]]],
    rates: Sequence[Rates],
) -> Iterator[Edit]:
    """Yield the best edit of a call after each earlier one: it takes what is newer than that."""
    kept, taken, best, cut = 0.0, 0.0, 0.0, math.inf
    for before in range(call, start - 1, -1):
        if before < call:
            yield Edit(edits[before].saved + kept + best, before, cut)
        for item, alone in new.get(before, ()):
            stays = alone[call - item.first].saved
            kept += stays
            taken += max(0.0, item.at(call, rates).saved - stays)
            rewritten = max(0.0, rates[call].cached - item.offset) * rates[call].anew
            if taken - rewritten > best:
                best, cut = taken - rewritten, item.offset


def paying_edits(
    items: Sequence[Removable], rates: Sequence[Rates], calls: range, *, knows_end: bool
) -> tuple[float, dict[int, int]]:
    """Return the $ that edits save if each is made as soon as it pays, and when each item leaves.

    Without the end, as many calls are expected to come as there were so far.
    """
    total, leaves = 0.0, dict[int, int]()
    since = calls.start
    for call in calls:
        there = [one for one in items if since <= one.first <= call]
        best, chosen = 0.0, list[Removable]()
        gained, taken = 0.0, list[Removable]()
        for item in sorted(there, key=lambda one: -one.offset):
            gain = item.at(call, rates).saved
            if not knows_end:
                gain += item.freed * rates[call].read * (2 * call + 1 - calls.start - calls.stop)
            if gain > 0:
                gained += gain
                taken.append(item)
                rewritten = max(0.0, rates[call].cached - item.offset) * rates[call].anew
                if gained - rewritten > best:
                    best, chosen = gained - rewritten, [*taken]
        if chosen:
            cut = chosen[-1].offset
            total -= max(0.0, rates[call].cached - cut) * rates[call].anew
            total += sum(item.at(call, rates).saved for item in chosen)
            leaves |= {item.position: call for item in chosen}
            since = call + 1
    return total, leaves


HIDDEN = {
    "knows all": {"knows_end": True, "knows_needs": True},
    "no end": {"knows_end": False, "knows_needs": True},
    "no needs": {"knows_end": True, "knows_needs": False},
    "neither": {"knows_end": False, "knows_needs": False},
}


class _Parts(Common):
    """Keeps the parts of a session, in which needs can be found again."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.parts: list[tuple[SessionPart, Facts]] = []

    def needs(self, part: SessionPart, facts: Facts) -> Mapping[Lost, Sequence[Need]]:
        self.parts.append((part, facts))
        return super().needs(part, facts)


Edits: TypeAlias = Callable[
    [Sequence[Removable], Sequence[Rates], range], tuple[float, dict[int, int]]
]


class Oracle:
    """The best edits of one session, whose calls have prices."""

    def __init__(self, recording: Recording) -> None:
        common = _Parts(recording)
        policy = OffloadPolicy(parsed_policy(PolicySource("all-out", _ALL_OUT)))
        self._session = simulated(recording, policy, layouts=(), common=common)
        self._parts, self._common = [*common.parts], common
        billed = billed_calls(self._session, known=common.unedited)
        # The oracle's prompts are smaller than the recorded ones, so a re-read costs no more.
        self._billed = [call._replace(edited=call.unedited) for call in billed]
        self._scales = scales_of(self._session.calls)
        factors = [scale.factor for scale in self._scales]
        self._reads = ReReads(self._session, self._billed, factors, is_priced=True)
        self._rates = [_rates(call) for call in self._billed]

    def saved(self) -> float:
        """Return the $ that the best edits save."""
        parts = range(len(self._parts))
        return sum(max(0.0, self._saved(number, best_edits)) for number in parts)

    def saved_hiding(self, *, knows_end: bool, knows_needs: bool) -> float:
        """Return the $ that edits save which do not know all of the future."""
        edits = partial(paying_edits, knows_end=knows_end)
        parts = range(len(self._parts))
        return sum(self._saved(number, edits, knows_needs=knows_needs) for number in parts)

    def _saved(self, number: int, edits: Edits, *, knows_needs: bool = True) -> float:
        part, facts = self._parts[number]
        calls = range(part.first_call - 1, part.last_call)
        regrets = {
            r.removal.position: (r,) for r in self._session.regrets if r.removal.part == number
        }
        removals = {r.position: r for r in self._session.removals if r.part == number}
        sizes = facts.tokens_of(part.items)
        outer = (0 if i.inside is not None else n for i, n in zip(part.items, sizes, strict=True))
        before = list(accumulate(outer, initial=facts.tokens_beside))
        items = []
        for position, removal in removals.items():
            first = removal.call - 1
            if first in calls and part.items[position].inside is None:
                scale = self._scales[first]
                offset, freed = scale(before[position]), scale.factor * removal.freed
                charges = self._charges(*regrets.get(position, ())) if knows_needs else []
                saved = list(_saved(offset, freed, self._rates, range(first, calls.stop), charges))
                items.append(Removable(position, first, offset, freed, saved))
        best, leaves = edits(items, self._rates, calls)
        if not leaves:
            return 0.0
        # What was charged because all was out is given back, and what is needed now is charged.
        charged = sum(
            charge
            for position, call in leaves.items()
            for at, charge in self._charges(*regrets.get(position, ()))
            if at >= call and knows_needs
        )
        return best + charged - self._needed(number, leaves, removals)

    def _needed(
        self, number: int, leaves: Mapping[int, int], removals: Mapping[int, Removal]
    ) -> float:
        """Return the $ of what is needed when items leave at these calls."""
        part, facts = self._parts[number]
        absences = {
            position: [replace(part.absences[position][0], since=call + 1)]
            for position, call in leaves.items()
        }
        found = Common.needs(self._common, replace(part, absences=absences), facts)
        regrets = [Regret(removals[lost.position], tuple(needs)) for lost, needs in found.items()]
        return sum(charge for _, charge in self._charges(*regrets))

    def _charges(self, *regrets: Regret) -> list[tuple[int, float]]:
        """Return the calls whose replies need something, and the $ that it costs each time."""
        return [(call - 1, one.dollars.total) for call, one in self._reads.charges(regrets)]


def _saved(
    offset: float,
    freed: float,
    rates: Sequence[Rates],
    calls: range,
    charges: Sequence[tuple[int, float]],
) -> Iterator[float]:
    """Yield the $ saved by an item that is out from each call on until the last of its list."""
    prices = [freed * rates[call].of(offset) for call in calls]
    for at, charge in charges:
        if at in calls:
            prices[at - calls.start] -= charge
    yield from list(accumulate(reversed(prices)))[::-1]


def _rates(billed: BilledCall) -> Rates:
    terms = billed.call.terms
    prices = present(terms.prices).rates(billed.unedited)
    if terms.cache is None:
        return Rates(prices.input / _MILLION, prices.input / _MILLION, 0)
    write = prices.write(terms.ttl) if terms.cache.bills_writes else prices.input
    return Rates(prices.read / _MILLION, write / _MILLION, billed.costs.unedited.cache_read)


class Found(NamedTuple):
    """One session with prices."""

    path: str
    client: str
    without: float
    oracle: float
    hiding: tuple[float, ...]
    """What is saved with each of `HIDDEN`, in their order; empty without `--hide`."""
    outcomes: tuple[SessionOutcome, ...]
    """Under each policy, in their order."""


def found_in(
    recording: Recording, path: str, policies: Sequence[str], *, hide: bool = False
) -> Found | None:
    """Return the figures of a recording; None for one without calls or without prices."""
    if not recording.calls:
        return None
    common = Common(recording)
    loaded = map(OffloadPolicy.load, policies)
    outcomes = [outcome_of(recording, policy, common=common) for policy in loaded]
    known = tuple(one for one in outcomes if isinstance(one, SessionOutcome))
    if not known:
        return None
    oracle = Oracle(recording)
    hiding = tuple(oracle.saved_hiding(**known) for known in HIDDEN.values()) if hide else ()
    client = client_of(recording)
    return Found(path, client, known[0].without, oracle.saved(), hiding, known)


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oracle", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS, metavar="FOLDER")
    parser.add_argument("--policy", action="append", metavar="NAME", help="coding-agent by default")
    parser.add_argument("--hide", action="store_true", help="add columns that know less")
    given = parser.parse_args(arguments)
    policies = given.policy or ["coding-agent"]
    owners = {k: v for folder in given.folders for k, v in repositories(folder).items()}
    work = partial(found_in, policies=policies, hide=given.hide)
    found = [one for one in worked(files(given.folders), work) if isinstance(one, Found)]
    groups: defaultdict[str, list[Found]] = defaultdict(list)
    for one in found:
        for name in ("all", one.client, owners.get(one.path, "unknown").partition("/")[0]):
            groups[name].append(one)
    hidden = HIDDEN if given.hide else ()
    table = Table("sessions of", "sessions", "without, $", *policies, *hidden, "oracle", box=None)
    for name, group in sorted(groups.items(), key=lambda pair: -sum(o.without for o in pair[1])):
        table.add_row(name, *_cells(group, len(policies)))
    Console(width=140).print(table)
    return 0


def _cells(group: Sequence[Found], policies: int) -> Iterator[str]:
    without, oracle = (math.fsum(getattr(o, key) for o in group) for key in ("without", "oracle"))
    yield f"{len(group)}"
    yield f"{without:.2f}"
    for number in range(policies):
        total = sums(one.outcomes[number] for one in group)
        yield f"{total.saved:.1%}, {total.dearer} dearer"
    for saved in map(math.fsum, zip(*(one.hiding for one in group), strict=True)):
        yield f"{saved / without if without else 0:.1%}"
    yield f"{oracle / without if without else 0:.1%}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
