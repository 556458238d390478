"""What commands print: tables for people, JSON for programs, plain text where no terminal is."""

import json
import os
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from policyctx.definitions.items import HostObject
from policyctx.errors import HIDDEN, Diagnostic, visible
from policyctx.messages.json_text import with_escaped_halves

# The width of tables where no terminal is and `COLUMNS` gives none.
_PIPED_WIDTH = 120
# A column that may be wrapped keeps this many characters before the others are wrapped as well.
_WRAPPED_WIDTH = 20
_FEW_COLUMNS, _MANY_COLUMNS = 20, 10_000
# Escapes of JSON, which escapes the characters below U+0020 by itself; as UTF-16.
_JSON_ESCAPES = {
    code: json.dumps(chr(code))[1:-1]
    for code in HIDDEN
    if code > 0x7F  # noqa: PLR2004 - ASCII
} | {0x7F: "\\u007f"}
_THOUSAND = 1_000


class _Console(Console):
    """A console that shows control characters instead of obeying them, and wraps no sentence.

    Where no terminal is, lines have no spaces at their ends.
    """

    def print(self, *objects: HostObject, **options: HostObject) -> None:
        shown = [visible(o) if isinstance(o, str) else o for o in objects]
        if all(isinstance(one, str | Text) for one in shown):
            options.setdefault("soft_wrap", True)
        if self.is_terminal:
            super().print(*shown, **options)
            return
        with self.capture() as printed:
            super().print(*shown, **options)
        lines = printed.get().split("\n")
        self.file.write("\n".join(line.rstrip(" ") for line in lines))

    def out(self, *objects: HostObject, sep: str = " ", end: str = "\n", **_: HostObject) -> None:
        """Write text without laying it out, which takes the library long where it is long."""
        self.file.write(visible(sep.join(map(str, objects))) + end)


def console(*, stderr: bool = False) -> Console:
    """Return a console: colours and the terminal's width on a terminal, plain lines elsewhere.

    Without a terminal, tables are 120 columns wide and sentences are never wrapped. `COLUMNS` sets
    another width, for sentences as well.
    """
    stream = sys.stderr if stderr else sys.stdout
    wanted = _columns()
    is_piped = wanted is None and not stream.isatty()
    return _Console(
        stderr=stderr,
        width=_PIPED_WIDTH if is_piped else wanted,
        soft_wrap=is_piped,
        highlight=False,
        emoji=False,
        markup=False,
    )


def _columns() -> int | None:
    """Return the width that `COLUMNS` asks for, None where it holds no usable number."""
    wanted = os.environ.get("COLUMNS", "")
    if not wanted.isdecimal() or not int(wanted):
        return None
    return min(max(int(wanted), _FEW_COLUMNS), _MANY_COLUMNS)


