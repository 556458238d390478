"""The commands of `policyctx store` that look: ls, cat, search, history, verify."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.output import console, json_text, table
from policyctx.cli.store import options  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.store.options import line_range, opened_stores, shown_progress
from policyctx.cli.store.showing import (
    counted,
    entry_cells,
    entry_report,
    entry_rows,
    event_report,
    moment,
)
from policyctx.errors import AmbiguousSessionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.store.filesystem import ContextFileSystem
    from policyctx.store.read import FoundLine


def ls(
    root: options.Root,
    session: options.Session = None,
    item_type: options.ItemType = None,
    tool: options.Tool = None,
    as_json: arguments.Json = False,
) -> None:
    """List what was offloaded, oldest first.

    Example: policyctx store ls ~/.agent/context/session_20260101_120000_abc123
    """
    with opened_stores(root, session=session) as stores:
        rows = [row for row in entry_rows(stores) if row[1].is_of(item_type, tool)]
    out = console()
    if as_json:
        found = [
            {**entry_report(e, stores[name], name), "state": state or None}
            for name, e, state in rows
        ]
        out.out(json_text(found), highlight=False)
        return
    columns = ("item", "type", "tool", "tokens", "chars", "saved (UTC)", "state", "path")
    shared = list(stores) != [""]
    cells = ((*([n] if shared else []), *entry_cells(e, state)) for n, e, state in rows)
    if rows:
        names = (*(["session"] if shared else []), *columns)
        out.print(table(names, cells, numeric={"tokens", "chars"}))
    out.print(
        f"{counted(len(rows), 'content')} in {next(iter(stores.values())).root}", soft_wrap=True
    )


def cat(
    root: options.Root,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="An item id, a tool-use id, or a path.")
    ],
    lines: Annotated[str | None, typer.Option(help="Only these: 10-20, 10 or 10-.")] = None,
    session: options.Session = None,
    as_json: arguments.Json = False,
) -> None:
    """Print an offloaded text exactly as it was, checked by its hash.

    Example: policyctx store cat .offload toolu_01 --lines 1-40
    """
    wanted = line_range(lines)
    with opened_stores(root, session=session) as stores:
        name, store = _holder(stores, key)
        text, entry = store.read(key, lines=wanted), store.find(key)
    if as_json:
        known = entry_report(entry, store, name) if entry else {"path": key}
        console().out(json_text({**known, "text": text}), highlight=False)
        return
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def search(
    root: options.Root,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, as it is.")],
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Take capitals for small letters.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many lines.")] = None,
    session: options.Session = None,
    item_type: options.ItemType = None,
    tool: options.Tool = None,
    as_json: arguments.Json = False,
) -> None:
    """Find the lines of offloaded texts that hold a text.

    Example: policyctx store search .offload "Traceback" --tool Bash
    """
    with opened_stores(root, session=session) as stores:
        found = (
            (name, match)
            for name, store in stores.items()
            for match in store.search(text, ignore_case=ignore_case, item_type=item_type, tool=tool)
        )
        _show_matches(islice(found, limit), stores, as_json=as_json)


def _show_matches(
    some: Iterable[tuple[str, FoundLine]], stores: dict[str, ContextFileSystem], *, as_json: bool
) -> None:
    out = console()
    if as_json:
        report = [_match_report(match, stores[name], name) for name, match in some]
        out.out(json_text(report), highlight=False)
        return
    number = 0
    for name, match in some:
        number += 1
        where = f"{stores[name].root}/{match.entry.path}:{match.line}"
        out.print(f"{where}: {match.text}", soft_wrap=True)
    if not number:
        console(stderr=True).print("nothing found")


def history(
    root: options.Root, session: options.Session = None, as_json: arguments.Json = False
) -> None:
    """Show what was saved, packed and removed, in the order in which it happened.

    Example: policyctx store history .offload
    """
    with opened_stores(root, session=session) as stores:
        events = [(name, event) for name, store in stores.items() for event in store.history()]
    out = console()
    if as_json:
        out.out(json_text([event_report(event, name) for name, event in events]), highlight=False)
        return
    shared = list(stores) != [""]
    rows = (
        (
            *([name] if shared else []),
            *(moment(e.time), f"{e.what} by {e.why}" if e.why else e.what, e.item_id or "", e.path),
        )
        for name, e in events
    )
    names = (*(["session"] if shared else []), "when (UTC)", "what", "item", "path")
    out.print(table(names, rows, numeric=set()))


def verify(
    root: options.Root, session: options.Session = None, as_json: arguments.Json = False
) -> None:
    """Read every offloaded text and compare it with its hash.

    Exits with 1 when any is not what was saved, and names each.

    Example: policyctx store verify .offload
    """
    checked, harmed = 0, []
    with opened_stores(root, session=session) as stores:
        for name, store in stores.items():
            with shown_progress("reading") as progress:
                done = store.verify(progress=progress)
            checked += done.checked
            harmed += [(entry_report(h.entry, store, name), h.kind, h.reason) for h in done.harmed]
    out = console()
    if as_json:
        report = [{**known, "harm": kind, "reason": reason} for known, kind, reason in harmed]
        out.out(json_text({"checked": checked, "harmed": report}), highlight=False)
    else:
        for known, kind, reason in harmed:
            out.print(f"{known['path']}: {kind}: {reason}", soft_wrap=True)
        verdict = f"{len(harmed)} harmed" if harmed else "each what was saved"
        out.print(f"{counted(checked, 'content')} read, {verdict}")
    if harmed:
        raise typer.Exit(1)


def _holder(stores: dict[str, ContextFileSystem], key: str) -> tuple[str, ContextFileSystem]:
    """Return the session whose index knows the key; the first, where none does.

    Raises `AmbiguousSessionError` when the key means another content in each of several sessions.
    """
    found = {name: entry for name, store in stores.items() if (entry := store.find(key))}
    if len({entry.path for entry in found.values()}) > 1:
        root = next(iter(stores.values())).root
        raise AmbiguousSessionError(key, sorted(found), path=str(root))
    name = next(iter(found), next(iter(stores)))
    return name, stores[name]


def _match_report(match: FoundLine, store: ContextFileSystem, session: str) -> dict[str, object]:
    return {
        "path": f"{store.root}/{match.entry.path}",
        "item_id": match.entry.item_id,
        "line": match.line,
        "text": match.text,
        "session": session,
    }
