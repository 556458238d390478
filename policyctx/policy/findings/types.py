"""Item types that never come to anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.globs import MOST_COMPARED, is_name_left
from policyctx.policy.item_types import NEVER_REPLACED, NEVER_TAKEN, parent
from policyctx.policy.reach import names_among, selected_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models.rules import Globs, Match, TextMatch


def caught_types(checked: Checked) -> Iterator[Diagnostic]:
    """PC302, for a type that matches nothing but what one tried before it matches."""
    own = [(name, match) for name, rule in checked.policy.items.items() if (match := rule.match)]
    for i, (name, match) in enumerate(own[:MOST_COMPARED]):
        for earlier, wider in own[:i]:
            if wider.type == match.type and _implies(match, wider):
                sentence = (
                    f"no item is ever of type {name!r}: {earlier!r} is tried first and matches all "
                    "that it matches"
                )
                hint = f"write {name!r} before {earlier!r}, or narrow the match of {earlier!r}"
                yield checked.warning("PC302", ("items", name), sentence, hint)
                break


def _implies(narrow: Match, wide: Match) -> bool:
    """Does all that `narrow` matches match `wide` as well."""
    return (
        wide.role in (None, narrow.role)
        and wide.error in (None, narrow.error)
        and _globs_imply(narrow.tool, wide.tool)
        and _globs_imply(_one(narrow.media_type), _one(wide.media_type))
        and (wide.text is None or _text_implies(narrow.text, wide.text))
    )


def _one(glob: str | None) -> Globs | None:
    return None if glob is None else (glob,)


def _globs_imply(narrow: Globs | None, wide: Globs | None) -> bool:
    return wide is None or (narrow is not None and not is_name_left((narrow,), wide))


def _text_implies(narrow: TextMatch | None, wide: TextMatch) -> bool:
    starts = (narrow and narrow.startswith) or ()
    ends = (narrow and narrow.endswith) or ()
    parts = (narrow and narrow.contains) or ()
    return (
        (wide.startswith is None or _all_have(starts, wide.startswith, str.startswith))
        and (wide.endswith is None or _all_have(ends, wide.endswith, str.endswith))
        and (
            wide.contains is None
            or any(
                _all_have(given, wide.contains, str.__contains__) for given in (starts, ends, parts)
            )
        )
    )


def _all_have(given: Globs, wanted: Globs, has: Callable[[str, str], bool]) -> bool:
    """Has each of the strings of which a text has one, one of those wanted."""
    if "" in wanted:
        return True
    return bool(given) and all(any(has(text, part) for part in wanted) for text in given)


def types_never_offloaded(checked: Checked) -> Iterator[Diagnostic]:
    """PC312, for `offload: true` on what no step can offload or clear."""
    default_drop = any(s.do == "drop" and s.select.types is None for _, s in checked.steps)
    never = NEVER_TAKEN if default_drop else NEVER_REPLACED
    for name, rule in checked.policy.items.items():
        kind = checked.kind(name)
        if rule.offload and kind in never:
            which = repr(name) if name == kind else f"{name!r} ({kind})"
            sentence = f"`offload: true` does nothing: no step offloads or clears {which}"
            can_go = kind not in NEVER_TAKEN
            hint = "remove the key" + ("; `do: drop` can name the type" if can_go else "")
            yield checked.warning("PC312", ("items", name, "offload"), sentence, hint)


def unused_types(checked: Checked) -> Iterator[Diagnostic]:
    """PC313, for types of the policy's own that make no difference to any step."""
    for name in checked.own_types:
        if is_unused(checked, name):
            sentence = f"item type {name!r} is never used: no step selects it"
            hint = "name it in the `types` of a step, or remove it"
            yield checked.warning("PC313", ("items", name), sentence, hint)


def is_unused(checked: Checked, name: str) -> bool:
    """Does a type of the policy's own make no difference.

    One that no step selects still matters when a later type would get its items, when it is
    pinned, and when compaction counts by type.
    """
    own, items = checked.own_types, checked.policy.items
    later = own[own.index(name) + 1 :]
    if (
        checked.compact is not None
        or items[name].pin
        or parent(name, items) in (parent(other, items) for other in later)
    ):
        return False
    if any(name in selected_types(checked, step) for _, step in checked.steps):
        return False
    gates = (g.items for s in checked.policy.steps for g in s.when)
    return not any(name in names_among(checked, gate.types) for gate in gates if gate)
