"""The summary in a model's answer, without what the model thought before it wrote."""

from __future__ import annotations

import re

SUMMARY_TAG = "summary"
THOUGHTS = ("analysis", "thinking", "think")
"""The elements in which a model may think. The first is asked for; some models write the others."""

_THOUGHT = re.compile(rf"\s*<({'|'.join(THOUGHTS)})>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_UNFINISHED = re.compile(rf"\s*<(?:{'|'.join(THOUGHTS)})>", re.IGNORECASE)
_START = re.compile(rf"<{SUMMARY_TAG}>", re.IGNORECASE)
_END = re.compile(rf"</{SUMMARY_TAG}>", re.IGNORECASE)


def summary_in(answer: str) -> str:
    """Return the summary in an answer; "" if the answer holds nothing but thoughts.

    Thoughts are cut off at the beginning only. Of the rest, what the element `summary` holds is
    the summary; without that element all of it is.
    """
    at = 0
    while (thought := _THOUGHT.match(answer, at)) is not None:
        at = thought.end()
    unfinished = _UNFINISHED.match(answer, at)
    start = _START.search(answer, at)
    if start is None:
        return "" if unfinished else _without_end(answer[at:])
    return _without_end(answer[start.end() :])


def _without_end(text: str) -> str:
    """Return the text up to the last end of the element, or all of it."""
    ends = [found.start() for found in _END.finditer(text)]
    return (text[: ends[-1]] if ends else text).strip()