class Grid:
    """A table whose `numeric` columns are set flush right; lines only on a terminal.

    Numbers are never wrapped. The columns in `whole` are wrapped only where they do not fit, and
    never in a pipe, whose lines get longer instead. The others are wrapped between words where
    possible. A cell that is a tuple of texts has a line for each.

    It is written line by line where it fits; else the library wraps it. The library takes a
    millisecond for each row, which a store with thousands of contents has.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        numeric: Collection[str] = (),
        whole: Collection[str] = (),
        has_head: bool = True,
    ) -> None:
        self._head = [columns] if has_head else []
        self.columns, self._numeric, self._whole = columns, frozenset(numeric), whole
        self._rows = [tuple(map(_cell, row)) for row in rows]
        self._is_ruled = sys.stdout.isatty()
        by_column = zip(columns if has_head else [""] * len(columns), *self._rows, strict=True)
        self._widths = [max(map(cell_len, cells)) for cells in by_column]
        self._gaps = 3 * len(columns) - 1 if self._is_ruled else 2 * (len(columns) - 1)
        self.width = sum(self._widths) + self._gaps
        """The columns that the table takes where nothing of it is wrapped."""

    def __rich_console__(self, out: Console, options: ConsoleOptions) -> RenderResult:
        unwrapped, width = self._unwrapped()
        has_breaks = any("\n" in cell or "\t" in cell for row in self._rows for cell in row)
        if has_breaks or options.ascii_only or self.width > max(options.max_width, width or 0):
            yield self.wrapped(unwrapped, width)
        else:
            yield from self._lines(out)

    def _lines(self, out: Console) -> Iterator[Segment]:
        edge, gap = (" ", "   ") if self._is_ruled else ("", "  ")
        flush_right = [name in self._numeric for name in self.columns]

        def line(cells: Sequence[str]) -> str:
            parts = []
            for cell, width, is_right in zip(cells, self._widths, flush_right, strict=True):
                space = " " * (width - cell_len(cell))
                parts.append(space + cell if is_right else cell + space)
            return f"{edge}{gap.join(parts)}{edge}\n"

        rule = SIMPLE_HEAD.head_row_horizontal * (self.width - 2)
        around = (Segment("\n"),) if self._is_ruled else ()
        yield from around
        for head in self._head:
            yield Segment(line(head), out.get_style("table.header"))
            yield from (Segment(f" {rule}\n"),) if self._is_ruled else ()
        yield from (Segment(line(row)) for row in self._rows)
        yield from around

    def wrapped(self, unwrapped: Collection[str], width: int | None) -> Table:
        """Return the table as the library lays it out, which wraps what does not fit."""
        box = SIMPLE_HEAD if self._is_ruled else None
        made = Table(box=box, pad_edge=False, width=width, show_header=bool(self._head))
        for column in self.columns:
            made.add_column(
                column,
                justify="right" if column in self._numeric else "left",
                no_wrap=column in unwrapped,
                overflow="fold",
            )
        for row in self._rows:
            made.add_row(*map(Text, row))
        return made

    def _unwrapped(self) -> tuple[frozenset[str], int | None]:
        """Return the columns that are not wrapped, and the width if it is not the console's.

        Where the columns in `whole` do not fit, a pipe gets longer lines. Elsewhere the widest of
        them are wrapped.
        """
        out, kept = console(), set(self._whole)
        while kept:
            needed = [
                width if name in self._numeric | kept else min(width, _WRAPPED_WIDTH)
                for name, width in zip(self.columns, self._widths, strict=True)
            ]
            if (least := sum(needed) + self._gaps) <= out.width:
                break
            if out.soft_wrap:
                return self._numeric | kept, least
            widths = zip(needed, self.columns, strict=True)
            kept.remove(max((n, c) for n, c in widths if c in kept)[1])
        return self._numeric | kept, None


def print_wrapped(out: Console, text: str, indent: str = "") -> None:
    """Print a sentence in lines of the console's width, those after the first one indented.

    It is wrapped between words; a word that is longer than a line, such as a path, stays whole.
    Where the console wraps no sentence, it is one line.
    """
    if out.soft_wrap:
        out.print(in_one_line(text))
        return
    wrapped = textwrap.wrap(
        in_one_line(text),
        max(out.width, _FEW_COLUMNS),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    for line in wrapped:
        out.print(line)


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters; a longer one loses its middle."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def in_one_line(text: str) -> str:
    """Return text for people, with an escape for each line end too: names may be a model's own."""
    return visible(text).replace("\n", "\\n")


def _cell(value: object) -> str:
    if type(value) is tuple:
        return "\n".join(map(in_one_line, value))
    return f"{value:,}" if isinstance(value, int) else in_one_line(str(value))


def json_text(value: object, *, indent: int | None = 2) -> str:
    """Return JSON that any reader takes and any terminal shows.

    What the encoding of stdout cannot carry is escaped, and so is every control or hidden
    character.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent).translate(_JSON_ESCAPES)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def print_json(value: object, *, stderr: bool = False) -> None:
    """Print a report for programs."""
    console(stderr=stderr).out(json_text(value))


def write_json(text: str) -> None:
    """Write JSON to stdout as it is; on a terminal hidden characters are escapes in it."""
    if sys.stdout.isatty():
        text = text.translate(_JSON_ESCAPES)
    sys.stdout.buffer.write(json_bytes(text))
    sys.stdout.buffer.flush()


def json_bytes(text: str) -> bytes:
    """Return JSON in UTF-8, in which halves of characters are escapes."""
    return with_escaped_halves(text.encode("utf-8", "surrogatepass"))


def moment(at: float | None, form: str, *, here: bool = True) -> str:
    """Return a time as people read it, here or in UTC; "" for one that no calendar has."""
    try:
        when = None if at is None else datetime.fromtimestamp(at, UTC)
        return "" if when is None else f"{when.astimezone() if here else when:{form}}"
    except (OverflowError, OSError, ValueError):
        return ""


def saving(before: int, after: int) -> str:
    """Return `35,624 → 16,247 tokens (−54 %)`."""
    if before == after:
        return f"{before:,} tokens, unchanged"
    share = round(100 * (before - after) / before)
    change = f"−{share}" if share >= 0 else f"+{-share}"
    return f"{before:,} → {after:,} tokens ({change} %)"


def option(text: str, *names: str, **more: HostObject) -> HostObject:
    """Return an option by what its help says; without names it has that of the parameter."""
    return typer.Option(*names, help=text, **more)


def argument(metavar: str, text: str, **more: HostObject) -> HostObject:
    """Return an argument by its name and what its help says."""
    return typer.Argument(metavar=metavar, help=text, **more)


def group() -> typer.Typer:
    """Return a group for commands, without options; the list of commands has name and help."""
    made = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    made.callback()(lambda: None)  # else a group of one command is that command
    return made


Policy: TypeAlias = Annotated[str, argument("POLICY", "A preset's name or a policy file's path.")]
Messages: TypeAlias = Annotated[
    str,
    argument(
        "MESSAGES",
        "A JSON file: an array of messages, a request body, or a recorded session of"
        " Claude Code, Codex and others. `-` is stdin.",
    ),
]
Root: TypeAlias = Annotated[
    Path | None, option("Folder for offloaded content, in place of the policy's own.")
]
Directory: TypeAlias = Annotated[
    Path,
    option(
        "A folder in place of the working directory.",
        exists=True,
        file_okay=False,
        show_default=False,
    ),
]
ExtendsFrom: TypeAlias = Annotated[
    list[Path],
    option(
        "A folder outside of the project that `extends` may read from, also given by"
        " POLICYCTX_EXTENDS_FROM. May be repeated."
    ),
]
SessionId: TypeAlias = Annotated[str | None, option("The session's id; a new one by default.")]
Recorded: TypeAlias = Annotated[
    str | None,
    option(
        "Which session of a file with several: its name, the part after `#`, or its number;"
        " the first by default. `?` lists them.",
        "--session",
        metavar="NAME",
    ),
]
Call: TypeAlias = Annotated[
    int | None,
    option(
        "The list that call N of a recorded session was made with; by default the list at the"
        " session's end.",
        metavar="N",
        min=1,
    ),
]
Partial: TypeAlias = Annotated[
    bool, option("Read recordings also if more than a tenth of one is not understood.", "--partial")
]
Json: TypeAlias = Annotated[bool, option("Report as JSON.", "--json")]

# The word that a place is at: a quoted scalar, a field of a text, or all up to where YAML ends a
# plain one.
_WORD = re.compile(
    r"""'[^']*'|"[^"]*"|\{(?:[^{}\s'"]*|[^{}:,'"]*)\}"""
    r"""|[^\s,\[\]{}#][^,\[\]{}#]*?(?=\s*(?::\s|:$|[,\[\]{}#]|$))|."""
)
# A longer line is shown around its place only.
_SHOWN_CHARS = 120


