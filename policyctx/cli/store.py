"""Commands of `policyctx store` that look: ls, cat, search, history, verify, restore-archive."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from policyctx import errors
from policyctx.cli import output
from policyctx.cli.output import argument, option
from policyctx.compaction.assembly import messages_text
from policyctx.definitions.items import ARCHIVE_TYPE
from policyctx.definitions.names import is_url
from policyctx.definitions.tokenizers import DEFAULT_TOKENIZER
from policyctx.policy.values import byte_size, duration
from policyctx.store.collector import states_of
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.index import CollectionReport, IndexEntry
from policyctx.store.opening import Stores, filled_in, stores_in
from policyctx.tokens.counter import counter_for

Root: TypeAlias = Annotated[str, argument("ROOT", "A store's folder or URL, as in `store.root`.")]
Session: TypeAlias = Annotated[
    str | None, option("One session, where several share the folder or ROOT has {session_id}.")
]
ItemType: TypeAlias = Annotated[str | None, option("Items of this type.", "--type")]
Tool: TypeAlias = Annotated[str | None, option("Results and calls of this tool.")]
_SECONDS = "%Y-%m-%d %H:%M:%S"
Row: TypeAlias = Mapping[str, object]
"""The cells of a row, by their columns."""


def seconds(value: str | None) -> float | None:
    """Read an age such as `30d`. Raises `typer.BadParameter`."""
    try:
        return None if value is None else duration(value).seconds
    except ValueError as error:
        raise typer.BadParameter(f"{value!r}: {error}") from error


def size(value: str | None) -> int | None:
    """Read a size such as `5GB`. Raises `typer.BadParameter`."""
    try:
        return None if value is None else byte_size(value).bytes
    except ValueError as error:
        raise typer.BadParameter(f"{value!r}: {error}") from error


def line_range(value: str | None) -> tuple[int, int] | None:
    """Read `10-20`, `10` or `10-`. Raises `typer.BadParameter`."""
    if value is None:
        return None
    first, dash, last = value.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or not last):
        raise typer.BadParameter(f"{value!r}: expected lines such as 10-20, 10 or 10-")
    end = int(last) if last else 10**12 if dash else int(first)
    return int(first), end


@contextmanager
def opened_stores(
    root: str, *, session: str | None = None, compress: Literal["none", "zstd"] = "zstd"
) -> Iterator[Stores]:
    """Give every store of a folder, or that of one session, by the session's id.

    The session stands for `{session_id}` in the root. At the end the index of each that was opened
    lists every item; a warning says where it cannot be written. Raises `StoreError` without any.
    """
    root, session = filled_in(root, session)
    stores = stores_in(root, session=session, compress=compress)
    try:
        yield stores
    finally:
        for store in stores.opened.values():
            try:
                store.close()
            except errors.StoreError as error:
                output.console(stderr=True).print(f"warning: {error}")


@contextmanager
def shown_progress(label: str) -> Iterator[Callable[[int, int], object]]:
    """Give what shows how many of how many are done, on a terminal, on stderr."""
    err = output.console(stderr=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, of: bars.update(task, completed=done, total=of)


def entry_report(entry: IndexEntry, stores: Stores, session: str) -> dict[str, Any]:
    """Return what is known of a content, for `--json`; its block is left out."""
    known = {k: v for k, v in entry.as_json().items() if k not in {"block", "text_at", "text_as"}}
    return {**known, "path": f"{stores.root}/{entry.path}", "session": session}


def entry_rows(stores: Stores) -> Iterable[tuple[str, IndexEntry, str]]:
    """Yield session, content and what became of its item, oldest first within a session."""
    root = str(stores.root)
    for session, entries, records in stores.contents():
        states = states_of(records, [root])
        for entry in entries:
            state = states.get((entry.item_id, entry.path))
            yield session, _with_tokens(entry, stores, session), state or ""


def _with_tokens(entry: IndexEntry, stores: Stores, session: str) -> IndexEntry:
    """Return a content with its tokens, counted here where what saved it, a hook, did not."""
    origin = entry.origin
    if origin is None or origin.tokens is not None or is_url(str(stores.root)):
        return entry
    try:
        text = stores[session].read(entry.path)
    except errors.StoreError:
        return entry
    return entry._replace(origin=replace(origin, tokens=counter_for(DEFAULT_TOKENIZER).count(text)))


def entry_row(entry: IndexEntry, state: str) -> dict[str, object]:
    """Return the row of a content, by the columns of `_ENTRIES`."""
    origin = entry.origin
    return {
        "item": entry.item_id or "",
        "type": origin.item_type if origin else "",
        "tool": (origin.tool_name if origin else "") or "",
        "tokens": origin.tokens if origin and origin.tokens is not None else "",
        "chars": entry.chars,
        "saved (UTC)": output.moment(entry.saved_at, _SECONDS, here=False) or "?",
        "state": state,
        "path": entry.path if entry.same_as is None else f"{entry.path} (same as {entry.same_as})",
    }


def collection_report(done: CollectionReport) -> dict[str, Any]:
    """Return what `gc` did as plain values, for `--json`."""
    return {
        "dry_run": done.is_dry_run,
        "removed": [
            {"path": e.path, "item_id": e.item_id, "rule": rule} for e, rule in done.removed
        ],
        "packed": [{"path": e.path, "item_id": e.item_id} for e in done.packed],
        "bytes_before": done.size_before,
        "bytes_after": done.size_after,
    }


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The columns of a table, and those that are left where the ones before do not fit.

    The last ones are shown however narrow the output is; where they do not fit either, `shortened`
    gives the most characters that a cell of a column has.
    """

    columns: tuple[str, ...]
    narrower: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()
    shortened: Mapping[str, int] = field(default_factory=dict)


