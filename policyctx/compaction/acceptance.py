"""`problem`: why a summary cannot take the place of the history that it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.values import Share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.policy.models.compaction import Summary
    from policyctx.tokens.counter import TokenCounter

_SHOWN_CHARS = 60


def problem(
    summary: str,
    replaced_tokens: int,
    settings: Summary,
    counter: TokenCounter,
    pinned: Iterable[str] = (),
) -> str | None:
    """Return what is wrong with a summary, None when it is accepted.

    It must say something, have no more tokens than the share `must_shrink_to` of the
    `replaced_tokens`, and hold each of the `pinned` texts as it is. Restored files are no part of
    either side.
    """
    if not summary.strip():
        return "the summary is empty"
    missing = [text for text in pinned if text not in summary]
    if missing:
        return f"the summary lacks what is pinned: {_shown(missing[0])}"
    limit = settings.must_shrink_to
    if not isinstance(limit, Share):
        return None
    tokens = counter.count(summary)
    if tokens * 100 <= limit.percent * replaced_tokens:
        return None
    return f"the summary's {tokens} tokens are more than {limit} of the {replaced_tokens} replaced"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
