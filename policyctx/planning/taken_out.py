"""What earlier turns dropped from a list that comes again without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from policyctx.definitions.items import Message
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.planning.ledger import Identities, ItemKey, Ledger


def taken_out(
    messages: Sequence[Message],
    ledger: Ledger,
    summarised: frozenset[ItemKey] = frozenset(),
    shapes: Shapes = BUILT_IN,
) -> frozenset[ItemKey]:
    """Return the keys of the dropped items that are missing from an unknown list.

    A dropped item is missing when the list has fewer equal ones than the list that it was dropped
    from. Where it has as many, they may have been said since. A call or result with an id was not;
    words were when something that was dropped later is missing, and more is missing than is there.
    What was `summarised` is in no list and tells nothing.
    """
    entries = ledger.entries.values()
    dropped = [e for e in entries if e.action.leaves_nothing and e.key not in summarised]
    if not dropped:
        return frozenset()
    items = list(map(ledger.as_decided, items_of(messages, shapes)))
    identities = Identities(items, ledger)
    known = (i for i, item in enumerate(items) if ledger.may_know(item) or ledger.rendered(item))
    present = Counter(key[:3] for key in summarised)
    present.update(identities.key(i)[:3] for i in known)
    missing = {entry.key for entry in dropped if present[entry.key[:3]] < entry.alike}
    said_since: list[ItemKey] = []
    unsure: list[ItemKey] = []
    for entry in dropped:
        if entry.key in missing:
            said_since += unsure
            unsure.clear()
        elif entry.key.tool_use_id is None:
            unsure.append(entry.key)
        else:
            break
    return frozenset(missing.union(said_since if len(said_since) <= len(missing) else ()))
