"""Contents of a context made from pieces such as `40 Bash results of 3,000 tokens`.

Texts have an exact size, no two are alike, and they are the same in every run. `MessageBuilder`
puts pieces into messages of either API.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from policyctx.definitions.items import PlainValue
from policyctx.errors import present
from policyctx.replay.readers import building
from policyctx.testing.failures import WordingError
from policyctx.testing.kinds import COUNT_WORD, KINDS, Kind, Size, count, size, unquoted

# With the space before it, each is one token of every vocabulary and four characters.
_WORDS = re.findall(
    r"\w+",
    """
    the and for are but not you all can had her was one our out day get has him his how man new now
    old see two way who did its let put say she too use any may run set top end big far few own ask
    try red hot low air men led yet off per act age ago job law war web map key log row bit box car
    cup dog eye fly fun guy hit ice
    """,
)
_CYCLE = "".join(f" {word}" for word in _WORDS)
_WORD_CHARS = 4
_LINE_CHARS = 72
_SIGNATURE = "EqoBCkgIARABGAIi"
Message = dict[str, Any]
Shape = Literal["Anthropic", "OpenAI", "OpenAI Responses"]


def filler(size: Size, serial: int) -> str:
    """Return the text of this size that belongs to the `serial` number, 0 or more.

    Its tokens are those that each tokenizer counts for the text by itself.
    """
    if size.unit == "tokens":
        return _spaced_words(size.number, serial)
    text = _characters(size.number, serial)
    lines = (text[i : i + _LINE_CHARS] for i in range(0, len(text), _LINE_CHARS + 1))
    return "\n".join(lines).ljust(size.number, ".")[: size.number]


def filler_blocks(
    size: Size, serial: int, kind: str = "text", *, as_json: bool = False
) -> list[dict[str, Any]]:
    """Return one text block of a type: its text has the size, or its compact JSON the characters.

    Raises `WordingError` where no block is that small.
    """
    if size.unit == "tokens":
        return [{"type": kind, "text": filler(size, serial)}]
    around = len(compact([{"type": kind, "text": ""}])) if as_json else 0
    if size.number < around:
        raise WordingError(f"the JSON of a text block has {around} characters or more, not {size}")
    return [{"type": kind, "text": _characters(size.number - around, serial)}]


def compact(content: object) -> str:
    """Return the JSON that stands for content which is not a plain text, as policies measure it."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def parts_of(value: object) -> Iterator[object]:
    """Yield a value, and all that is in it if it is a map or a list."""
    yield value
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from parts_of(part)


def _characters(count: int, serial: int) -> str:
    return f"{serial}{_spaced_words(count // 4 + 1, serial)}"[:count]