def print_by_session(out: Console, rows: Sequence[tuple[str, Row]], layout: RowLayout) -> None:
    """Print the rows of one session or of several, each row with the session's name before it.

    The name is "" where a folder holds one session. Where the table is wider than the output, each
    session has a table of its own below its name.
    """
    shared = any(session for session, _ in rows)
    if shared:
        named = [{"session": session, **row} for session, row in rows]
        made = _table(("session", *layout.columns), named, layout, {})
        if made.width <= out.width:
            out.print(made)
            return
    most: Mapping[str, int] = {}
    for columns in (layout.columns, *layout.narrower):
        if _table(columns, [row for _, row in rows], layout, {}).width <= out.width:
            break
    else:
        most = layout.shortened
    for session, of_session in groupby(rows, key=lambda row: row[0]):
        if shared:
            out.print(f"session {session}")
        out.print(_table(columns, [row for _, row in of_session], layout, most))


def _table(
    columns: Sequence[str], rows: Sequence[Row], layout: RowLayout, most: Mapping[str, int]
) -> output.Grid:
    cells = [
        [output.shortened(str(row[c]), most[c]) if c in most else row[c] for c in columns]
        for row in rows
    ]
    whole = set(columns) - layout.numeric
    return output.Grid(columns, cells, numeric=layout.numeric, whole=whole)


_ENTRIES = RowLayout(
    ("item", "type", "tool", "tokens", "chars", "saved (UTC)", "state", "path"),
    narrower=(("item", "tool", "tokens", "state", "path"), ("item", "tokens", "state", "path")),
    numeric=frozenset({"tokens", "chars"}),
    shortened={"item": 12},
)
_EVENTS = RowLayout(
    ("when (UTC)", "what", "item", "path"), narrower=(("when (UTC)", "what", "path"),)
)


def ls(
    root: Root,
    session: Session = None,
    item_type: ItemType = None,
    tool: Tool = None,
    as_json: output.Json = False,
) -> None:
    """List what was offloaded, oldest first.

    Example: policyctx store ls ~/.agent/context/session_20260101_120000_abc123
    """
    with opened_stores(root, session=session) as stores:
        rows = [row for row in entry_rows(stores) if row[1].is_of(item_type, tool)]
    out = output.console()
    if as_json:
        found = [
            {**entry_report(e, stores, name), "state": state or None} for name, e, state in rows
        ]
        output.print_json(found)
        return
    if rows:
        print_by_session(out, [(n, entry_row(e, state)) for n, e, state in rows], _ENTRIES)
    out.print(f"{errors.counted(len(rows), 'content')} in {stores.root}")


