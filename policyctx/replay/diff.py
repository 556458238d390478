"""Two policies over the same recordings: which items have another fate, and both reasons."""

from collections.abc import Iterator
from dataclasses import dataclass

from policyctx.definitions.actions import Action
from policyctx.planning.plan import Plan
from policyctx.replay.common import Common
from policyctx.replay.recording import RecordedItems, Recording
from policyctx.replay.running import LoadedPolicy, compiled
from policyctx.replay.simulated import Removal, SimulatedSession
from policyctx.replay.simulation import Walk, walked
from policyctx.replay.summing import figures_of, summed
from policyctx.replay.terms import PricesOf


@dataclass(frozen=True, slots=True)
class ItemFate:
    """What became of an item in the end, under one policy."""

    action: Action
    step: str
    """The step that decided; of what stayed, the last that might have taken it, or empty."""
    reason: str
    call: int | None = None
    """Before which call it left; None for what stayed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An item that one policy treats otherwise than the other."""

    session: str
    path: str
    part: int
    position: int
    message: int
    item_id: str
    item_type: str
    tool: str | None
    tokens: int
    """As the first policy counts them."""
    first: ItemFate
    second: ItemFate


@dataclass(frozen=True, slots=True)
class Compared:
    """One recording under two policies."""

    first: SimulatedSession
    second: SimulatedSession
    differences: tuple[Difference, ...]
    """The largest items first."""


def compared(
    policies: tuple[LoadedPolicy, LoadedPolicy],
    recording: Recording,
    path: str,
    *,
    prices: PricesOf = "recorded",
) -> Compared:
    """Replay one recording of the file at `path` under two policies.

    Raises as `simulated` does.
    """
    common = Common(recording)
    first, second = (
        walked(recording, compiled(policy), path=path, prices=prices, common=common)
        for policy in policies
    )
    found = sorted(_differences(first, second), key=lambda one: -one.tokens)
    one, other = (
        summed(session, figures_of(session, unedited=common.unedited))
        for session in (first.session, second.session)
    )
    return Compared(one, other, tuple(found))


def _differences(first: Walk, second: Walk) -> Iterator[Difference]:
    gone, gone_too = _last(first.session), _last(second.session)
    fates = _Fates(first, gone), _Fates(second, gone_too)
    for place in sorted(gone.keys() | gone_too.keys()):
        one, other = gone.get(place), gone_too.get(place)
        if one is not None and other is not None and one.action == other.action:
            continue
        part, position = place
        item = first.recorded[part].items(first.plans[part].conversation)[position]
        yield Difference(
            session=first.session.name,
            path=first.session.path,
            part=part,
            position=position,
            message=item.message,
            item_id=item.item_id,
            item_type=item.type,
            tool=item.tool,
            tokens=first.plans[part].facts.tokens(item),
            first=fates[0].of(place),
            second=fates[1].of(place),
        )


def _last(session: SimulatedSession) -> dict[tuple[int, int], Removal]:
    """Return the last removal of each item by its part and its position there."""
    return {(removal.part, removal.position): removal for removal in session.removals}


class _Fates:
    """What became of the items of one walk."""

    def __init__(self, walk: Walk, gone: dict[tuple[int, int], Removal]) -> None:
        self._walk, self._gone = walk, gone
        self._kept: dict[int, dict[int, ItemFate]] = {}

    def of(self, place: tuple[int, int]) -> ItemFate:
        if (removal := self._gone.get(place)) is not None:
            return ItemFate(removal.action, removal.step, removal.reason, removal.call)
        part, position = place
        if part not in self._kept:
            self._kept[part] = dict(_kept(self._walk.plans[part], self._walk.recorded[part]))
        untouched = ItemFate(Action.KEEP, "", "no step selects it")
        return self._kept[part].get(position, untouched)


def _kept(plan: Plan, recorded: RecordedItems) -> Iterator[tuple[int, ItemFate]]:
    """Yield what stayed by a step's word, as it stood before the last call."""
    for decision in plan.decisions:
        position = recorded.position(plan.conversation, decision.position)
        if position is not None:
            yield position, ItemFate(decision.action, decision.step, decision.reason.sentence)
