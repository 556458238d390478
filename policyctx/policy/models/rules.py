"""Item types and tools: what they are, and how they are treated."""

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, Strict

from policyctx.definitions.items import Author, BuiltInType
from policyctx.definitions.names import (
    CUT_MARK,
    DEFAULT,
    GAP_FIELDS,
    NUMBER_SEPARATOR,
    PLACEHOLDER_FIELDS,
)
from policyctx.policy.models.base import Amount, Count, OneOrMore, Section, Text, such
from policyctx.policy.values import flag_or_map, secret_pattern, short_form, template_of

PathFields = Annotated[tuple[Text, ...], Field(min_length=1), Strict(strict=False), OneOrMore]


class Extent(Section):
    """How much of a text is shown: a number of lines, characters or tokens."""

    exactly_one: ClassVar = ("lines", "chars", "tokens")

    lines: Count | None = None
    """This many whole lines, without the newline that ends the last."""
    chars: Count | None = None
    """Exactly N characters, of a text that has as many."""
    tokens: Count | None = None
    """The most that fits into this many tokens, by `model.tokenizer`."""


class OutlineSize(Section):
    """How long an outline may be."""

    tokens: Annotated[Count, such(400)]
    """The most tokens that it has, by `model.tokenizer`."""


class LineNumbers(Section):
    """The format of the number before each line."""

    width: Annotated[int | None, Field(ge=1, examples=[6])] = None
    """The least number of characters; a shorter number has spaces before it. Default: as many as
    the largest number shown."""
    separator: str = NUMBER_SEPARATOR
    """What is between the number and the line."""


class Placeholder(Section):
    """The wording left in an item's place, and how much of the item it shows."""

    short_form: ClassVar = "text"

    text: Annotated[
        str,
        BeforeValidator(template_of(PLACEHOLDER_FIELDS)),
        Field(min_length=1, examples=["[{tool_name} result, {tokens} tokens, in {path}]"]),
    ] = DEFAULT
    """The wording, with its fields. The default one gets a line that names the tool to read the
    file with, if the session knows one."""
    head: Annotated[Extent | None, such({"lines": 10})] = None
    """What `{head}` shows of the beginning of the item's text."""
    tail: Annotated[Extent | None, such({"chars": 400})] = None
    """What `{tail}` shows of the end of the text; it never overlaps the head."""
    outline: Annotated[OutlineSize | None, such({"tokens": 400})] = None
    """What `{outline}` shows: what tells most, each row with its line. Of JSON and tables the
    shape, counts and odd rows; of logs and test output errors and totals; of a diff files and
    hunks; of search hits files and counts; of code definitions; of prose headings and first
    sentences. A text that fits is shown whole."""
    max_line_chars: Annotated[int, Field(ge=1)] | None = None
    """Longer lines of head and tail are cut to this many characters, and `cut_mark` is put after
    them."""
    cut_mark: Annotated[str, such(" [cut]")] = CUT_MARK
    """What comes after a line that is cut; empty for nothing."""
    gap: Annotated[
        str, BeforeValidator(template_of(GAP_FIELDS)), such("\n[{omitted_lines} lines left out]\n")
    ] = ""
    """What `{gap}` is where something is left out; its fields are `{omitted_lines}`,
    `{omitted_chars}`, `{lines}` and `{chars}`."""
    line_numbers: Annotated[
        LineNumbers | None,
        BeforeValidator(flag_or_map, json_schema_input_type=bool | LineNumbers | None),
        Field(examples=[True, {"width": 6, "separator": ": "}]),
    ] = None
    """Put before each line of head and tail its number in the whole text; `true` puts a tab
    between. Default: `false`."""


Wording = Annotated[
    Placeholder,
    BeforeValidator(short_form("text", str, "a string"), json_schema_input_type=Text | Placeholder),
]

Globs = Annotated[tuple[str, ...], Strict(strict=False), OneOrMore]


class Secret(Section):
    """What finds a secret in a text, and whether the secret is saved."""

    short_form: ClassVar = "pattern"

    pattern: Annotated[str, BeforeValidator(secret_pattern), Field(min_length=1)]
    """A regular expression of RE2; of one with a group, the group is the secret."""
    keep: bool = False
    """`true`: each secret that it finds is saved once in the session's journal, for a person; no
    tool of the agent reads it."""


Redaction = Annotated[
    Secret,
    BeforeValidator(short_form("pattern", str, "a string"), json_schema_input_type=Text | Secret),
]


class TextMatch(Section):
    """Strings that a text has; each one given must hold, of a list any."""

    at_least_one: ClassVar = ("startswith", "endswith", "contains")

    startswith: Annotated[Globs | None, such("Base directory for this skill:")] = None
    """It begins with this string, or one of these."""
    endswith: Globs | None = None
    """It ends with this string, or one of these."""
    contains: Globs | None = None
    """This string, or one of these, is in it."""


