"""Pinned texts: what a summary carries over to the letter, whoever wrote the rest of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADING = "## Pinned"
_BETWEEN = "\n\n"


def pinned_section(texts: Sequence[str], summary: str = "") -> str:
    """Return the section with those of the texts that the summary does not hold; "" for none."""
    missing = dict.fromkeys(text for text in texts if text not in summary)
    return _BETWEEN.join(
        [f"{_HEADING}\n{next(iter(missing))}", *list(missing)[1:]] if missing else []
    )


def with_pinned(summary: str, texts: Sequence[str]) -> str:
    """Return the summary with a section for those of the pinned texts that it does not hold."""
    return _BETWEEN.join(part for part in (summary, pinned_section(texts, summary)) if part)


def without_pinned(summary: str, texts: Sequence[str]) -> str:
    """Return a summary without the section that `with_pinned` wrote at its end.

    Whoever summarises it again neither repeats the pinned texts nor tells them in other words.
    """
    if not texts:
        return summary
    start = summary.rfind(_HEADING + "\n")
    if start < 0:
        return summary
    left = summary[start:].removeprefix(_HEADING + "\n")
    for text in sorted(texts, key=len, reverse=True):
        left = left.replace(text, "", 1)
    return summary[:start].rstrip() if not left.strip() else summary
