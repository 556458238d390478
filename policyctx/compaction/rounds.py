"""What compactions in a row leave of a conversation: the extractive summary after each of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Literal, NamedTuple

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.fitting import SummaryLine
from policyctx.compaction.extractive.summary import summary_lines
from policyctx.definitions.items import Author, Item, Message
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.planning.superseded import PathFields
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.encoders import words_in


class SourcedLine(NamedTuple):
    """A line of a summary, or an entry of several lines, and where it comes from."""

    text: str
    message: int | None = None
    """0-based position of the message in the whole list; None for a heading, and for what is put
    together from several messages."""
    user: bool = False
    """Whether the user said it."""
    group: str = ""
    """The label of its group in the summary; empty for a heading or a label."""


@dataclass(frozen=True, slots=True)
class Round:
    """One compaction: what it replaced, and the summary that it left."""

    number: int
    """From 1 on."""
    messages: range
    """Positions of the messages that are new in this round."""
    replaced_tokens: int
    """Of these messages, and of the summary before them."""
    lines: tuple[SourcedLine, ...]
    tokens: int
    """Of the summary."""

    @property
    def summary(self) -> str:
        """The summary as one text."""
        return "\n".join(line.text for line in self.lines)

    @property
    def words(self) -> int:
        """The words of the summary; a CJK character is one."""
        return words_in(self.summary)


def rounds(
    messages: Sequence[Message],
    settings: Summary,
    counter: TokenCounter,
    *,
    count: int = 1,
    path_fields: Callable[[str], PathFields | None] = lambda _: None,
    author_of: Callable[[Item], Author | Literal[""]] = attrgetter("author"),
    shapes: Shapes = BUILT_IN,
    lines_of: Callable[..., Sequence[SummaryLine]] = summary_lines,
) -> Iterator[Round]:
    """Yield the rounds of a conversation that is compacted `count` times, each when it is made.

    The conversation is cut into parts of about equal size, where no call is open; a short one has
    fewer parts. Leading system messages are not summarised. `path_fields` returns the input fields
    with the path of the file that a tool reads, `author_of` who wrote an item. `lines_of` takes
    what `summary_lines` takes. Raises `MessagesError` if `messages` is no message list.
    """
    reading = Reading(shapes)
    reading.extend(messages)
    head = next((i for i, m in enumerate(messages) if shapes.role(m) != "system"), len(messages))
    sizes = [0] * len(messages)
    texts = counter.count_many([item.counted for item in reading.items])
    for item, tokens in zip(reading.items, texts, strict=True):
        sizes[item.message] += tokens
    tools = {item.tool for item in reading.items if item.tool is not None}
    reads_file = {tool: fields for tool in tools if (fields := path_fields(tool))}
    before, earlier_tokens = "", 0
    known: dict[str, int] = {}
    edges = _edges(reading, sizes, head, count)
    for number, (start, end) in enumerate(pairwise(edges), 1):
        new = list(messages[start:end])
        history = History(new, reads_file=reads_file, shapes=shapes, author_of=author_of)
        if before:
            summary: Message = {"role": "user", "content": before}
            history = History(
                [summary, *new],
                earlier={0: before},
                reads_file=reads_file,
                shapes=shapes,
                author_of=author_of,
            )
        offset = start - bool(before)
        written = lines_of(history, settings, counter=counter)
        lines = tuple(_sourced(written, offset, known))
        before = "\n".join(line.text for line in lines)
        replaced = sum(sizes[start:end]) + earlier_tokens
        earlier_tokens = counter.count(before)
        yield Round(number, range(start, end), replaced, lines, earlier_tokens)


def _sourced(
    written: Iterable[SummaryLine], offset: int, known: dict[str, int]
) -> Iterator[SourcedLine]:
    """Yield the lines of a summary, and note in `known` where each is from for the next round."""
    for line in written:
        if line.unit is None:
            yield SourcedLine(line.text)
            continue
        unit = line.unit
        message = known.get(unit.text) if unit.message < 0 else unit.message + offset
        if message is not None:
            known[unit.text] = message
        yield SourcedLine(line.text, message, unit.user, str(unit.group))


def _edges(reading: Reading, sizes: Sequence[int], head: int, count: int) -> list[int]:
    """Return the positions between which the parts lie: the first, and the end of each part."""
    open_until = [0] * len(sizes)
    for call, result in reading.partners.items():
        at, until = reading.items[call].message, reading.items[result].message
        open_until[at] = max(open_until[at], until)
    reach = list(accumulate(open_until, max))
    # A cut before message i parts no call from its result.
    cuts = [i for i in range(head + 1, len(sizes)) if reach[i - 1] < i]
    sums = list(accumulate(sizes, initial=0))
    total = sums[-1] - sums[head]
    edges = [head]
    for part in range(1, count):
        wanted = sums[head] + total * part // count
        at = bisect_left(cuts, bisect_left(sums, wanted))
        if at < len(cuts) and cuts[at] > edges[-1]:
            edges.append(cuts[at])
    return [*edges, len(sizes)] if len(sizes) > edges[-1] else edges
