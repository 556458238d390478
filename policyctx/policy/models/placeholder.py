"""Placeholders: the text that takes an item's place."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from policyctx.definitions.fields import GAP_FIELDS, PLACEHOLDER_FIELDS
from policyctx.definitions.wordings import CUT_MARK, DEFAULT, NUMBER_SEPARATOR
from policyctx.policy.models.base import Count, Section
from policyctx.policy.values import flag_or_map, short_form, template_of


class Extent(Section):
    """How much of a text is shown: a number of lines, characters or tokens."""

    exactly_one: ClassVar = ("lines", "chars", "tokens")

    lines: Count | None = None
    """This many whole lines, without the newline that ends the last."""
    chars: Count | None = None
    """Exactly this many characters, of a text that has so many."""
    tokens: Count | None = None
    """The most that fits into this many tokens, by `model.tokenizer`."""


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
    """The wording; fields such as `{path}` are filled in. To the default one, a line is added that
    names the tool to read the file with, once the session knows of one."""
    head: Annotated[Extent | None, Field(examples=[{"lines": 10}])] = None
    """What `{head}` shows of the beginning of the item's text."""
    tail: Annotated[Extent | None, Field(examples=[{"chars": 400}])] = None
    """What `{tail}` shows of the end of the text; it never overlaps the head."""
    max_line_chars: Annotated[int, Field(ge=1)] | None = None
    """Longer lines of head and tail are cut to this many characters, and `cut_mark` is put after
    them."""
    cut_mark: Annotated[str, Field(examples=[" [cut]"])] = CUT_MARK
    """What comes after a line that is cut; empty for nothing."""
    gap: Annotated[
        str,
        BeforeValidator(template_of(GAP_FIELDS)),
        Field(examples=["\n[{omitted_lines} lines left out]\n"]),
    ] = ""
    """What `{gap}` is where something is left out between head and tail; its fields are
    `{omitted_lines}`, `{omitted_chars}`, `{lines}` and `{chars}`."""
    line_numbers: Annotated[
        LineNumbers | None,
        BeforeValidator(flag_or_map, json_schema_input_type=bool | LineNumbers | None),
        Field(examples=[True, {"width": 6, "separator": ": "}]),
    ] = None
    """Put before each line of head and tail its number in the whole text; `true` puts a tab
    between. Default: `false`."""


_Text = Annotated[str, Field(min_length=1)]
Wording = Annotated[
    Placeholder,
    BeforeValidator(
        short_form("text", str, "a string"), json_schema_input_type=_Text | Placeholder
    ),
]
