"""What people know a recorded session by: its first words."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import items_of
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
        " " if character.isspace() else character
        for character in text
        if character.isspace() or character in _JOINERS or _is_visible(character)
    )
    return " ".join("".join(shown).split())


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE


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