def _spaced_words(count: int, serial: int) -> str:
    """Return words with a space before each: the digits of `serial`, then the list in a cycle."""
    base = len(_WORDS)
    digits = [serial // base**2 % base, serial // base % base, serial % base]
    first = "".join(f" {_WORDS[digit]}" for digit in digits)
    cycle = _CYCLE * ((serial % base + count) // base + 1)
    return (first + cycle[serial % base * _WORD_CHARS :])[: count * _WORD_CHARS]


Noun = Literal["result", "user message", "assistant message", "system message"]

_PHRASE = (
    rf"(?P<count>an?|{COUNT_WORD}|{KINDS['number'].regex})"
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

    def content(self, serial: int, kind: str = "text", *, as_json: bool = False) -> PlainValue:
        """Return the content of the piece with this number, its blocks of this type.

        `as_json` says that the size of blocks is that of their JSON.

        Raises `WordingError` where no block is as small as its size.
        """
        if self.text is not None:
            return [{"type": kind, "text": self.text}] if self.in_blocks else self.text
        whole = present(self.size)
        if self.start:
            return self.start + filler(Size(whole.number - len(self.start), "characters"), serial)
        if self.in_blocks:
            return filler_blocks(whole, serial, kind, as_json=as_json)
        return filler(whole, serial)


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


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result and, where its tool is known, the call that it answers."""

    id: str
    content: Any
    tool: str | None = None
    failed: bool = False


@dataclass(slots=True)
class MessageBuilder:
    """Turns pieces into new messages; it only counts, so that no two pieces are alike."""

    shape: Shape = "Anthropic"
    measures_json: bool = False
    """Whether the policy saves and measures blocks as JSON, and not as their texts."""
    _serial: int = field(default=0, init=False)

    def serial(self) -> int:
        """Return the next number: 1, 2, 3, …"""
        self._serial += 1
        return self._serial

    @property
    def has_items(self) -> bool:
        """Whether each call and each result is an item of its own, as in the Responses API."""
        return self.shape == "OpenAI Responses"

    @property
    def text_type(self) -> str:
        """The type of a text block in a message of the user or in a result."""
        return "input_text" if self.has_items else "text"

    def messages(self, pieces: Pieces) -> list[Message]:
        """Return the messages that the pieces are; a result with a tool comes after its call."""
        if pieces.noun != "result":
            role = pieces.noun.removesuffix(" message")
            return [self.message(role, self.content(pieces)) for _ in range(pieces.count)]
        results = self.results(pieces)
        batches = [results] if pieces.in_parallel else [[result] for result in results]
        return [m for batch in batches for m in (*self.calls(batch), *self.answers(batch))]

    def results(self, pieces: Pieces) -> list[ToolResult]:
        """Return the results that the pieces are, each with an id of its own."""
        made = []
        for _ in range(pieces.count):
            content = self.content(pieces)
            id_ = f"call_{self._serial}" if pieces.id is None else pieces.id
            made.append(ToolResult(id_, content, pieces.tool, pieces.failed))
        return made

    def content(self, pieces: Pieces) -> PlainValue:
        """Return the content of the next one of the pieces."""
        return pieces.content(self.serial(), self.text_type, as_json=self.measures_json)

    def calls(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return the calls of these results, one message or an item each; empty without tools."""
        known = [(result.id, result.tool) for result in results if result.tool is not None]
        if self.has_items:
            return [self.call([one]) for one in known]
        return [self.call(known)] if known else []

    def call(self, calls: Sequence[tuple[str, str]], arguments: object = None) -> Message:
        """Return an assistant message that calls each (id, tool) with these arguments.

        An item of the Responses API holds one call.
        """
        given = {} if arguments is None else arguments
        if self.has_items:
            [(id_, tool)] = calls
            item = {"type": "function_call", "call_id": id_, "name": tool}
            return {**item, "arguments": compact(given)}
        if self.shape == "Anthropic":
            blocks = [building.tool_use(id_, tool, given) for id_, tool in calls]
            return {"role": "assistant", "content": blocks}
        made = [building.function_call(id_, tool, given) for id_, tool in calls]
        return {"role": "assistant", "content": None, "tool_calls": made}

    def answers(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return the results: in one message of blocks, or each as its own."""
        if self.shape == "Anthropic":
            made = (building.tool_result(r.id, r.content, is_error=r.failed) for r in results)
            return [{"role": "user", "content": [*made]}]
        if self.has_items:
            return [
                {"type": "function_call_output", "call_id": one.id, "output": one.content}
                for one in results
            ]
        return [building.tool_message(one.id, one.content) for one in results]

    def message(self, role: str, content: PlainValue) -> Message:
        """Return a message with text; its content is as given, in an item as a list."""
        if not self.has_items:
            return {"role": role, "content": content}
        kind = "output_text" if role == "assistant" else "input_text"
        blocks = [{"type": kind, "text": content}] if isinstance(content, str) else content
        return {"type": "message", "role": role, "content": blocks}

    def thinking(self, text: str) -> Message:
        """Return a block with thinking, or an item with reasoning."""
        if not self.has_items:
            return building.thinking(text, _SIGNATURE)
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "summary": summary, "encrypted_content": _SIGNATURE}
