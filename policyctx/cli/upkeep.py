"""The commands of `policyctx store` that change something, and the list of all of them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.filesize import decimal

from policyctx.cli.output import (
    Grid,
    Json,
    argument,
    console,
    group,
    option,
    print_json,
)
from policyctx.cli.store import (
    Root,
    Session,
    cat,
    collection_report,
    history,
    ls,
    opened_stores,
    restore_archive,
    search,
    seconds,
    shown_progress,
    size,
    verify,
    write_new,
)
from policyctx.errors import AmbiguousSessionError, StoreError, counted, present
from policyctx.policy.loading import load_policy
from policyctx.resources import open_file
from policyctx.store.backend import store_root
from policyctx.store.collector import RetentionLimits
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.index import CollectionReport
from policyctx.store.opening import upload_below
from policyctx.store.restoring import restorer
from policyctx.store.retention import StoreCollection, collect_below

_COLUMNS = ("store", "contents", "size", "removed", "compressed", "size after")


def did(verb: str, done: CollectionReport) -> str:
    """Return `removed`, and `would remove` of a dry run."""
    return f"would {verb}" if done.is_dry_run else f"{verb}{'d' if verb[-1] == 'e' else 'ed'}"


def _sums(reports: Sequence[CollectionReport]) -> dict[str, int]:
    return {
        "removed": sum(len(done.removed) for done in reports),
        "packed": sum(len(done.packed) for done in reports),
        "bytes_before": sum(done.size_before for done in reports),
        "bytes_after": sum(done.size_after for done in reports),
    }


def collection_summary(reports: Sequence[CollectionReport], *, dry_run: bool) -> str:
    """Return what collections did together, in a line."""
    would = "would remove {} and compress {}" if dry_run else "removed {}, compressed {}"
    removed, packed, before, after = _sums(reports).values()
    what = would.format(counted(removed, "content"), f"{packed:,}")
    return f"{what}: {decimal(before)} → {decimal(after)}"


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
        stores = [_report(one) for one in every]
        print_json({"dry_run": dry_run, "stores": stores, **_sums(reports)})
    else:
        did_any = (one for one in every if one.report and (one.report.removed or one.report.packed))
        if rows := [_cells(one, root) for one in did_any]:
            out.print(Grid(_COLUMNS, rows, numeric=_COLUMNS[1:], whole={"store"}))
        of = f" in {counted(len(every), 'store')}"
        out.print(f"{collection_summary(reports, dry_run=dry_run)}{of}")
        for one in failed:
            console(stderr=True).print(f"skipped {one.root}: {one.error}")
    if failed:
        raise typer.Exit(1)


def _cells(one: StoreCollection, root: str) -> tuple[object, ...]:
    done, below = present(one.report), one.root.removeprefix(f"{store_root(root)}/")
    before, after = decimal(done.size_before), decimal(done.size_after)
    return below, done.contents_before, before, len(done.removed), len(done.packed), after


def _report(one: StoreCollection) -> dict[str, object]:
    known: dict[str, object] = {"root": one.root, "sessions": [*one.sessions]}
    if one.report is None:
        return {**known, "error": one.error}
    known["contents_before"] = one.report.contents_before
    return {**known, **collection_report(one.report)}


def gc(
    root: Root,
    max_age: Annotated[str | None, option("Remove what is older: 30d.")] = None,
    max_bytes: Annotated[
        str | None, option("Remove the oldest until at most this size is left: 5GB.")
    ] = None,
    max_contents: Annotated[
        int | None, option("Remove the oldest until at most this number is left.", min=0)
    ] = None,
    policy: Annotated[
        str | None, option("Take `store.retention` and `store.compress` of this policy.")
    ] = None,
    ended: Annotated[
        bool, option("No session here goes on: no placeholder is live, nothing too new.", "--ended")
    ] = False,
    idle: Annotated[
        str | None, option("A session that wrote nothing for this time has ended: 7d.")
    ] = None,
    every: Annotated[
        bool, option("Every store at ROOT and below; the limits hold for all of it.", "--all")
    ] = False,
    dry_run: Annotated[bool, option("Show what would go; change nothing.", "--dry-run")] = False,
    session: Session = None,
    as_json: Json = False,
) -> None:
    """Remove what retention allows, and compress what no placeholder names.

    What a live placeholder names always stays, and without --ended so does what was saved in the
    last hour. Without a limit nothing is removed. Acts on every session in the folder; with
    `--session`, on what only that one names; with `--all`, on every session in ROOT and in the
    folders below it.

    Example: policyctx store gc ~/.agent/context --all --max-bytes 5GB --idle 7d --dry-run
    """
    if every and session is not None:
        raise typer.BadParameter("--all is for every session; leave --session out")
    given = RetentionLimits(seconds(max_age), size(max_bytes), max_contents)
    limits, compress = _terms(given, policy)
    if every:
        with shown_progress("collecting") as progress:
            collected = partial(collect_below, root, limits, idle=seconds(idle), ended=ended)
            done_below = [*collected(compress=compress, dry_run=dry_run, progress=progress)]
        show_collections(done_below, root, as_json=as_json, dry_run=dry_run)
        return
    with (
        opened_stores(root, session=session, compress=compress) as stores,
        shown_progress("compressing") as progress,
    ):
        store = next(iter(stores.values()))
        done = store.collect(
            max_age=limits.max_age,
            max_bytes=limits.max_bytes,
            max_contents=limits.max_contents,
            idle=seconds(idle),
            ended=ended,
            only_own=session is not None,
            dry_run=dry_run,
            progress=progress,
        )
    out = console()
    if as_json:
        print_json(collection_report(done))
        return
    for entry, rule in done.removed:
        out.print(f"{did('remove', done)} {store.root}/{entry.path} ({rule})")
    for entry in done.packed:
        out.print(f"{did('compress', done)} {store.root}/{entry.path}")
    out.print(collection_summary([done], dry_run=done.is_dry_run))


def _terms(
    given: RetentionLimits, policy: str | None
) -> tuple[RetentionLimits, Literal["none", "zstd"]]:
    """Return the limits, those that were not given by the policy, and how it compresses."""
    if policy is None:
        return given, "zstd"
    settings = load_policy(policy).store
    known = settings.retention
    if known is None:
        return given, settings.compress
    age = known.max_age.seconds if known.max_age else None
    size = known.max_bytes.bytes if known.max_bytes else None
    return RetentionLimits(
        age if given.max_age is None else given.max_age,
        size if given.max_bytes is None else given.max_bytes,
        known.max_contents if given.max_contents is None else given.max_contents,
    ), settings.compress


def rebuild(root: Root, session: Session = None, as_json: Json = False) -> None:
    """Write the index anew from its journal and the files.

    Takes up files that no index tells of, and forgets contents whose file is gone.

    Example: policyctx store rebuild .offload
    """
    out, report = console(), {}
    with opened_stores(root, session=session) as stores:
        for name, store in stores.items():
            done = store.rebuild()
            found, gone = ([entry.path for entry in some] for some in (done.found, done.gone))
            report[name] = {"contents": done.entries, "found": found, "gone": gone}
            if as_json:
                continue
            for path in found:
                out.print(f"found {store.root}/{path}")
            for path in gone:
                out.print(f"gone {store.root}/{path}")
            of = f" of session {name}" if name else ""
            out.print(f"the index{of} lists {counted(done.entries, 'content')}")
    if as_json:
        print_json(report)


def export(
    root: Root,
    file: Annotated[Path, argument("FILE", "Where to: session.tar.zst.")],
    session: Session = None,
    as_json: Json = False,
) -> None:
    """Write a session, its contents and its records, to one file.

    It is a tar archive compressed with zstd; equal contents are in it once.

    Example: policyctx store export .offload session.tar.zst --session session_1
    """
    with opened_stores(root, session=session) as stores:
        if len(stores) > 1:
            raise AmbiguousSessionError(None, sorted(stores), path=root)
        [store] = stores.values()
        with shown_progress("exporting") as progress:
            number = store.export(file, progress=progress)
    _show_number(number, "exported to", file, as_json=as_json)


def import_(
    file: Annotated[Path, argument("FILE", "What `export` wrote.")],
    root: Root,
    session: Session = None,
    as_json: Json = False,
) -> None:
    """Take up an exported session in a folder, where its placeholders' paths read as before.

    The folder, or the session in it, must not hold anything yet.

    Example: policyctx store import session.tar.zst ~/.agent/context/session_1
    """
    store = ContextFileSystem(root, session=session)
    with store, shown_progress("importing") as progress:
        number = store.import_from(file, progress=progress)
    _show_number(number, "imported to", root, as_json=as_json)


def copy(
    root: Root,
    target: Annotated[str, argument("TO", "The folder or URL that takes the session up.")],
    session: Session = None,
    as_json: Json = False,
) -> None:
    """Copy a session to another folder or URL, where its placeholders' paths read as before.

    Each content is verified by its hash. After an interruption, run the command again: what was
    copied is not copied again. TO, or the session in it, must not hold a session yet.

    Example: policyctx store copy ~/.agent/context/session_1 s3://bucket/agents/session_1
    """
    with opened_stores(root, session=session) as stores:
        if len(stores) > 1:
            raise AmbiguousSessionError(None, sorted(stores), path=root)
        [(name, source)] = stores.items()
        taking = ContextFileSystem(target, session=name or None)
        with taking, shown_progress("copying") as progress:
            number = taking.import_from(source, progress=progress)
    _show_number(number, "copied to", target, as_json=as_json)


def upload(
    folder: Annotated[Path, argument("FOLDER", "What `store.spill_to` of the policy names.")],
    timeout: Annotated[str, option("The longest that a request may take.")] = "30s",
    as_json: Json = False,
) -> None:
    """Upload what waits in a folder for stores at a URL, of every session.

    Exits with 1 if something is left, or if another process went on with a session meanwhile.

    Example: policyctx store upload ~/.agent/waiting
    """
    with shown_progress("uploading") as progress:
        done = []
        for one in upload_below(folder, timeout=seconds(timeout) or 0.0):
            done.append(one)
            progress(len(done), len(done))
    if as_json:
        print_json([one._asdict() for one in done])
    for one in () if as_json else done:
        left = f", {one.left:,} left: {one.error}" if one.error else ""
        console().print(f"{counted(one.objects, 'object')} to {one.url}{left}")
    if any(one.error for one in done):
        raise typer.Exit(1)


def _show_number(number: int, done: str, where: Path | str, *, as_json: bool) -> None:
    if as_json:
        print_json({"contents": number, "to": str(where)})
    else:
        console().print(f"{counted(number, 'content')} {done} {where}")


def restore(
    root: Root,
    file: Annotated[Path, argument("FILE", "Messages or a session, as JSON or JSON lines.")],
    path: Annotated[
        Path | None, option("File to write, a new one, in place of stdout.", "--output", "-o")
    ] = None,
    session: Session = None,
) -> None:
    """Put offloaded texts back into a file of messages, in the places of their placeholders.

    The file may be any JSON, such as the session file of a host: a string that is a placeholder
    becomes its text. Items that were cleared were not saved, and no placeholder says where a
    dropped item was, so they do not come back; messages that a compaction replaced are in its
    archive.

    Example: policyctx store restore .offload messages.json -o restored.json
    """
    try:
        with opened_stores(root, session=session) as stores, open_file(file) as opened:
            found = restorer(stores.values())
            text = found.lines(opened.read().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError("neither JSON nor JSON lines", path=str(file)) from error
    write_new(path, text)
    left = f"; {counted(found.left, 'placeholder')} stay" if found.left else ""
    console(stderr=True).print(f"{counted(found.restored, 'text')} restored{left}")


app = group()
_READING = (ls, cat, restore, restore_archive, search, history, verify)
for _command in (*_READING, gc, rebuild, export, import_, copy, upload):
    app.command(_command.__name__.rstrip("_").replace("_", "-"))(_command)
