"""What tables say of a session in a few words: how it begins, and why a policy left it whole."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import items_of
from policyctx.planning.decisions import Decision
from policyctx.planning.plan import Plan
from policyctx.replay.recording import Recording

_CHARS = 80
# The words are among the first messages; a text is looked at so far.
_MESSAGES, _TEXT = 20, 8_000
# What a program wrote around the words of a person: `<environment>…</environment>`.
_ELEMENT = re.compile(r"<([a-zA-Z][\w.:-]*)(?:\s[^<>]*)?>.*?</\1\s*>", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][\w.:-]*(?:\s[^<>]*)?>")
# Marks of direction, control characters and lone surrogates; joiners are parts of words.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn")
_JOINERS = "\u200c\u200d"


def first_words(recording: Recording) -> str:
    """Return the first words of the user in one line of at most 80 characters; empty without any.

    Elements that a program put around them are left out, unless there is nothing else.
    """
    messages = islice(chain.from_iterable(call.new for call in recording.calls), _MESSAGES)
    texts = list(_said([*messages] or recording.after[:_MESSAGES]))
    outside = (_one_line(_outside_elements(text)) for text in texts)
    inside = (_one_line(_TAG.sub(" ", text[:_TEXT])) for text in texts)
    return _shortened(next(filter(None, chain(outside, inside)), ""))


def _said(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what the user wrote, message by message."""
    for message in messages:
        try:
            items = items_of([message])
        except MessagesError:
            continue
        # One message holds what the user wrote and what a program put beside it.
        yield "\n".join(item.text for item in items if item.kind == "user_message")


def _outside_elements(text: str) -> str:
    """Return the beginning of a text without its elements."""
    left = _ELEMENT.sub(" ", text[:_TEXT])
    cut = _TAG.search(left) if len(text) > _TEXT else None
    return left[: cut.start()] if cut else left


def _one_line(text: str) -> str:
    shown = (
        " " if one.isspace() else one
        for one in text
        if one.isspace() or one in _JOINERS or unicodedata.category(one) not in _INVISIBLE
    )
    return " ".join("".join(shown).split())


def _shortened(line: str) -> str:
    """Shorten a line, at a space where one is near, never inside of a composed character."""
    if len(line) <= _CHARS:
        return line
    end = _CHARS - 1
    space = line.rfind(" ", end - 15, end + 1)
    end = space if space > 0 else end
    while end and (unicodedata.combining(line[end]) or line[end] in _JOINERS):
        end -= 1
    return f"{line[:end].rstrip(_JOINERS + ' ')}…"


_RESULT = "tool_result"
_RECENT = frozenset({"recent", "batch_recent"})


def why_untouched(plans: Sequence[Plan]) -> str:
    """Return why nothing was removed, as of the last plan of each list of a session.

    The same reason is the same text in every session, so that reasons can be counted.
    """
    if not any(plan.conversation.policy.all_steps for plan in plans):
        return "the policy has no step"
    results = [item for plan in plans for item in plan.items if item.kind == _RESULT]
    kept = [decision for plan in plans for decision in plan.decisions]
    of_results = [decision for decision in kept if decision.item.kind == _RESULT]
    if not results and all(decision.reason.code == "gate_closed" for decision in kept):
        return "no tool result is sent to a model"
    return _why_kept(of_results or kept, "result" if of_results else "item")


def _why_kept(kept: Sequence[Decision], what: str) -> str:
    reasons = Counter(decision.reason.code for decision in kept)
    small = next((d.reason for d in kept if d.reason.code == "below_threshold"), None)
    others = set(reasons) - {"below_threshold"}
    if small is not None and not others:
        return f"every {what} is below min_{small.values['unit']}"
    if "gate_closed" in others:
        return "the gate of every step that selects items stayed closed"
    if others and others <= _RECENT:
        large = "large " if small is not None else ""
        return f"keep_recent keeps every {large}{what}"
    if not kept:
        return "no step selects any item"
    [(code, _)] = reasons.most_common(1)
    return next(d.reason.sentence for d in kept if d.reason.code == code)