def cat(
    root: Root,
    key: Annotated[str, argument("KEY", "An item id, a tool-use id, or a path.")],
    lines: Annotated[str | None, option("Only these: 10-20, 10 or 10-.")] = None,
    session: Session = None,
    as_json: output.Json = False,
) -> None:
    """Print an offloaded text exactly as it was, checked by its hash.

    On a terminal, characters that control it or hide text are shown as escapes.

    Example: policyctx store cat .offload toolu_01 --lines 1-40
    """
    wanted = line_range(lines)
    with opened_stores(root, session=session) as stores:
        name, store = _holder(stores, key)
        text, entry = store.read(key, lines=wanted), store.find(key)
    if as_json:
        known = entry_report(entry, stores, name) if entry else {"path": key}
        output.print_json({**known, "text": text})
        return
    if sys.stdout.isatty():
        output.console().out(text, end="")
        return
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def search(
    root: Root,
    text: Annotated[str, argument("TEXT", "What to look for, as it is.")],
    ignore_case: Annotated[
        bool, option("Take capitals for small letters.", "--ignore-case", "-i")
    ] = False,
    limit: Annotated[int | None, option("Stop after so many lines.", min=1)] = None,
    session: Session = None,
    item_type: ItemType = None,
    tool: Tool = None,
    as_json: output.Json = False,
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
        out, report, number = output.console(), list[dict[str, Any]](), 0
        for name, match in islice(found, limit):
            number += 1
            path = f"{stores.root}/{match.entry.path}"
            if as_json:
                known = {"path": path, "item_id": match.entry.item_id, "line": match.line}
                report.append({**known, "text": match.text, "session": name})
            else:
                out.print(f"{path}:{match.line}: {match.text}")
    if as_json:
        output.print_json(report)
    elif not number:
        output.console(stderr=True).print("nothing found")


def history(root: Root, session: Session = None, as_json: output.Json = False) -> None:
    """Show what was saved, packed and removed, in the order in which it happened.

    Example: policyctx store history .offload
    """
    with opened_stores(root, session=session) as stores:
        events = [(name, event) for name, store in stores.items() for event in store.history()]
    out = output.console()
    if as_json:
        report = [
            {
                "time": event.time,
                "what": event.what,
                "item_id": event.item_id,
                "path": event.path,
                "why": event.why or None,
                "session": name,
            }
            for name, event in events
        ]
        output.print_json(report)
        return
    rows = []
    for name, event in events:
        row = {
            "when (UTC)": output.moment(event.time, _SECONDS, here=False) or "?",
            "what": f"{event.what} by {event.why}" if event.why else event.what,
            "item": event.item_id or "",
            "path": event.path,
        }
        rows.append((name, row))
    print_by_session(out, rows, _EVENTS)


def verify(root: Root, session: Session = None, as_json: output.Json = False) -> None:
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
            harmed += [(entry_report(h.entry, stores, name), h.kind, h.reason) for h in done.harmed]
    out = output.console()
    if as_json:
        report = [{**known, "harm": kind, "reason": reason} for known, kind, reason in harmed]
        output.print_json({"checked": checked, "harmed": report})
    else:
        for known, kind, reason in harmed:
            out.print(f"{known['path']}: {kind}: {reason}")
        verdict = f"{len(harmed)} harmed" if harmed else "each what was saved"
        out.print(f"{errors.counted(checked, 'content')} read, {verdict}")
    if harmed:
        raise typer.Exit(1)


def _holder(stores: Stores, key: str) -> tuple[str, ContextFileSystem]:
    """Return the session whose index knows the key; the first, where none does.

    Raises `AmbiguousSessionError` when the key means another content in each of several sessions.
    """
    found = {name: entry for name, store in stores.items() if (entry := store.find(key))}
    if len({entry.path for entry in found.values()}) > 1:
        raise errors.AmbiguousSessionError(key, sorted(found), path=str(stores.root))
    name = next(iter(found), next(iter(stores)))
    return name, stores[name]


def restore_archive(
    root: Root,
    archive: Annotated[
        str | None, argument("[ARCHIVE]", "Its id or path. Default: the newest.")
    ] = None,
    path: Annotated[
        Path | None, option("File to write, a new one, in place of stdout.", "--output", "-o")
    ] = None,
    session: Session = None,
    as_json: output.Json = False,
) -> None:
    """Print the messages that a compaction replaced, a JSON array, as archived.

    `policyctx store ls ROOT --type archive` lists the archives. `--json` puts the messages into an
    object, beside what is known of the archive.

    Example: policyctx store restore-archive .offload compaction-001 -o before.json
    """
    with opened_stores(root, session=session) as stores:
        name, entry = _chosen(stores, archive, root)
        text = messages_text(stores[name].read(entry.path))
    if as_json:
        known = entry_report(entry, stores, name)
        text = output.json_text({**known, "messages": json.loads(text)}) + "\n"
    write_new(path, text)


def write_new(path: Path | None, text: str) -> None:
    """Write JSON to stdout, or to a file that only its owner reads. Raises `FileExistsError`."""
    if path is None:
        output.write_json(text)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "wb") as new:
        new.write(output.json_bytes(text))


def _chosen(stores: Stores, archive: str | None, root: str) -> tuple[str, IndexEntry]:
    """Return an archive and its session: the newest, or the newest of this id or path.

    Raises `UnknownArchiveError` when there is none, and `AmbiguousSessionError` when more than one
    session has such a one.
    """
    found = [
        (name, entry)
        for name, entries, _ in stores.contents()
        for entry in entries
        if entry.is_of(ARCHIVE_TYPE, None)
    ]
    found.sort(key=lambda one: one[1].saved_at)
    chosen = [one for one in found if archive is None or archive in {_id(one[1]), one[1].path}]
    if not chosen:
        known = list(dict.fromkeys(_id(entry) for _, entry in found))
        likeliest = None if archive is None else errors.nearest(archive, known)
        raise errors.UnknownArchiveError(archive, known, likeliest, path=root)
    sessions = sorted({name for name, _ in chosen})
    if len(sessions) > 1:
        raise errors.AmbiguousSessionError(archive or "an archive", sessions, path=root)
    return chosen[-1]


def _id(entry: IndexEntry) -> str:
    return entry.item_id or ""
