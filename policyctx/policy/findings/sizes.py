"""Thresholds so low that the placeholder would be no smaller than what it replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.globs import globs_overlap
from policyctx.policy.lookup import widest_wording
from policyctx.policy.reach import WITHOUT_TOOL, may_meet, nearest, taken_types
from policyctx.policy.template import parsed_template
from policyctx.policy.values import PLACEHOLDER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import Step, Threshold
    from policyctx.policy.models.placeholder import Placeholder
    from policyctx.policy.nodes import Path

# The fewest characters that a field can be; one that is not here can be empty.
_FEWEST = {
    "path": 2,
    "relative_path": 3,
    "cwd_path": 1,
    "item_type": 1,
    "tokens": 1,
    "chars": 1,
    "lines": 1,
    "sha256": 64,
    "omitted_lines": 1,
    "omitted_chars": 1,
}
_CHARS_PER_TOKEN = 4


def thresholds_too_low(checked: Checked) -> Iterator[Diagnostic]:
    """PC303, for a threshold at which every wording is as long as the item, or longer.

    Silent where a step has `must_shrink: false`, and at 0, which is to say that there is no
    threshold.
    """
    for path, level, steps, wordings in _uses(checked):
        unit = "chars" if level.min_chars is not None else "tokens"
        threshold = level.min_chars if level.min_chars is not None else level.min_tokens
        amount = checked.tokens(threshold or 0)
        if not amount or not steps or not all(step.must_shrink for step in steps):
            continue
        least = min(_shortest(checked, step, wordings, unit) for step in steps)
        if amount <= least:
            word = ("character" if unit == "chars" else "token") + "s" * (amount > 1)
            sentence = (
                f"an item of {amount} {word} is no larger than its placeholder, which has at "
                f"least {least}, so `must_shrink` leaves it alone"
            )
            hint = f"use {least + 1} or more, or shorten the placeholder"
            yield checked.warning("PC303", (*path, f"min_{unit}"), sentence, hint)


def _uses(
    checked: Checked,
) -> Iterator[tuple[Path, Threshold, list[Step], list[Placeholder]]]:
    """Yield each map that may give a threshold, the steps that it may bind, and the wordings."""
    steps = [(p, s) for p, s in checked.steps if s.do in {"offload", "clear"}]
    steps = [(p, s) for p, s in steps if taken_types(checked, s)]
    bound = [s for _, s in steps if s.select.min_chars is None and s.select.min_tokens is None]
    taken = [t for step in bound for t in taken_types(checked, step)]
    yield (), checked.policy, bound, [*_of_types(checked, taken), *_of_tools(checked)]
    for name, item in checked.policy.items.items():
        family = [t for t in checked.types if name in checked.lineage(t)]
        taking = [s for s in bound if set(family) & set(taken_types(checked, s))]
        of_tools = [] if checked.kind(name) in WITHOUT_TOOL else _of_tools(checked)
        yield ("items", name), item, taking, [*_of_types(checked, family), *of_tools]
    for glob, tool in checked.policy.tools.items():
        of_types = [] if tool.placeholder else _of_types(checked, taken)
        meeting = [s for s in bound if _may_take(checked, s, glob)]
        yield ("tools", glob), tool, meeting, [*of_types, *_of_tools(checked, glob)]
    for path, step in steps:
        of_types = _of_types(checked, taken_types(checked, step))
        yield (*path, "select"), step.select, [step], [*of_types, *_of_tools(checked)]


def _may_take(checked: Checked, step: Step, glob: str) -> bool:
    return any(may_meet(checked, step, t, glob) for t in taken_types(checked, step))


def _of_types(checked: Checked, types: list[str]) -> list[Placeholder]:
    """The wordings of these types where no tool has one."""
    return [nearest(checked, t, "placeholder") or checked.policy.placeholder for t in types]


def _of_tools(checked: Checked, glob: str | None = None) -> list[Placeholder]:
    """The wordings of tools, or of those that have a name in common with `glob`."""
    return [
        rule.placeholder
        for other, rule in checked.policy.tools.items()
        if rule.placeholder and (glob is None or _overlap(checked, glob, other))
    ]


def _overlap(checked: Checked, one: str, other: str) -> bool:
    return checked.answered(("overlap", one, other), lambda: globs_overlap(one, other))


def _shortest(checked: Checked, step: Step, wordings: list[Placeholder], unit: str) -> int:
    """Return a size that no placeholder of this step is below."""
    top = checked.policy.placeholder
    left = [widest_wording(checked.policy, step) if w is top else w for w in wordings]
    if step.placeholder is not None:
        left = [step.placeholder]
    chars = min(map(_fewest_chars, left), default=0)
    return chars if unit == "chars" else fewest_tokens(checked, chars)


def _fewest_chars(wording: Placeholder) -> int:
    pieces = parsed_template(wording.text, PLACEHOLDER_FIELDS).pieces
    return sum(map(len, pieces[::2])) + sum(_FEWEST.get(field, 0) for field in pieces[1::2])


def fewest_tokens(checked: Checked, chars: int) -> int:
    """Return the fewest tokens that so many characters can be, without a vocabulary to ask."""
    model = checked.policy.model
    if model.token_scale != 1:
        return 0
    if model.tokenizer == "approximate":
        return chars // _CHARS_PER_TOKEN
    return min(chars, 1)
