"""Why a summary cannot take the place of the history that it was made of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.compaction.pinned import without_pinned
from policyctx.errors import SummaryError
from policyctx.policy.values import Share
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.compaction.summarizers import SummaryRequest
    from policyctx.policy.models.compaction import Summary
    from policyctx.tokens.counter import TokenCounter

_SHOWN_CHARS = 60

# The fewest words of a model's summary, where the policy does not say.
_FEWEST_WORDS = 30
# A refusal, or an answer that goes on with the conversation, is short; a summary that happens to
# begin with the same words is not, or has the sections asked for.
_SHORT_WORDS = 100
_REFUSAL = re.compile(
    r"(?:(?:i'?m|i am) (?:very |so |really )?(?:sorry|afraid|unable|not able|not going to)"
    r"|sorry\b|my apologies|i apologi[sz]e"
    r"|i (?:can'?t|cannot|can not|won'?t|will not|must decline|have to decline)"
    r"|as an ai\b)",
    re.IGNORECASE,
)
_CONTINUATION = re.compile(
    r"(?:sure|ok(?:ay)?|certainly|of course|absolutely|alright|all right|got it|great"
    r"|let me|let's|i'll|i will|i'm going to|now,? (?:i|let))\b",
    re.IGNORECASE,
)
# What Markdown puts before and behind a heading's text.
_BEFORE_HEADING, _BEHIND_HEADING = (
    re.compile(r"^[\s#>*_\-(\[]*(?:\d+[.):]\s*)?[*_]*"),
    " \t#*_:.)]",
)


def rejection(
    summary: str,
    replaced_tokens: int,
    request: SummaryRequest,
    *,
    by_model: bool,
    is_checked: bool = True,
) -> SummaryError | None:
    """Return why a summary is not accepted; None if it is.

    `by_model` says that one of the shipped summarizers asked a model, for which the policy's
    `check` has other defaults; `is_checked` is false for a summary that `check` is not meant for.
    """
    settings, pinned = request.settings, request.pinned
    wrong = problem(summary, replaced_tokens, settings, request.counter, pinned)
    if wrong is not None:
        return SummaryError(wrong, answered=True)
    if not is_checked:
        return None
    return _unlike_a_summary(without_pinned(summary, pinned).strip(), settings, by_model=by_model)


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


def missing_sections(summary: str, names: Iterable[str]) -> list[str]:
    """Return the sections that have no heading in a summary.

    A heading is a line of its own, or the beginning of a line before a colon; Markdown around it,
    its number, its case, and `and` for `&` make no difference.
    """
    headings = {found for line in summary.splitlines() for found in _headings(line)}
    return [name for name in names if _plain(name) not in headings]


def _unlike_a_summary(text: str, settings: Summary, *, by_model: bool) -> SummaryError | None:
    """Return why a text that should be a summary is none, as far as the policy's `check` says."""
    asks_for_sections, fewest = _checked(settings, by_model=by_model)
    if not (by_model or asks_for_sections or fewest):
        return None
    names, words = [section.name for section in settings.sections], words_in(text)
    missing = missing_sections(text, names)
    if words < _SHORT_WORDS and (missing or not names):
        opening = _BEFORE_HEADING.sub("", text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        if _REFUSAL.match(opening):
            why = f"the model declined: {_shown(text)}"
            return SummaryError(why, answered=True, is_final=True)
        if _CONTINUATION.match(opening):
            why = f"the answer is too short or continues the conversation: {_shown(text)}"
            return SummaryError(why, answered=True)
    if asks_for_sections and missing:
        noun = "section" if len(missing) == 1 else "sections"
        return SummaryError(f"the answer lacks the {noun} {', '.join(missing)}", answered=True)
    if words < fewest:
        why = f"the answer has {words} words; at least {fewest} are required"
        return SummaryError(why, answered=True)
    return None


def _checked(settings: Summary, *, by_model: bool) -> tuple[bool, int]:
    """Return whether the sections are required, and the fewest words."""
    check, most = settings.check, settings.max_words
    fewest = min(_FEWEST_WORDS, most // 4) if by_model else 0
    if check.min_words is not None:
        fewest = min(check.min_words, most)
    return by_model if check.sections is None else check.sections, fewest


def _headings(line: str) -> Iterator[str]:
    """Yield what a line may be the heading of."""
    yield _plain(line)
    if ":" in line:
        yield _plain(line.partition(":")[0])


def _plain(heading: str) -> str:
    """Return a heading's words alone."""
    text = _BEFORE_HEADING.sub("", heading).strip(_BEHIND_HEADING)
    return " ".join(text.casefold().replace("&", " and ").split())


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
