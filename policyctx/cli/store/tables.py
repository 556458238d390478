"""The tables of `policyctx store`, in layouts for wide and for narrow output."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from policyctx.cli.output import shortened, table, table_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table, and those that are left where the ones before do not fit.

    The last ones are shown however narrow the output is; where they do not fit either, `shortened`
    gives the most characters that a cell of a column has.
    """

    columns: tuple[str, ...]
    narrower: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()
    shortened: tuple[tuple[str, int], ...] = ()


def print_by_session(
    out: Console, rows: Sequence[tuple[str, tuple[object, ...]]], layout: Layout
) -> None:
    """Print the rows of one session or of several, each row with the session's name before it.

    The name is "" where a folder holds one session. Where the table is wider than the output, each
    session has a table of its own below its name.
    """
    shared = any(session for session, _ in rows)
    if shared:
        named = [(session, *cells) for session, cells in rows]
        made = _table(("session", *layout.columns), named, layout)
        if table_width(made) <= out.width:
            out.print(made)
            return
    columns, most = _fitting(out, [cells for _, cells in rows], layout)
    for session, of_session in groupby(rows, key=lambda row: row[0]):
        if shared:
            out.print(f"session {session}", soft_wrap=True)
        shown = _shown([cells for _, cells in of_session], columns, layout, most)
        out.print(_table(columns, shown, layout))


def _fitting(
    out: Console, rows: Sequence[Sequence[object]], layout: Layout
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the columns that fit, and the most characters of those that are shortened."""
    for columns in (layout.columns, *layout.narrower):
        if table_width(_table(columns, _shown(rows, columns, layout, {}), layout)) <= out.width:
            return columns, {}
    return layout.narrower[-1], dict(layout.shortened)


def _shown(
    rows: Sequence[Sequence[object]], columns: Sequence[str], layout: Layout, most: dict[str, int]
) -> list[list[object]]:
    """Return the cells of these columns alone, those with a limit in `most` shortened."""
    return [
        [
            shortened(str(cell), most[name]) if name in most else cell
            for name, cell in zip(layout.columns, row, strict=True)
            if name in columns
        ]
        for row in rows
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]], layout: Layout) -> Table:
    whole = set(columns) - layout.numeric
    return table(columns, rows, numeric=set(layout.numeric), whole=whole)
