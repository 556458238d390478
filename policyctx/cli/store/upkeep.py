"""The commands of `policyctx store` that change: gc, rebuild, export, import, copy."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.output import console, json_text
from policyctx.cli.store import showing  # noqa: TC001 - typer reads the annotations at run time  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.store.showing import (
    bytes_shown,
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

if TYPE_CHECKING:
    from policyctx.store.retain import CollectionReport


def gc(
    root: showing.Root,
    max_age: Annotated[str | None, typer.Option(help="Remove what is older: 30d.")] = None,
    max_bytes: Annotated[
        str | None, typer.Option(help="Remove the oldest until so much is left: 5GB.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Take `store.retention` and `store.compress` of this policy."),
    ] = None,
    ended: Annotated[
        bool, typer.Option("--ended", help="No session here goes on: no placeholder is live.")
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
    that one names.

    Example: policyctx store gc ~/.agent/context/session_1 --max-age 30d --dry-run
    """
    age, bytes_left, compresses = seconds(max_age), size(max_bytes), True
    if policy is not None:
        settings = load_policy(policy).store
        compresses = settings.compress == "zstd"
        limits = settings.retention
        if limits is not None:
            age = limits.max_age.seconds if age is None and limits.max_age else age
            known = limits.max_bytes
            bytes_left = known.bytes if bytes_left is None and known else bytes_left
    with (
        opened_stores(root, session=session, compress="zstd" if compresses else "none") as stores,
        shown_progress("compressing") as progress,
    ):
        store = next(iter(stores.values()))
        done = store.collect(
            max_age=age,
            max_bytes=bytes_left,
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
        out.print(f"{_verb('remove', done)} {store.root}/{entry.path} ({rule})", soft_wrap=True)
    for entry in done.packed:
        out.print(f"{_verb('compress', done)} {store.root}/{entry.path}", soft_wrap=True)
    out.print(_summary(done))


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


def _show_number(number: int, done: str, where: Path | str, *, as_json: bool) -> None:
    if as_json:
        console().out(json_text({"contents": number, "to": str(where)}), highlight=False)
    else:
        console().print(f"{counted(number, 'content')} {done} {where}", soft_wrap=True)


def _verb(verb: str, done: CollectionReport) -> str:
    return f"would {verb}" if done.is_dry_run else f"{verb}{'d' if verb[-1] == 'e' else 'ed'}"


def _summary(done: CollectionReport) -> str:
    would = "would remove {} and compress {}" if done.is_dry_run else "removed {}, compressed {}"
    what = would.format(counted(len(done.removed), "content"), f"{len(done.packed):,}")
    return f"{what}: {bytes_shown(done.size_before)} → {bytes_shown(done.size_after)}"
