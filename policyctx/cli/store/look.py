"""Commands of `policyctx store` that look: ls, cat, search, history, verify, restore-archive."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from policyctx.cli import arguments
from policyctx.cli.output import console, json_text
from policyctx.cli.store import showing
from policyctx.cli.store.showing import (
    RowLayout,
    counted,
    entry_cells,
    entry_report,
    entry_rows,
    event_cells,
    event_report,
    line_range,
    opened_stores,
    print_by_session,
    shown_progress,
)
from policyctx.compaction.assembly import ITEM_TYPE, messages_text
from policyctx.errors import AmbiguousSessionError, UnknownArchiveError
from policyctx.policy.diagnosing import nearest
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.index import IndexEntry
from policyctx.store.read import FoundLine

_ENTRIES = RowLayout(
    ("item", "type", "tool", "tokens", "chars", "saved (UTC)", "state", "path"),
    narrower=(
        ("item", "tool", "tokens", "state", "path"),
        ("item", "tokens", "state", "path"),
    ),
    numeric=frozenset({"tokens", "chars"}),
    shortened=(("item", 12),),
)
_EVENTS = RowLayout(
    ("when (UTC)", "what", "item", "path"), narrower=(("when (UTC)", "what", "path"),)
)


def ls(
    root: showing.Root,
    session: showing.Session = None,
    item_type: showing.ItemType = None,
    tool: showing.Tool = None,
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
    if rows:
        print_by_session(out, [(n, entry_cells(e, state)) for n, e, state in rows], _ENTRIES)
    out.print(
        f"{counted(len(rows), 'content')} in {next(iter(stores.values())).root}", soft_wrap=True
    )


def cat(
    root: showing.Root,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="An item id, a tool-use id, or a path.")
    ],
    lines: Annotated[str | None, typer.Option(help="Only these: 10-20, 10 or 10-.")] = None,
    session: showing.Session = None,
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
    root: showing.Root,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, as it is.")],
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Take capitals for small letters.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many lines.")] = None,
    session: showing.Session = None,
    item_type: showing.ItemType = None,
    tool: showing.Tool = None,
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
    root: showing.Root, session: showing.Session = None, as_json: arguments.Json = False
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
    print_by_session(out, [(name, event_cells(event)) for name, event in events], _EVENTS)


def verify(
    root: showing.Root, session: showing.Session = None, as_json: arguments.Json = False
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


def restore_archive(
    root: showing.Root,
    archive: Annotated[
        str | None,
        typer.Argument(metavar="[ARCHIVE]", help="Its id or path. Default: the newest."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, in place of stdout.")
    ] = None,
    session: showing.Session = None,
    as_json: arguments.Json = False,
) -> None:
    """Print the messages that a compaction replaced, a JSON array, byte for byte as archived.

    `policyctx store ls ROOT --type archive` lists the archives. `--json` puts the messages into an
    object, beside what is known of the archive.

    Example: policyctx store restore-archive .offload compaction-001 -o before.json
    """
    with showing.opened_stores(root, session=session) as stores:
        name, entry = _chosen(stores, archive, root)
        text = messages_text(stores[name].read(entry.path))
    if as_json:
        known = entry_report(entry, stores[name], name)
        text = json_text({**known, "messages": json.loads(text)}) + "\n"
    written = text.encode("utf-8", "surrogatepass")
    if output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    else:
        output.write_bytes(written)


def _chosen(
    stores: dict[str, ContextFileSystem], archive: str | None, root: str
) -> tuple[str, IndexEntry]:
    """Return an archive and its session: the newest, or the newest of this id or path.

    Raises `UnknownArchiveError` when there is none, and `AmbiguousSessionError` when more than one
    session has such a one.
    """
    found = sorted(_archives(stores), key=lambda one: one[1].saved_at)
    chosen = [one for one in found if archive is None or archive in {_id(one[1]), one[1].path}]
    if not chosen:
        known = list(dict.fromkeys(_id(entry) for _, entry in found))
        likeliest = None if archive is None else next(iter(nearest(archive, known)), None)
        raise UnknownArchiveError(archive, known, likeliest, path=root)
    sessions = sorted({name for name, _ in chosen})
    if len(sessions) > 1:
        raise AmbiguousSessionError(archive or "an archive", sessions, path=root)
    return chosen[-1]


def _archives(stores: dict[str, ContextFileSystem]) -> Iterator[tuple[str, IndexEntry]]:
    """Yield each archive with its session."""
    for name, store in stores.items():
        for entry in store.list():
            if entry.origin is not None and entry.origin.item_type == ITEM_TYPE:
                yield name, entry


def _id(entry: IndexEntry) -> str:
    return entry.item_id or ""
