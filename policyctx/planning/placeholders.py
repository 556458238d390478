"""The texts that a policy leaves in place of items, and how they are recognised in a list.

A placeholder may show an excerpt: the beginning and the end of the text that it replaces. A line
ends with a newline (U+000A), which a carriage return may precede; no other character ends a line.

Placeholders and the messages of a compaction are recognised by the wordings of the policy where no
ledger has a record of them, such as in a list that an earlier call or another session has edited.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from policyctx.definitions.items import READ_TOOL, FileLines, Item, recall_tool
from policyctx.definitions.names import (
    DEFAULT,
    EXCERPT_FIELDS,
    FILE_FIELDS,
    GAP_FIELDS,
    HOW_TO_READ,
    PLACEHOLDER_FIELDS,
    READ_AGAIN,
    REPLACED_IS_IN,
    RESTORED_FIELDS,
    SUMMARY_FIELDS,
    TEXT_FIELDS,
)
from policyctx.messages.shapes.shape import REMOVED
from policyctx.paths import File, hash_name, numbered_forms, path_from
from policyctx.planning.facts import Facts
from policyctx.policy.models.compaction import CompactionWording
from policyctx.policy.models.rules import Extent, Placeholder
from policyctx.policy.values import Template, parsed_template
from policyctx.tokens.counter import TokenCounter

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_OF_FILE = frozenset(FILE_FIELDS)
_NAMES_TOOL = re.escape(HOW_TO_READ.format(tool="TOOL")).replace("TOOL", "[^\n]+")
_HASH_NAME = "sha256-[0-9a-f]{16}"
_OF_ITEM = frozenset({"item_id", "tool_name", "tool_use_id", "session_id"})
_HASHED_CHARS = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a text that is shown, and the amount that is not.

    Where no line was cut or numbered, `head` is a prefix of the text and `tail` a suffix of what
    comes after it.
    """

    head: str
    tail: str
    omitted_lines: int
    """Lines of which nothing is shown."""
    omitted_chars: int
    """Code points that are not shown, those hidden in cut lines among them."""
    between: int = dataclasses.field(default=0, compare=False)
    """Code points between head and tail."""


def excerpt(text: str, wording: Placeholder, counter: TokenCounter) -> Excerpt:
    """Return the head and the tail of `text` that `wording` asks for; one not asked for is empty.

    Both measure the text itself; the marks of cut lines and the numbers come on top. The head has
    precedence: the tail is taken from what it leaves.

    `lines: N` is the first or last N lines, each with the newline that ends it; `chars: N` is N
    code points. `tokens: N` is at most N tokens by `counter`, where one code point more would be
    more than N. A few more than one may have N tokens again, since a whole word can have fewer
    tokens than a part of it. A code point is never cut; a sign made of several may be.

    `max_line_chars` leaves so many code points of what is shown of a line, then `cut_mark`; the
    newline stays. `line_numbers` puts a line's number in the whole text before it, from 1, as wide
    as it says or as the largest number shown, and its separator; a line of which a part is shown
    has its number too.

    The time grows with what is shown, and with one look for newlines through the rest.
    """
    end = _head_end(text, wording.head, counter)
    start = _tail_start(text, end, wording.tail, counter)
    head_lines, tail_lines = line_count(text[:end]), line_count(text[start:])
    before_tail = text.count("\n", 0, start) if tail_lines else line_count(text)
    largest = before_tail + tail_lines if tail_lines else head_lines
    head, hidden_in_head = _shown(text[:end], wording, 1, largest)
    tail, hidden_in_tail = _shown(text[start:], wording, before_tail + 1, largest)
    return Excerpt(
        head=head,
        tail=tail,
        omitted_lines=max(before_tail - head_lines, 0),
        omitted_chars=start - end + hidden_in_head + hidden_in_tail,
        between=start - end,
    )


def line_count(text: str) -> int:
    """Return the number of lines; the last one needs no newline to be one."""
    return text.count("\n") + (text[-1:] not in {"", "\n"})


def _head_end(text: str, extent: Extent | None, counter: TokenCounter) -> int:
    """Return the end of the head."""
    if extent is None:
        return 0
    if extent.tokens is not None:
        return len(counter.truncate(text, extent.tokens))
    if extent.chars is not None:
        return min(extent.chars, len(text))
    end = 0
    for _ in range(extent.lines or 0):
        newline = text.find("\n", end)
        if newline < 0:
            return len(text)
        end = newline + 1
    return end


def _tail_start(text: str, end: int, extent: Extent | None, counter: TokenCounter) -> int:
    """Return the start of the tail, which is not before `end`, the end of the head."""
    size, left = len(text), len(text) - end
    if extent is None:
        return size
    if extent.tokens is not None:
        return size - len(counter.truncate(text[end:], extent.tokens, end=True))
    if extent.chars is not None:
        return size - min(extent.chars, left)
    start = size
    for _ in range(extent.lines or 0):
        # The newline right before `start` ends the line that is looked for.
        start = text.rfind("\n", end, max(start - 1, end)) + 1
        if start <= end:
            return end
    return start


