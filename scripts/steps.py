"""The page `docs/steps.md`: what a feature may say, a line for each step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from policyctx.testing import contents, selecting, tables
from policyctx.testing.collecting import library, readable
from policyctx.testing.kinds import KINDS
from policyctx.testing.step_definitions import Definition, StepType

_INTRODUCTION = """\
# The steps of features

<!-- Written by scripts/docs from policyctx/testing/steps. -->

What a [feature](testing.md) may say. `policyctx test --steps WORDS` has the examples of a step, all
that it means, and the steps of your `conftest.py`. Capitals stand for a value, `[words]` may be
left out, and one of `(these|words)` is said. A step may end with a colon."""

# The command has the rest.
_FIRST_CLAUSE = re.compile(r".+?(?=[.;](?: |$)|$)", re.DOTALL)

_SECTIONS: dict[tuple[StepType, ...], str] = {
    ("given",): "Given",
    ("given", "when"): "Given or When",
    ("when",): "When",
    ("then",): "Then",
}

_ITEM_WORDS = """\
Items are named by their type: `user message`, or `web page` where the policy defines `web_page`.
`result` and `call` are the items of tools; `item` is any item. The name of a tool, or a glob,
comes before the type or after `from`; one that is a number or a position is quoted: `the first 2
"2" results`. A tool that the context does not have is an error.

A position counts the items that match, the oldest first, from 1; one beyond the last is an error.
Counts may be words from `one` to `ten`.

`the 3 results` and `all 3 results` mean every result, and that there are 3; `3 results` that the
outcome holds for exactly 3 results, whichever they are; `only 3 results` that it holds for no
other item either."""


def steps_page() -> str:
    """Return the page of the steps, as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield from _INTRODUCTION.splitlines()
    of_function: dict[Callable[..., object], list[Definition]] = {}
    for definition in library():
        of_function.setdefault(definition.function, []).append(definition)
    for types, heading in _SECTIONS.items():
        yield from ("", f"## {heading}", "")
        for same in of_function.values():
            if tuple(definition.type for definition in same) == types:
                yield _entry(same[0])
    yield from _values()


def _entry(definition: Definition) -> str:
    meaning = _FIRST_CLAUSE.match(definition.meaning)
    return f"- `{readable(definition.sentence)}`" + (f": {meaning[0]}" if meaning else "")


def _values() -> Iterator[str]:
    yield from ("", "## Values", "", "| value | is written |", "|---|---|")
    for name in ("amount", "size", "number", "duration"):
        yield f"| {name.upper()} | {KINDS[name].meaning} |"
    yield '| "TEXT" | ' + KINDS["text"].meaning + " |"
    yield '| "NAMES" | ' + KINDS["names"].meaning + " |"
    yield "| a name, such as TOOL, STEP, GATE | " + KINDS["name"].meaning + " |"
    yield from ("", "PIECES are results or messages:", "")
    yield from (f"    {example}" for example in contents.EXAMPLES)
    yield from ("", "ITEMS say which items of the context are meant:", "")
    yield from (f"    {example}" for example in selecting.EXAMPLES)
    yield from ("", *_ITEM_WORDS.splitlines())
    yield from ("", "The columns of a table of messages:", "", "| column | holds |", "|---|---|")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in tables.COLUMNS.items())
