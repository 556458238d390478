"""Amounts of tokens that the context window makes pointless, or that lack a percent sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.findings.sizes import fewest_tokens
from policyctx.policy.models import KeepRecent
from policyctx.policy.models.compaction import Summary
from policyctx.policy.models.gates import COMPARISONS, BelowTokens, TokensGate
from policyctx.policy.values import Share, amount
from policyctx.policy.walk import sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.checked import Checked
    from policyctx.policy.models import Section, Threshold
    from policyctx.policy.nodes import Node, Path

# Keys that are mostly given as a share. A small `min_tokens` or `frees` makes sense.
_OFTEN_SHARES: dict[type[Section], tuple[str, ...]] = {
    TokensGate: COMPARISONS,
    BelowTokens: ("under",),
    KeepRecent: ("tokens",),
    Summary: ("max_input",),
}
_MOST_PERCENT = 100


def shares_without_sign(checked: Checked) -> Iterator[Diagnostic]:
    """PC322, for a number from 2 to 100 that is under 1 % of the window, where a share may stand.

    1 is not reported: it says that any amount will do.
    """
    window = checked.policy.model.context_window
    for path, model, node in sections(checked.root):
        keys = () if path[-1:] == ("frees",) else _OFTEN_SHARES.get(model, ())
        for key in keys:
            number = _number(node, key)
            if number is not None and 1 < number <= _MOST_PERCENT and number * 100 < window:
                sentence = (
                    f"`{key}: {number}` means {number} tokens, less than 1% of the context window "
                    f"of {window}"
                )
                hint = f"did you mean `{key}: {number}%`?"
                yield checked.warning("PC322", (*path, key), sentence, hint)


def thresholds_too_high(checked: Checked) -> Iterator[Diagnostic]:
    """PC323, for a threshold as large as the context window."""
    for path, level in _thresholds(checked):
        chars, tokens = level.min_chars, level.min_tokens
        least = fewest_tokens(checked, chars or 0) if tokens is None else checked.exact(tokens)
        key, written = ("min_chars", chars) if tokens is None else ("min_tokens", tokens)
        if written is not None and least >= checked.policy.model.context_window:
            sentence = (
                f"`{key}: {checked.shown(written)}` is as large as the context window of "
                f"{checked.policy.model.context_window} tokens, or larger: an item of this size "
                "leaves no room for other messages, so almost no item is taken"
            )
            hint = (
                "lower the threshold, such as `min_tokens: 10%`; to take no item, write "
                "`offload: false`"
            )
            yield checked.warning("PC323", (*path, key), sentence, hint)


def recency_without_end(checked: Checked) -> Iterator[Diagnostic]:
    """PC324, for a `keep_recent` of as many tokens as the context window has."""
    window = checked.policy.model.context_window
    for path, model, node in sections(checked.root):
        tokens = node.child("tokens")
        if model is not KeepRecent or tokens is None or tokens.value is None:
            continue
        kept = amount(tokens.value)
        if checked.exact(kept) >= window:
            sentence = (
                f"`keep_recent` of {checked.shown(kept)}{_unit(kept)} is not below the context "
                f"window of {window} tokens: all that fits is recent, so nothing is taken"
            )
            hint = "use a smaller number, such as `tokens: 10%`"
            yield checked.warning("PC324", (*path, "tokens"), sentence, hint)


def _unit(kept: int | Share) -> str:
    """What `Checked.shown` leaves out of a number."""
    return "" if isinstance(kept, Share) else " tokens"


def _number(node: Node, key: str) -> int | None:
    child = node.child(key)
    value = None if child is None else child.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _thresholds(checked: Checked) -> Iterator[tuple[Path, Threshold]]:
    policy = checked.policy
    yield (), policy
    yield from ((("items", name), rule) for name, rule in policy.items.items())
    yield from ((("tools", glob), rule) for glob, rule in policy.tools.items())
    yield from (((*path, "select"), step.select) for path, step in checked.steps)