def _shown(part: str, wording: Placeholder, first: int, largest: int) -> tuple[str, int]:
    """Return the part with lines cut and numbered from `first`, and the length of what is cut."""
    max_line_chars, numbers = wording.max_line_chars, wording.line_numbers
    if max_line_chars is None and numbers is None:
        return part, 0
    width = 0 if numbers is None else numbers.width or len(str(largest))
    lines, hidden = [], 0
    for number, match in enumerate(_LINE.finditer(part), first):
        line = match.group()
        ending = next(ending for ending in ("\r\n", "\n", "") if line.endswith(ending))
        over = len(line) - len(ending) - (max_line_chars or len(line))
        if over > 0:
            line = f"{line[:max_line_chars]}{wording.cut_mark}{ending}"
            hidden += over
        lines.append(line if numbers is None else f"{number:>{width}}{numbers.separator}{line}")
    return "".join(lines), hidden


_VALUES: dict[str, Callable[[Item, File, Facts], object]] = {
    "path": lambda _item, file, _facts: file.path,
    "relative_path": lambda _item, file, _facts: f"./{file.relative_path}",
    "store_path": lambda _item, file, _facts: file.relative_path,
    "cwd_path": lambda _item, file, facts: path_from(facts.cwd, file.path),
    "how_to_read": lambda _item, _file, facts: _how_to_read(facts.read_tool),
    "item_id": lambda item, _file, _facts: item.item_id,
    "item_type": lambda item, _file, _facts: item.type,
    "tool_name": lambda item, _file, _facts: item.tool or "",
    "tool_use_id": lambda item, _file, _facts: item.tool_use_id or "",
    "session_id": lambda _item, _file, facts: facts.session_id,
    "tokens": lambda item, _file, facts: facts.tokens(item),
    "chars": lambda item, _file, _facts: len(item.text),
    "lines": lambda item, _file, _facts: line_count(item.text),
    "sha256": lambda item, _file, _facts: content_hash(item.text),
    "source_path": lambda item, file, facts: _source(item, file, facts).path,
    "source_first_line": lambda item, file, facts: _source(item, file, facts).first,
    "source_last_line": lambda item, file, facts: _source(item, file, facts).last,
}


def _how_to_read(tool: str) -> str:
    """Return the sentence that names a tool of this library; an agent knows its own tools."""
    return HOW_TO_READ.format(tool=tool) if recall_tool(tool) == READ_TOOL else READ_AGAIN


def _source(item: Item, file: File, facts: Facts) -> FileLines:
    """Return the file that shows the item again: the one it was read from, else its own."""
    return facts.source(item) or FileLines(file.path, 1, line_count(item.text))


class Wording(NamedTuple):
    """A wording as a policy gives it, with its text parsed."""

    template: Template
    shown: Placeholder
    """How much of the item the wording shows."""

    @property
    def is_default(self) -> bool:
        """Whether this is the wording of a policy that gives none."""
        return self.shown.text == DEFAULT

    @property
    def names_file(self) -> bool:
        """Whether the wording shows the path of the item's file."""
        return not _OF_FILE.isdisjoint(self.template.fields)

    @property
    def tells_of_text(self) -> bool:
        """Whether the wording differs from text to text, and not from file to file alone."""
        return not TEXT_FIELDS.isdisjoint(self.template.fields)

    @classmethod
    def of(cls, placeholder: Placeholder) -> Wording:
        """Parse the text of a policy's `placeholder`."""
        return cls(parsed_template(placeholder.text, PLACEHOLDER_FIELDS), placeholder)


def rendered_placeholder(
    wording: Wording, item: Item, file: File, facts: Facts, *, string: str | None = None
) -> str:
    """Return the wording with its fields filled in; only the fields that it uses are computed.

    `string` is the one that is replaced in the input of a call; None where the item is replaced.
    """
    fields = wording.template.fields
    told = item if string is None else with_text(item, string)
    values = {
        name: _VALUES[name](told if name in TEXT_FIELDS else item, file, facts)
        for name in fields - EXCERPT_FIELDS
    }
    if fields & EXCERPT_FIELDS:
        values |= _excerpt_values(wording, told, facts)
    text = wording.template.render(values)
    if wording.is_default and facts.read_tool:
        text += "\n" + HOW_TO_READ.format(tool=facts.read_tool)
    return text if text.strip() else REMOVED


def with_text(item: Item, text: str) -> Item:
    """Return the item as if it were this text alone."""
    return item._replace(texts=text, counted_texts=text, media=())


