"""What a step puts into a context: `40 Bash results of 3,000 tokens`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from policyctx.testing.failures import WordingError
from policyctx.testing.filler import filler, filler_blocks
from policyctx.testing.kinds import KINDS, NUMBER_WORDS, Kind, Size, count, size, unquoted

if TYPE_CHECKING:
    from collections.abc import Callable

Noun = Literal["result", "user message", "assistant message", "system message"]

_PHRASE = (
    rf"(?P<count>an?|{'|'.join(NUMBER_WORDS)}|{KINDS['number'].regex})"
    r"(?P<parallel> parallel)?(?P<failed> failed)?"
    rf"(?: (?P<tool>{KINDS['name'].regex}))??"
    rf" (?P<noun>result|user message|assistant message|system message)s?"
    rf"(?: (?P<id>{KINDS['text'].regex}))?"
    rf"(?: of (?P<size>{KINDS['size'].regex})(?P<blocks> in blocks)?"
    rf"(?: that begins? with (?P<start>{KINDS['text'].regex}))?"
    rf"| that reads? (?P<text>{KINDS['text'].regex}))?"
    rf"(?: from (?P<source>{KINDS['name'].regex}))?(?: that reads?)?"
)
# The same for a sentence, which names groups of its own.
PIECES = Kind(re.sub(r"\?P<\w+>", "?:", _PHRASE), str, "what is put into the context, see below")
_READ = re.compile(_PHRASE)

EXAMPLES = (
    "a result of 2500 characters",
    'a result "toolu_01abc" of 2500 characters from Bash',
    'a result "b" of 1500 characters in blocks',
    'a result "c" that reads "exit code 0"',
    "a failed result of 300 characters from Bash",
    "40 Bash results of 3,000 tokens",
    "3 parallel Bash results of 500 characters",
    "a user message of 5000 characters",
    'a user message of 5000 characters that begins with "Base directory"',
    'an assistant message that reads "done"',
)
_FORM = "\n  ".join(EXAMPLES)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A number of results, or of messages with text, of one size or with one text."""

    noun: Noun
    count: int = 1
    tool: str | None = None
    """Whose results they are; None for results whose calls are not in the context."""
    id: str | None = None
    """Of one result; the others are numbered."""
    size: Size | None = None
    text: str | None = None
    start: str = ""
    """What the text begins with; its size is that of all of it."""
    in_blocks: bool = False
    in_parallel: bool = False
    """The calls are of one message, and the results too."""
    failed: bool = False

    def content(self, serial: int) -> Any:  # noqa: ANN401 - a text, or blocks
        """Return the content of the piece with this number.

        Raises `WordingError` where no block is as small as its size.
        """
        if self.text is not None:
            return [{"type": "text", "text": self.text}] if self.in_blocks else self.text
        assert self.size is not None  # noqa: S101 - `pieces` sees to that
        if self.start:
            return self.start + filler(
                Size(self.size.number - len(self.start), "characters"), serial
            )
        make: Callable[[Size, int], Any] = filler_blocks if self.in_blocks else filler
        return make(self.size, serial)


def pieces(phrase: str, *, tool: str | None = None, text: str | None = None) -> Pieces:
    """Read a phrase such as those of `EXAMPLES`; `tool` and `text` fill in what it leaves out.

    Raises `WordingError`, which lists the examples, when it is none.
    """
    match = _READ.fullmatch(phrase)
    if match is None:
        raise WordingError(f"{phrase!r} is no piece of a context; it is written\n  {_FORM}")
    found = Pieces(
        noun=cast("Noun", match["noun"]),
        count=1 if match["count"] in {"a", "an"} else int(count(match["count"])),
        tool=next((unquoted(t) for t in (match["tool"], match["source"]) if t), tool),
        id=None if match["id"] is None else unquoted(match["id"]),
        size=size(match["size"]) if match["size"] else None,
        text=text if match["text"] is None else unquoted(match["text"]),
        start="" if match["start"] is None else unquoted(match["start"]),
        in_blocks=bool(match["blocks"]),
        in_parallel=bool(match["parallel"]),
        failed=bool(match["failed"]),
    )
    return _checked(found, phrase)


def _checked(found: Pieces, phrase: str) -> Pieces:
    if found.noun != "result" and (found.tool or found.id or found.failed or found.in_parallel):
        raise WordingError(
            f"{phrase!r}: only a result has a tool, an id, a failure or parallel ones"
        )
    if found.id is not None and found.count > 1:
        raise WordingError(f"{phrase!r}: {found.count} results cannot have one id; write each")
    if found.start and (found.in_blocks or found.size is None or found.size.unit == "tokens"):
        raise WordingError(
            f"{phrase!r}: what begins with a text is no block, of so many characters"
        )
    if found.start and found.size and found.size.number < len(found.start):
        raise WordingError(f"{phrase!r}: the text that it begins with is longer")
    if found.size is None and found.text is None:
        raise WordingError(f'{phrase!r}: say `of 300 characters`, or `that reads "…"`')
    return found if found.size is None or found.text is None else replace(found, size=None)
