"""Retention over every store below a root: one folder or prefix for each session, as a rule.

Age is a matter of each store alone. Size and number count over all of them, so the contents of all
are looked at first, and then each store removes what was picked of it. A store is collected by its
own rules: nothing that a live placeholder names is ever picked, and each store looks again, with
its locks held, before it removes anything.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from policyctx.errors import StoreError
from policyctx.store import collector
from policyctx.store.backend import Progress, StoreUrl, store_root
from policyctx.store.content import STATE_FOLDER
from policyctx.store.filesystem import TIMEOUT_S, ContextFileSystem, silently
from policyctx.store.index import CollectionReport, StoredFile
from policyctx.store.opening import Stores, stores_in
from policyctx.store.remote.backend import RemoteBackend

# Opens the store of each session in a root.
_Opened: TypeAlias = Callable[[str], Stores]


@dataclass(frozen=True, slots=True)
class StoreCollection:
    """What the collection did in one store, or why it left the store alone."""

    root: str
    sessions: tuple[str, ...]
    """Their ids; "" for the session that owns the root."""
    report: CollectionReport | None
    """None after an error."""
    error: str = ""


def collect_below(
    root: str | os.PathLike[str],
    limits: collector.RetentionLimits,
    *,
    idle: float | None = None,
    ended: bool = False,
    compress: Literal["none", "zstd"] = "zstd",
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
    progress: Progress = silently,
) -> Iterator[StoreCollection]:
    """Collect in every store at and below a root, and yield what was done in each.

    The limits hold for all stores together; the rules of `ContextFileSystem.collect` hold in each.
    After an error in one store the others are collected all the same. `progress` is called with the
    number of stores done and the total. Raises `StoreError` where there is no store.
    """
    places = store_places(root)
    if not places:
        raise StoreError(f"{root} holds no store, and nothing below it does", path=str(root))
    terms = collector.Terms(limits, packs=False, ended=ended, idle=idle)
    opened = partial(stores_in, compress=compress, clock=clock)
    picked = _picked(places, terms, opened, clock()) if limits.are_shared else None
    for done, place in enumerate(places):
        progress(done, len(places))
        paths = None if picked is None else picked.get(place, {})
        yield _collected(place, terms, opened, paths, dry_run=dry_run)
    progress(len(places), len(places))


def store_places(root: str | os.PathLike[str]) -> list[str]:
    """Return the folder, or the URL, of each store at and below a root, in order.

    A store's own folder is not searched for others, and links are not followed.
    """
    place = store_root(root)
    if isinstance(place, StoreUrl):
        try:
            found = [*RemoteBackend(place, timeout=TIMEOUT_S).stores()]
        except OSError as error:
            reason = error.strerror or error
            raise StoreError(f"{place} cannot be read: {reason}", path=str(place)) from error
        return [f"{place}/{prefix}" if prefix else str(place) for prefix in found]
    places = []
    for folder, below, _ in os.walk(place):
        below.sort()
        if STATE_FOLDER in below and ContextFileSystem.sessions(folder):
            below.clear()
            places.append(folder)
    return places


def _picked(
    places: list[str], terms: collector.Terms, opened: _Opened, now: float
) -> dict[str, dict[str, str]]:
    """Return the paths to remove in each store, each with its rule, by what is in all of them."""
    every: list[StoredFile] = []
    where: dict[str, tuple[str, str]] = {}
    for place in places:
        try:
            store = next(iter(opened(place).values()))
            files = store.stored_files(idle=terms.idle, ended=terms.ended)
        except StoreError:
            continue  # reported when its turn comes
        for file in files:
            path = f"{store.root}/{file.path}"
            where[path] = place, file.path
            # There may be very many of them, so what their items were is left out.
            entries = (entry._replace(origin=None, hollow=None) for entry in file.entries)
            every.append(file._replace(path=path, entries=tuple(entries)))
    every.sort(key=lambda file: file.saved_at)
    plan = collector.chosen(every, now, terms)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for file, why in plan.removed:
        place, path = where[file.path]
        found[place][path] = why
    return found


def _collected(
    place: str,
    terms: collector.Terms,
    opened: _Opened,
    picked: Mapping[str, str] | None,
    *,
    dry_run: bool,
) -> StoreCollection:
    sessions: tuple[str, ...] = ()
    try:
        stores = opened(place)
        sessions = tuple(stores)
        report = next(iter(stores.values())).collect(
            max_age=terms.limits.max_age,
            idle=terms.idle,
            ended=terms.ended,
            picked=picked,
            dry_run=dry_run,
        )
        if not dry_run:
            for store in stores.values():
                store.close()
    except StoreError as error:
        return StoreCollection(place, sessions, None, str(error))
    return StoreCollection(place, sessions, report)
