"""Rules for tools that contradict one another."""

from __future__ import annotations

from itertools import combinations, islice
from typing import TYPE_CHECKING

from policyctx.policy.globs import MOST_COMPARED, globs_overlap, is_exact, is_name_left
from policyctx.policy.reach import ranked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import ToolRule

# `offload` is not among them: `false` wins wherever it stands.
_KEYS = ("min_tokens", "min_chars", "keep_recent", "pin", "placeholder", "reads_file")
_THRESHOLDS = frozenset({"min_tokens", "min_chars"})
_MAX_CHARS = 200


def disagreeing_globs(checked: Checked) -> Iterator[Diagnostic]:
    """PC309, for two globs that match a tool in common and give one key two values.

    A glob after one that is part of it is the rule after its exception, and means what it says.
    """
    globs = [g for g in checked.policy.tools if not is_exact(g) and len(g) <= _MAX_CHARS]
    for first, second in combinations(globs[:MOST_COMPARED], 2):
        one, other = checked.policy.tools[first], checked.policy.tools[second]
        keys = _disagreements(one, other)
        if not keys or not globs_overlap(first, second) or not is_name_left(((first,),), (second,)):
            continue
        for mine, theirs in keys:
            sentence = (
                f"{first!r} and {second!r} match tools in common but disagree on "
                f"{_compared(one, theirs, other, mine)}; the one written first wins"
            )
            hint = "write the narrower glob first, or give both the same value"
            yield checked.warning("PC309", ("tools", second, mine), sentence, hint)


def offload_without_effect(checked: Checked) -> Iterator[Diagnostic]:
    """PC325, for `offload: true` on a glob whose every tool is refused or pinned by another rule.

    `offload: false` on any rule that matches a tool is absolute; of `pin`, the nearest rule counts.
    """
    refusing = [glob for glob, value in ranked(checked, "offload") if value is False]
    for glob, rule in islice(checked.policy.tools.items(), MOST_COMPARED):
        if not rule.offload:
            continue
        if refusing and not _is_left(checked, glob, refusing):
            by = " and ".join(repr(other) for other in refusing if globs_overlap(glob, other))
            sentence = (
                f"`offload: true` for {glob!r} has no effect: `offload: false` for {by} covers the "
                "same tools and overrides every `offload: true`"
            )
            hint = (
                f"remove `offload: false` from {by}: a tool is not offloaded by default, only with "
                "`offload: true` for the tool or its item type"
            )
        elif (by_pin := _pinned_by(checked, glob)) is not None:
            sentence = (
                f"`offload: true` for {glob!r} has no effect: `pin: true` for {by_pin!r} pins the "
                "same tools, and no step takes a pinned item"
            )
            before = f", or add `pin: false` to {glob!r} and write it before {by_pin!r}"
            hint = f"remove `offload: true` or `pin: true`{'' if by_pin == glob else before}"
        else:
            continue
        yield checked.warning("PC325", ("tools", glob, "offload"), sentence, hint)


def _pinned_by(checked: Checked, glob: str) -> str | None:
    """The first rule that pins tools of the glob, where each tool of the glob is pinned."""
    unwanted: list[str] = []
    pinning = None
    for other, is_pinned in ranked(checked, "pin"):
        if globs_overlap(glob, other) and is_name_left(((glob,), (other,)), tuple(unwanted)):
            if not is_pinned:
                return None
            pinning = pinning or other
        unwanted.append(other)
    return None if _is_left(checked, glob, unwanted) else pinning


def _is_left(checked: Checked, glob: str, unwanted: list[str]) -> bool:
    key = ("outside", glob, *unwanted)
    return checked.answered(key, lambda: is_name_left(((glob,),), tuple(unwanted)))


def _disagreements(one: ToolRule, other: ToolRule) -> list[tuple[str, str]]:
    """The keys of `other` that `one` gives another value, with the key that `one` has for it."""
    given = {key: value for key in _KEYS if (value := getattr(one, key)) is not None}
    found = []
    for key in _KEYS:
        theirs = next(iter(_THRESHOLDS & set(given)), key) if key in _THRESHOLDS else key
        value = getattr(other, key)
        if value is not None and theirs in given and (theirs, value) != (key, given[theirs]):
            found.append((key, theirs))
    return found


def _compared(one: ToolRule, theirs: str, other: ToolRule, mine: str) -> str:
    if mine in {"keep_recent", "placeholder"}:
        return f"`{mine}`"
    return f"`{theirs}: {_shown(one, theirs)}` and `{mine}: {_shown(other, mine)}`"


def _shown(rule: ToolRule, key: str) -> str:
    value = getattr(rule, key)
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
