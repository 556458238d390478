"""What `policyctx store gc` shows: of one store a line for each file, of many a table."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from policyctx.cli.output import console, json_text, table
from policyctx.cli.store.showing import bytes_shown, collection_report, counted
from policyctx.store.retain import CollectionReport
from policyctx.store.retention import StoreCollection
from policyctx.store.roots import store_root

_COLUMNS = ("store", "contents", "size", "removed", "compressed", "size after")


def did(verb: str, done: CollectionReport) -> str:
    """Return `removed`, and `would remove` of a dry run."""
    return f"would {verb}" if done.is_dry_run else f"{verb}{'d' if verb[-1] == 'e' else 'ed'}"


def collection_summary(reports: Sequence[CollectionReport], *, dry_run: bool) -> str:
    """Return what collections did together, in a line."""
    would = "would remove {} and compress {}" if dry_run else "removed {}, compressed {}"
    removed = sum(len(done.removed) for done in reports)
    packed = sum(len(done.packed) for done in reports)
    before = sum(done.size_before for done in reports)
    after = sum(done.size_after for done in reports)
    what = would.format(counted(removed, "content"), f"{packed:,}")
    return f"{what}: {bytes_shown(before)} → {bytes_shown(after)}"


def show_collections(
    every: Sequence[StoreCollection], root: str, *, as_json: bool, dry_run: bool
) -> None:
    """Print what was done in each store: a row for each in which something was, then the sum.

    Ends the command with 1 where a store could not be collected.
    """
    out = console()
    reports = [one.report for one in every if one.report is not None]
    failed = [one for one in every if one.report is None]
    if as_json:
        report = {
            "dry_run": dry_run,
            "stores": [_report(one) for one in every],
            "removed": sum(len(done.removed) for done in reports),
            "packed": sum(len(done.packed) for done in reports),
            "bytes_before": sum(done.size_before for done in reports),
            "bytes_after": sum(done.size_after for done in reports),
        }
        out.out(json_text(report), highlight=False)
    else:
        rows = [
            _cells(one, one.report, root)
            for one in every
            if one.report is not None and (one.report.removed or one.report.packed)
        ]
        if rows:
            out.print(table(_COLUMNS, rows, numeric=set(_COLUMNS[1:]), whole={"store"}))
        of = f" in {counted(len(every), 'store')}"
        out.print(f"{collection_summary(reports, dry_run=dry_run)}{of}")
        for one in failed:
            console(stderr=True).print(f"skipped {one.root}: {one.error}", soft_wrap=True)
    if failed:
        raise typer.Exit(1)


def _cells(one: StoreCollection, done: CollectionReport, root: str) -> tuple[object, ...]:
    below = one.root.removeprefix(f"{store_root(root)}/")
    return (
        below,
        f"{done.contents_before:,}",
        bytes_shown(done.size_before),
        f"{len(done.removed):,}",
        f"{len(done.packed):,}",
        bytes_shown(done.size_after),
    )


def _report(one: StoreCollection) -> dict[str, object]:
    known: dict[str, object] = {"root": one.root, "sessions": [*one.sessions]}
    if one.report is None:
        return {**known, "error": one.error}
    known["contents_before"] = one.report.contents_before
    return {**known, **collection_report(one.report)}