class Format(StrEnum):
    """How to show diagnostics."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def shown(diagnostics: Iterable[Diagnostic], form: Format) -> str:
    """Return the diagnostics in the given form, without a newline at the end.

    Control and hidden characters are shown as escapes.
    """
    if form is Format.JSON:
        return json_text([_plain(d) for d in diagnostics])
    one = _for_github if form is Format.GITHUB else _for_people
    return "\n".join(map(one, diagnostics))


def _for_people(diagnostic: Diagnostic) -> str:
    """`file:line:column: code: sentence`, then the line with a caret under the word."""
    place = diagnostic.place
    if not place.line or not place.source_line.strip():
        return visible(str(diagnostic))
    start = max(0, place.column - 1 - _SHOWN_CHARS // 2)
    line = place.source_line[start : start + _SHOWN_CHARS]
    before, rest = line[: place.column - 1 - start], line[place.column - 1 - start :]
    word = _WORD.match(rest)
    under_word = visible(word.group() if word else "^")
    number, carets = f"{place.line:5}", "^" * max(1, cell_len(under_word))
    margin = " " * len(number)
    under = "".join("\t" if char == "\t" else " " * cell_len(char) for char in visible(before))
    said, line = visible(str(diagnostic)), visible(line)
    return f"{said}\n{number} | {line}\n{margin} | {under}{carets}"


def _for_github(diagnostic: Diagnostic) -> str:
    """A workflow command, which GitHub shows beside the line of a pull request."""
    place, text = diagnostic.place, diagnostic.sentence
    text = f"{text}; {diagnostic.hint}" if diagnostic.hint else text
    file = _escaped(place.file).replace(":", "%3A").replace(",", "%2C")
    fields = f"file={file},title={diagnostic.code}"
    if place.line:
        fields += f",line={place.line},col={place.column}"
    return f"::{diagnostic.severity} {fields}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\n", "%0A")


def _plain(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "file": diagnostic.place.file,
        "line": diagnostic.place.line,
        "column": diagnostic.place.column,
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "sentence": diagnostic.sentence,
        "hint": diagnostic.hint,
    }


def short(number: int) -> str:
    """Return a number in at most five characters: `812`, `16.2k`, `1.35M`."""
    if number < _THOUSAND:
        return str(number)
    for unit in "kMG":
        value = number / _THOUSAND ** ("kMG".index(unit) + 1)
        if value < _THOUSAND - 0.5 or unit == "G":
            return f"{value:.3g}{unit}" if value < 100 else f"{value:.0f}{unit}"  # noqa: PLR2004
    raise AssertionError


def percent(share: float, *, digits: int = 0) -> str:
    """Return a signed share: `−45 %`, `+2 %`, `0 %`."""
    if share in {float("inf"), float("-inf")}:
        return "all"
    text = f"{100 * share:+.{digits}f} %".replace("-", "−")
    return text[1:] if float(f"{100 * share:.{digits}f}") == 0 else text


def signed_dollars(amount: float, unit: str = "") -> str:
    """Return signed dollars: `−12.34`, `+0.41`, `0.00`; with a unit it follows the sign."""
    sign = "" if float(f"{amount:.2f}") == 0 else "+" if amount > 0 else "−"
    return f"{sign}{unit}{abs(amount):,.2f}"
