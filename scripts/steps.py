"""The page `docs/steps.md`: what a feature may say, with examples."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from policyctx.testing import contents, selecting, tables
from policyctx.testing.collecting import TYPES, library, readable
from policyctx.testing.kinds import KINDS
from policyctx.testing.step_definitions import Definition

_INTRODUCTION = """\
# The steps of features

<!-- Written by scripts/docs from policyctx/testing/steps. -->

What a feature may say, each with examples. `policyctx test --steps` lists the same, and with them
the steps of your own `conftest.py`. In a sentence, capitals stand for a value, `[words]` may be
left out, and one of `(these|words)` is said. A step may end with a colon. [Testing](testing.md)
says how features are run."""


_ITEM_WORDS = """\
Items are named by their type: `user message`, or `web page` where the policy defines `web_page`.
`result` and `call` are the items of tools; `item` is any item. The name of a tool, or a glob,
comes before the type or after `from`. A tool whose name is a number or a position is written in
quotes: `the first 2 "2" results`. A tool that the context does not have is an error, which lists
the tools that it has.

A position counts the items that match, the oldest first, from 1:

| to select | write |
|---|---|
| one item | `the first result`, `the 2nd result`, `the last result`, `the 2nd newest result` |
| items at one end | `the first 2 results`, `the last 2 results`, `the 3 newest results` |
| a range | `the 2nd to 4th results`, `the 2nd-4th results`, `messages 2 to 4` |
| a list | `the 1st and 2nd results`, `the 1st, 3rd and 5th results`, `messages 1, 3 and 5` |

Counts may be words from `one` to `ten`: `the first two results`, `at least three results`. An
ordinal with a wrong ending, such as `2st`, is an error.

A position beyond the last item is an error, which says how many items there are. `the 3 results`
and `all 3 results` mean every result, and that there are 3. `3 results` means that the outcome
holds for exactly 3 results, whichever they are; `only 3 results` means that it holds for no other
item either."""


def steps_page() -> str:
    """Return the page of the steps, as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield from _INTRODUCTION.splitlines()
    for type_ in TYPES:
        yield from ("", f"## {type_.capitalize()}")
        for definition in (d for d in library() if d.type == type_):
            yield from _entry(definition)
    yield from _values()


def _entry(definition: Definition) -> Iterator[str]:
    yield from ("", f"### `{readable(definition.sentence)}`", "")
    yield from (*textwrap.wrap(definition.meaning, 99), "")
    yield "```gherkin"
    for example in definition.examples:
        first, *rest = example.split("\n")
        yield f"{definition.type.capitalize()} {first}"
        yield from (f"  {line}" for line in rest)
    yield "```"


def _values() -> Iterator[str]:
    yield from ("", "## Values", "", "| value | is written |", "|---|---|")
    for name in ("amount", "size", "number", "duration"):
        yield f"| {name.upper()} | {KINDS[name].meaning} |"
    yield '| "TEXT" | ' + KINDS["text"].meaning + " |"
    yield "| a name, such as TOOL, STEP, GATE | " + KINDS["name"].meaning + " |"
    yield from ("", "PIECES are results or messages:", "")
    yield from (f"- `{example}`" for example in contents.EXAMPLES)
    yield from ("", "ITEMS say which items of the context are meant:", "")
    yield from (f"- `{example}`" for example in selecting.EXAMPLES)
    yield from ("", *_ITEM_WORDS.splitlines())
    yield from ("", "The columns of a table of messages:", "", "| column | holds |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in tables.COLUMNS.items())
