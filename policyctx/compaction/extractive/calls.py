"""`Call`: a tool's call and its result, as a summary tells of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import ToolCount
from policyctx.compaction.extractive.sentences import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.messages.reading import Reading

# Characters of a call's name in the summary, and of an error.
_LONGEST_NAME = 100
_LONGEST_ERROR = 200
# What tells that a result failed stands at its beginning or its end.
_LOOKED_AT = 300

_EXIT = re.compile(r"exit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}[1-9]", re.IGNORECASE)
_SAID = re.compile(r'\W{0,3}"?(?:error"?:\s*"[^"]|success"?:\s*false)', re.IGNORECASE)
_BEFORE_WORDS = re.compile(r"(?:\W|<[\w-]+>)*")
_EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?::|\s*$)", re.MULTILINE)
_PATH_FIELDS = re.compile(r"path|file|uri|notebook", re.IGNORECASE)


class Call(NamedTuple):
    """One call."""

    tool: str
    message: int
    """0-based position of the message that makes it."""
    text: str
    """Its input, as the text of its item."""
    fields: Mapping[str, object]
    """Its input, read; empty when that is no JSON object."""
    result: str | None
    """The words of its result; None without one."""
    result_message: int
    failed: bool

    @property
    def path(self) -> str | None:
        """The path in its input, where a field is named for one."""
        for field, value in self.fields.items():
            if _PATH_FIELDS.search(field) and isinstance(value, str) and _is_path(value):
                return value
        return None

    @property
    def name(self) -> str:
        """The tool and what it was called for, in one line: one name for one thing tried."""
        first = (value for value in self.fields.values() if isinstance(value, str) and value)
        subject = self.path or next(first, self.text if self.text not in ("{}", "null") else "")
        line = shortened(one_line(subject), _LONGEST_NAME).replace(" => ", " = > ")
        return f"{one_line(self.tool)} {line}".strip()


def calls_in(reading: Reading, skipped: frozenset[int], cues: Cues) -> Iterator[Call]:
    """Yield the calls of a conversation, in order, but for those in skipped messages."""
    items, partners = reading.items, reading.partners
    for position, item in enumerate(items):
        if item.kind != "tool_call" or item.message in skipped:
            continue
        result = items[partners[position]] if position in partners else None
        said = None if result is None else words_of(result.text)
        failed = result is not None and (result.error or _failed(said or "", cues))
        yield Call(
            item.tool or "unnamed", item.message, item.text, _fields(item.text),
            said, -1 if result is None else result.message, failed,
        )  # fmt: skip


def words_of(text: str) -> str:
    """Return the words of a result: of a list of blocks, the texts in it."""
    if not text.startswith('[{"'):
        return text
    try:
        blocks = json.loads(text)
    except (ValueError, RecursionError):
        return text
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return "\n".join(part for part in texts if isinstance(part, str)) or text


def _fields(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_path(value: str) -> bool:
    longest = 400
    return 0 < len(value) <= longest and "\n" not in value


def _failed(text: str, cues: Cues) -> bool:
    """Whether a result reads like a failure, as those without a flag must be told."""
    start, ends = text[:_LOOKED_AT], text[-_LOOKED_AT:]
    said = _tells(start, cues) or _SAID.match(start)
    return bool(said or _EXIT.search(start) or _EXIT.search(ends))


def error_in(text: str, cues: Cues) -> str:
    """Return the line of a failed result that tells most: the last one that names a failure."""
    lines = [line for line in text[-_LOOKED_AT * 20 :].split("\n") if line.strip()]
    telling = (line for line in reversed(lines) if _tells(line, cues))
    line = next(telling, lines[0] if lines else "failed")
    return shortened(one_line(line), _LONGEST_ERROR)


def _tells(line: str, cues: Cues) -> bool:
    """Whether a line begins with a failure, or with an exception as it is printed."""
    begins = _BEFORE_WORDS.match(line)
    at = begins.end() if begins else 0
    return bool(cues.failures.match(line, at) or _EXCEPTION.match(line, at))


def counted(earlier: Iterable[ToolCount], calls: Sequence[Call]) -> tuple[ToolCount, ...]:
    """Return the tools with their calls, those of earlier summaries included, most calls first."""
    counts: dict[str, list[int]] = {}
    for tool in earlier:
        _add(counts, tool.name, (tool.calls, tool.failed, tool.unanswered))
    for call in calls:
        _add(counts, one_line(call.tool), (1, int(call.failed), int(call.result is None)))
    tools = (ToolCount(name, *sums) for name, sums in counts.items())
    return tuple(sorted(tools, key=lambda tool: -tool.calls))


def _add(counts: dict[str, list[int]], name: str, numbers: tuple[int, int, int]) -> None:
    sums = counts.setdefault(name, [0, 0, 0])
    for i, number in enumerate(numbers):
        sums[i] += number
