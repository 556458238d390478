"""The commands of `policyctx store` that change: gc, rebuild, export, import, copy, upload."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from policyctx.cli import arguments
from policyctx.cli.output import console, json_text
from policyctx.cli.store import showing
from policyctx.cli.store.collecting import collection_summary, did, show_collections
from policyctx.cli.store.showing import (
    collection_report,
    counted,
    opened_stores,
    seconds,
    shown_progress,
    size,
)
from policyctx.errors import AmbiguousSessionError
from policyctx.policy.loading import load_policy
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.retain import Limits
from policyctx.store.retention import collect_below
from policyctx.store.uploading import upload_below


def gc(
    root: showing.Root,
    max_age: Annotated[str | None, typer.Option(help="Remove what is older: 30d.")] = None,
    max_bytes: Annotated[
        str | None, typer.Option(help="Remove the oldest until so much is left: 5GB.")
    ] = None,
    max_contents: Annotated[
        int | None, typer.Option(min=0, help="Remove the oldest until so many texts are left.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Take `store.retention` and `store.compress` of this policy."),
    ] = None,
    ended: Annotated[
        bool, typer.Option("--ended", help="No session here goes on: no placeholder is live.")
    ] = False,
    idle: Annotated[
        str | None,
        typer.Option(help="A session that wrote nothing for so long does not go on: 7d."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Every store at ROOT and below; the limits hold for all of it."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go; change nothing.")
    ] = False,
    session: showing.Session = None,
    as_json: arguments.Json = False,
) -> None:
    """Remove what retention allows, and compress what no placeholder names.

    What a live placeholder names always stays, and so does what was saved in the last hour. Without
    a limit nothing is removed. Acts on every session in the folder; with `--session`, on what only
    that one names; with `--all`, on every session in ROOT and in the folders below it.

    Example: policyctx store gc ~/.agent/context --all --max-bytes 5GB --idle 7d --dry-run
    """
    if every and session is not None:
        raise typer.BadParameter("--all is for every session; leave --session out")
    given = Limits(seconds(max_age), size(max_bytes), max_contents)
    limits, compress = _terms(given, policy)
    if every:
        with shown_progress("collecting") as progress:
            every_store = [
                *collect_below(
                    root,
                    limits,
                    idle=seconds(idle),
                    ended=ended,
                    compress=compress,
                    dry_run=dry_run,
                    progress=progress,
                )
            ]
        show_collections(every_store, root, as_json=as_json, dry_run=dry_run)
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
        out.out(json_text(collection_report(done)), highlight=False)
        return
    for entry, rule in done.removed:
        out.print(f"{did('remove', done)} {store.root}/{entry.path} ({rule})", soft_wrap=True)
    for entry in done.packed:
        out.print(f"{did('compress', done)} {store.root}/{entry.path}", soft_wrap=True)
    out.print(collection_summary([done], dry_run=done.is_dry_run))


def _terms(given: Limits, policy: str | None) -> tuple[Limits, Literal["none", "zstd"]]:
    """Return the limits, those that were not given by the policy, and how it compresses."""
    if policy is None:
        return given, "zstd"
    settings = load_policy(policy).store
    known = settings.retention
    if known is None:
        return given, settings.compress
    age = known.max_age.seconds if known.max_age else None
    size = known.max_bytes.bytes if known.max_bytes else None
    return Limits(
        age if given.max_age is None else given.max_age,
        size if given.max_bytes is None else given.max_bytes,
        known.max_contents if given.max_contents is None else given.max_contents,
    ), settings.compress


def rebuild(
    root: showing.Root, session: showing.Session = None, as_json: arguments.Json = False
) -> None:
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
                out.print(f"found {store.root}/{path}", soft_wrap=True)
            for path in gone:
                out.print(f"gone {store.root}/{path}", soft_wrap=True)
            of = f" of session {name}" if name else ""
            out.print(f"the index{of} lists {counted(done.entries, 'content')}", soft_wrap=True)
    if as_json:
        out.out(json_text(report), highlight=False)


def export(
    root: showing.Root,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to: session.tar.zst.")],
    session: showing.Session = None,
    as_json: arguments.Json = False,
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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.")],
    root: showing.Root,
    session: showing.Session = None,
    as_json: arguments.Json = False,
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
    root: showing.Root,
    target: Annotated[
        str, typer.Argument(metavar="TO", help="The folder or URL that takes the session up.")
    ],
    session: showing.Session = None,
    as_json: arguments.Json = False,
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
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What `store.spill_to` of the policy names.")
    ],
    timeout: Annotated[str, typer.Option(help="The longest that a request may take.")] = "30s",
    as_json: arguments.Json = False,
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
        console().out(json_text([asdict(one) for one in done]), highlight=False)
    for one in () if as_json else done:
        left = f", {one.left:,} left: {one.error}" if one.error else ""
        console().print(f"{counted(one.objects, 'object')} to {one.url}{left}", soft_wrap=True)
    if any(one.error for one in done):
        raise typer.Exit(1)


def _show_number(number: int, done: str, where: Path | str, *, as_json: bool) -> None:
    if as_json:
        console().out(json_text({"contents": number, "to": str(where)}), highlight=False)
    else:
        console().print(f"{counted(number, 'content')} {done} {where}", soft_wrap=True)
