"""What the commands of `policyctx store` are given, and the progress that the long ones show."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from policyctx.cli.output import console
from policyctx.errors import StoreError
from policyctx.policy.values import byte_size, duration
from policyctx.store.filesystem import stores_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.store.filesystem import ContextFileSystem

Root: TypeAlias = Annotated[
    Path, typer.Argument(metavar="ROOT", help="A store's folder, as in `store.root`.")
]
Session: TypeAlias = Annotated[
    str | None, typer.Option(help="One session, where several share the folder.")
]
ItemType: TypeAlias = Annotated[str | None, typer.Option("--type", help="Items of this type.")]
Tool: TypeAlias = Annotated[str | None, typer.Option(help="Results and calls of this tool.")]


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
    root: Path, *, session: str | None = None, compress: Literal["none", "zstd"] = "zstd"
) -> Iterator[dict[str, ContextFileSystem]]:
    """Give every store of a folder, or that of one session, by the session's id.

    At the end the index of each lists every item; where it cannot be written, a warning says so.
    Raises `StoreError` when there is none.
    """
    stores = stores_in(root, session=session, compress=compress)
    try:
        yield stores
    finally:
        for store in stores.values():
            try:
                store.close()
            except StoreError as error:
                console(stderr=True).print(f"warning: {error}", soft_wrap=True)


@contextmanager
def shown_progress(label: str) -> Iterator[Callable[[int, int], object]]:
    """Give what shows how many of how many are done, on a terminal, on stderr."""
    err = console(stderr=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, of: bars.update(task, completed=done, total=of)
