"""Rows packed column by column, since a long session has thousands that say nearly the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.replay.report.values import Values


def packed(rows: Sequence[Values]) -> Values:
    """Return rows that all have the same keys by column; `rowsOf` in the page unpacks them.

    A column of texts and such is a list of those and, for each row, the place of its own there.
    """
    names = list(rows[0]) if rows else []
    columns = {name: _column([row[name] for row in rows]) for name in names}
    return {"rows": len(rows), "columns": columns}


def _column(values: list[Any]) -> list[Any] | Values:
    if not all(isinstance(value, str | bool | None) for value in values):
        return values
    places: dict[Any, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "at": at}