def named_path(wording: Wording, item: Item, file: File, facts: Facts) -> str | None:
    """Return the path, below the root, that an item's text names as a placeholder, else None.

    The text is a placeholder if an earlier call left it: it has the form of the wording and names
    the item's own `file`, which may have a number, or the hash of another content where the item
    has no id. Without a field for the file in the wording the result is None.
    """
    pieces = wording.template.pieces
    if not wording.names_file:
        return None
    if not (item.text.startswith(pieces[0]) and item.text.endswith(pieces[-1])):
        return None
    how_to_read = f"(?:\n{_NAMES_TOOL})?" if wording.is_default else ""
    known = [re.escape(pieces[0])]  # what is between the fields that may hold anything
    for field, literal in zip(pieces[1::2], pieces[2::2], strict=True):
        form = _form(field, item, file, facts)
        known += [""] if form is None else []
        known[-1] += (form or "") + re.escape(literal)
    first, *rest = known
    # Each part is looked for once, behind the one before it: a long text takes no longer.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1])
    pattern = (f"{first}{between}.*{rest[-1]}" if rest else first) + how_to_read
    found = re.fullmatch(pattern, item.text, re.DOTALL)
    if found is None:
        return None
    named_by = next(field for field in pieces[1::2] if field in _OF_FILE)
    before = str(_VALUES[named_by](item, file, facts)).removesuffix(file.relative_path)
    return found[1].removeprefix(before)


def _form(field: str, item: Item, file: File, facts: Facts) -> str | None:
    """Return the regular expression of a field's value, None if it can be any; a path is a group.

    A name made of the item's text may have been made of the text that was there before.
    """
    if field in _OF_FILE:
        forms = numbered_forms(str(_VALUES[field](item, file, facts)))
        return f"({forms.replace(re.escape(hash_name(item.text)), _HASH_NAME)})"
    if field == "how_to_read":
        return f"(?:{_NAMES_TOOL}|{re.escape(READ_AGAIN)})"
    return re.escape(str(_VALUES[field](item, file, facts))) if field in _OF_ITEM else None


def _excerpt_values(wording: Wording, item: Item, facts: Facts) -> dict[str, object]:
    """Return the fields of an excerpt; whole lines are without the newline that ends the last.

    Where nothing is left out between the two, the gap is the newline that the head is without.
    """
    shown = wording.shown
    found = excerpt(item.text, shown, facts.counter)
    head, tail = _without_newline(found.head, shown.head), _without_newline(found.tail, shown.tail)
    values: dict[str, object] = {
        "omitted_lines": found.omitted_lines,
        "omitted_chars": found.omitted_chars,
    }
    if shown.outline is not None and "outline" in wording.template.fields:
        from policyctx.outlines.outline import outline

        values["outline"] = outline(item.text, shown.outline.tokens, facts.counter)
    gap = found.head[len(head) :] if found.tail else ""
    if found.between:
        values |= {"lines": line_count(item.text), "chars": len(item.text)}
        gap = _gap(shown.gap).render(values)
    return {**values, "head": head, "tail": tail, "gap": gap}


@lru_cache(maxsize=256)
def _gap(text: str) -> Template:
    return parsed_template(text, GAP_FIELDS)


def _without_newline(part: str, extent: Extent | None) -> str:
    if extent is None or extent.lines is None:
        return part
    return part.removesuffix("\n").removesuffix("\r")


def content_hash(text: str) -> str:
    """Return the sha256 of the text as it is saved, in hex."""
    found = hashlib.sha256()
    # In pieces, so that no long text is copied as a whole.
    for at in range(0, len(text), _HASHED_CHARS):
        found.update(text[at : at + _HASHED_CHARS].encode("utf-8", "surrogatepass"))
    return found.hexdigest()


class CompactionText(NamedTuple):
    """A text in the wording of a compaction."""

    item_type: str
    says: str
    """The summary without its wording; of a restored file the path."""


class CompactionForms:
    """The wordings of a policy's compactions; one that begins with a field recognises nothing."""

    def __init__(self, wordings: Iterable[CompactionWording]) -> None:
        self._forms: list[tuple[str, str, re.Pattern[str]]] = []
        replies: set[str] = set()
        for wording in wordings:
            replies |= {wording.summary_reply, wording.restored_reply}
            self._add(wording.summary, SUMMARY_FIELDS, "compaction_summary")
            self._add(wording.restored, RESTORED_FIELDS, "restored_file")
        self._replies = replies - {""}

    def left(self, text: str) -> CompactionText | None:
        """Return what a text of this form is, None for any other text."""
        for start, item_type, form in self._forms:
            if text.startswith(start) and (found := form.fullmatch(text)) is not None:
                return CompactionText(item_type, found[1] if form.groups else "")
        return None

    def is_reply(self, text: str) -> bool:
        """Return whether this is the assistant's scripted reply to a summary or a restored file."""
        return text in self._replies

    def _add(self, wording: str, fields: tuple[str, ...], item_type: str) -> None:
        start, *pieces = parsed_template(wording, fields).pieces
        if not start.strip():
            return
        pattern, told = re.escape(start), fields[0]
        for field, literal in zip(pieces[::2], pieces[1::2], strict=True):
            # The end of the text is where the last field ends: the first of two ends at once.
            some = ".*" if len(pieces) == 2 or field == "content" else ".*?"  # noqa: PLR2004
            some = rf"(?:\n\n{REPLACED_IS_IN}[^\n]*)?" if field == "how_to_search" else some
            pattern += f"({some})" if field == told else some
            pattern += re.escape(literal)
            told = "" if field == told else told
        # The wording of a compaction without a summary is all that it says.
        if not told or (told == "summary" and len(pieces) == 0):
            self._forms.append((start, item_type, re.compile(pattern, re.DOTALL)))