class Match(Section):
    """Which items are of a type of your own; each key given must hold."""

    type: BuiltInType
    """The built-in type that it refines."""
    tool: Annotated[Globs | None, such("mcp__*", ["web_*", "fetch"])] = None
    """The tool's name matches this glob, or one of a list."""
    role: Annotated[str | None, such("user")] = None
    """The role of its message."""
    error: bool | None = None
    """`true`: only failed results. `false`: only others."""
    media_type: Annotated[str | None, such("image/*")] = None
    """The media type of an image or document matches this glob."""
    text: Annotated[TextMatch | None, such({"startswith": "Base directory for this skill:"})] = None
    """What its text has."""


class KeepRecent(Section):
    """How many of the newest stay, and among whom they are counted."""

    exactly_one: ClassVar = ("items", "messages", "turns", "replies", "tokens", "max_tokens")
    short_form: ClassVar = "items"

    items: Count | None = None
    """The newest N items stay."""
    messages: Count | None = None
    """What is in the newest N messages stays."""
    turns: Count | None = None
    """What belongs to the newest N turns stays."""
    replies: Count | None = None
    """The newest N replies of the model stay whole: their thinking, their calls, and the results of
    these calls."""
    of: Literal["all", "candidates"] = "all"
    """For `turns` and `replies`: `all` are those of the whole list, `candidates` those with an item
    that is counted here."""
    tokens: Amount | None = None
    """The newest items of N tokens together stay; the one that crosses the line does."""
    max_tokens: Amount | None = None
    """The newest items of at most N tokens together stay; the one that crosses the line leaves."""
    per: Literal["tool", "type", "all"] = "tool"
    """Counted within each tool, each item type, or all that the step selects; not for `messages`,
    nor for `turns` and `replies` of `all`."""
    batches: Literal["whole", "split"] | None = None
    """`whole`: what belongs to parallel calls stays while one of them is recent. `split`: each
    stays or leaves by itself; for steps that leave a placeholder. Default: `split` in a step with
    `ephemeral: true`, which goes by the number of each tool, else `whole`."""

    @property
    def kept_tokens(self) -> Amount | None:
        """The tokens that stay, None where something else is counted."""
        return self.max_tokens if self.tokens is None else self.tokens


Recency = Annotated[
    KeepRecent,
    BeforeValidator(
        short_form("items", int, "a number of items"), json_schema_input_type=Count | KeepRecent
    ),
]


class Threshold(Section):
    """From which size on an item is taken, in one of two units."""

    at_most_one: ClassVar = ("min_tokens", "min_chars")

    min_tokens: Annotated[Amount | None, such(2000, "10%")] = None
    """At this many tokens or above; `10%` is of the context window."""
    min_chars: Annotated[Count | None, such(1000)] = None
    """At this many characters (Unicode code points) or above."""


class Rule(Threshold):
    """How items are treated; each key is looked up on its own, and the nearest wins."""

    offload: bool | None = None
    """May `offload` and `clear` take it at all; `false` on a type or tool is absolute."""
    keep_recent: Annotated[Recency | None, such(3, {"items": 5, "per": "all"})] = None
    """The newest stay: a number of items, or a map."""
    pin: bool | None = None
    """No step takes it."""
    placeholder: Annotated[Wording | None, such("[Result in {path}]")] = None
    """The wording left in its place."""


class ItemRule(Rule):
    """An item type: a rule for a built-in one, or with `match` one of your own."""

    match: Annotated[Match | None, such({"type": "tool_result", "tool": ["web_*", "fetch"]})] = None
    """Makes this a type of your own, which inherits the keys of the type that it refines."""
    author: Annotated[Author | None, such("program")] = None
    """Who wrote what such items say, for a summary: `user`, `program` (a program put it into the
    user's message, such as a skill), `summary` (another writer's compaction). For user messages and
    tool results; by default what the host or the recording says, else the user for a user message.
    """


class LineFields(Section):
    """The input fields of a tool that say which lines of a file it reads; lines count from 1."""

    first: Annotated[PathFields | None, such("offset", ["offset", "start_line"])] = None
    """The number of the first line."""
    last: Annotated[PathFields | None, such("end_line")] = None
    """The number of the last line."""
    count: Annotated[PathFields | None, such("limit")] = None
    """How many lines."""
    range: Annotated[PathFields | None, such("view_range")] = None
    """A list of the first and the last line; a last line of -1 is that of the file."""


class ToolRule(Rule):
    """A tool, by name or glob."""

    reads_file: Annotated[PathFields | None, such("path", ["path", "file_path"])] = None
    """The input field that holds the path of the file that the tool reads. Of several, the first
    that a call has."""
    reads_lines: Annotated[LineFields | None, such({"first": "offset", "count": "limit"})] = None
    """The input fields that say which lines the tool reads. Used by `restore.large_files`."""
    edits_file: Annotated[PathFields | None, such("path", ["path", "patch"])] = None
    """The input field that holds the path of the file that the tool edits, or a patch that names
    its files (`*** Update File: PATH`, `+++ b/PATH`). Used by `restore.sources`."""
    writes_file: Annotated[PathFields | None, such("path", ["path", "file_path"])] = None
    """The input field that holds the path of the file that the tool writes whole. Used by
    `restore.sources`."""
