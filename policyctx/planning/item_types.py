"""Item types: the policy's own, each refining a built-in one, tried in the order written."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from policyctx.policy.lookup import lineage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.messages.items import Item
    from policyctx.policy.models.rules import ItemRule, Match, TextMatch


class TypeTable:
    """Knows the policy's own types by the built-in type that they refine."""

    def __init__(self, items: Mapping[str, ItemRule]) -> None:
        self._items = items
        self._refinements: dict[str, list[tuple[str, Match]]] = {}
        for name, rule in items.items():
            if rule.match is not None:
                self._refinements.setdefault(rule.match.type, []).append((name, rule.match))

    def lineage(self, item_type: str) -> tuple[str, ...]:
        """Return the type, then the types that it refines, the nearest first."""
        return lineage(item_type, self._items)

    def type_of(self, item: Item, built_in: str) -> str:
        """Return the first of the policy's own types that the item matches, else `built_in`."""
        refinements = self._refinements.get(built_in)
        if refinements is None:
            return built_in
        return next((name for name, match in refinements if _matches(match, item)), built_in)


def _matches(match: Match, item: Item) -> bool:
    return (
        (match.tool is None or _any_glob(item.tool, match.tool))
        and (match.role is None or item.role == match.role)
        and (match.error is None or item.error == match.error)
        and (match.media_type is None or _any_glob(item.media_type, (match.media_type,)))
        and (match.text is None or _has(match.text, item.text))
    )


def _any_glob(name: str | None, globs: tuple[str, ...]) -> bool:
    return name is not None and any(fnmatchcase(name, glob) for glob in globs)


def _has(wanted: TextMatch, text: str) -> bool:
    return (
        (wanted.startswith is None or text.startswith(wanted.startswith))
        and (wanted.endswith is None or text.endswith(wanted.endswith))
        and (wanted.contains is None or any(part in text for part in wanted.contains))
    )
