"""Recorded sessions as messages: all of what was said and done, in order, in several formats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path

from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.replay.reading import recordings_in
from tests.compaction.extractive.sessions import Message

FOLDERS = ("claude-code", "codex", "pi", "gemini", "tau2", "openai-chat")

# Sentences that only say that something was heard.
HEARD = frozenset(
    ("yes", "sure", "ok", "okay", "thanks", "thank you", "hello", "hi", "continue", "great", "good")
)
# What a program wrote in the user's name: elements, caveats, notes in brackets, summaries, skills,
# the prompt of a shell and what was printed after it.
BY_A_PROGRAM = re.compile(
    r"\s*(<|Caveat:|\[Request|# AGENTS|This session is being continued|Base directory for)"
    r"|~\S* \(.*\)\n"
)
# A text that is longer, or has headings, is a document that was pasted.
LONGEST_MESSAGE = 2_000
HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


def recorded_messages(path: Path) -> list[Message]:
    """Return the messages of a file's first session, those before a compaction as well."""
    recording = next(iter(recordings_in(path)))
    sent = (message for call in recording.calls for message in call.new)
    each = {id(message): message for message in chain(sent, recording.after)}
    return [message for message in each.values() if BUILT_IN.role(message) != "system"]


def pieces(messages: Sequence[Message], count: int) -> list[list[Message]]:
    """Cut a list into so many pieces, none of which begins with a result."""
    results = {item.message for item in items_of(messages) if item.kind == "tool_result"}
    cuts = [0]
    for number in range(1, count):
        cut = max(len(messages) * number // count, cuts[-1])
        while cut < len(messages) and cut in results:
            cut += 1
        cuts.append(cut)
    bounds = [*cuts, len(messages)]
    return [list(messages[a:b]) for a, b in pairwise(bounds) if a < b]


def instructions(messages: Sequence[Message]) -> list[str]:
    """Return the sentences that the user typed, spaces evened out."""
    typed = [
        item.text
        for item in items_of(messages)
        if item.kind == "user_message"
        and item.author not in ("program", "summary")
        and not BY_A_PROGRAM.match(item.text)
        and not HEADING.search(item.text)
        and len(item.text) <= LONGEST_MESSAGE
    ]
    sentences = (
        " ".join(sentence.split())
        for text in typed
        for line in text.split("\n")
        for sentence in re.split(r"(?<=[.!?])\s+", line)
    )
    return [
        sentence
        for sentence in sentences
        if re.search(r"[^\W\d]", sentence) and evened(sentence) not in HEARD
    ]


def evened(text: str) -> str:
    """Return the text without marks of lists, case, and the sign at its end."""
    return re.sub(r"[\s*•❯>-]+", " ", text).strip().casefold().rstrip(".: !")
