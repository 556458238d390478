"""Two policies over the same recordings: which items have another fate, and both reasons."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from policyctx.definitions.actions import Action
from policyctx.replay.common import Common
from policyctx.replay.recording import Recording
from policyctx.replay.running import LoadedPolicy, compiled
from policyctx.replay.simulated import Removal, SeenItem, SimulatedSession
from policyctx.replay.simulation import simulated
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
    """Replay a recording of the file at `path` under two policies. Raises as `simulated` does."""
    common = Common(recording)
    first, second = (
        simulated(recording, compiled(policy), path=path, excerpt=0, prices=prices, common=common)
        for policy in policies
    )
    found = sorted(_differences(first, second), key=lambda one: -one.tokens)
    one, other = (
        summed(replace(session, items=()), figures_of(session, unedited=common.unedited))
        for session in (first, second)
    )
    return Compared(one, other, tuple(found))


def _differences(first: SimulatedSession, second: SimulatedSession) -> Iterator[Difference]:
    gone, gone_too = _last(first), _last(second)
    for item, same in zip(first.items, second.items, strict=True):
        place = item.part, item.position
        one, other = _fate(item, gone.get(place)), _fate(same, gone_too.get(place))
        if one.action == other.action:
            continue
        yield Difference(
            session=first.name,
            path=first.path,
            part=item.part,
            position=item.position,
            message=item.message,
            item_id=item.item_id,
            item_type=item.item_type,
            tool=item.tool,
            tokens=item.tokens,
            first=one,
            second=other,
        )


def _last(session: SimulatedSession) -> dict[tuple[int, int], Removal]:
    """Return the last removal of each item by its part and its position there."""
    return {(removal.part, removal.position): removal for removal in session.removals}


def _fate(item: SeenItem, removal: Removal | None) -> ItemFate:
    if removal is not None:
        return ItemFate(removal.action, removal.step, removal.reason, removal.call)
    if item.kept is not None:
        return ItemFate(Action.KEEP, item.kept.step, item.kept.reason)
    return ItemFate(Action.KEEP, "", "no step selects it")
