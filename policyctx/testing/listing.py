"""The steps that features may be written with: for people, for programs, and as a page."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING

from policyctx.definitions.items import HostObject
from policyctx.errors import visible
from policyctx.testing import contents, selecting, tables
from policyctx.testing.collecting import FeatureCollection
from policyctx.testing.kinds import KINDS
from policyctx.testing.step_definitions import LIBRARY, Definition, StepDefinition
from policyctx.testing.steps import MODULES

if TYPE_CHECKING:
    import pytest

_PLACE = re.compile(r"\{(\w+)([:=])([^}]+)\}")
_TYPES = ("given", "when", "then")
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


@dataclass(frozen=True, slots=True)
class ListedStep:
    """One step as it is listed."""

    type: str
    sentence: str
    examples: tuple[str, ...]
    meaning: str
    defined_in: str


def library() -> tuple[Definition, ...]:
    """Return the steps of the library: Givens, Whens, Thens, each in the order of the modules."""
    for name in MODULES:
        import_module(f"policyctx.testing.steps.{name}")
    return tuple(sorted(LIBRARY, key=lambda d: (_TYPES.index(d.type), MODULES.index(d.room))))


def readable(sentence: str) -> str:
    """Return a sentence as a person reads it: values in capitals, `[words]` may be left out."""

    def shown(match: re.Match[str]) -> str:
        name, sign, kind = match.groups()
        if sign == "=":
            return f"({kind})" if "|" in kind else kind
        word = kind.upper() if kind in {"pieces", "items", "size", "amount"} else name.upper()
        return f'"{word}"' if kind in {"text", "names"} else word

    text = re.sub(r"\((?=[^()]*\))([^()|]*)\)", r"[\1]", _PLACE.sub(_bracketless(shown), sentence))
    text = re.sub(r"\[( ?)([^\[\]]*?)( ?)\]", r"\1[\2]\3", text)
    return text.replace("⟨", "(").replace("⟩", ")")


def _bracketless(shown: HostObject) -> HostObject:
    return lambda match: shown(match).replace("(", "⟨").replace(")", "⟩")


def steps_page() -> str:
    """Return the page of the steps, as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield from _INTRODUCTION.splitlines()
    for type_ in _TYPES:
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


def list_steps(config: pytest.Config, session: pytest.Session) -> None:
    """Print the library's steps and the user's own, as `--policyctx-steps` says."""
    session.perform_collect()
    # Nothing but the list is to be read here, by programs least of all.
    config.pluginmanager.unregister(name="terminalreporter")
    listed = [*map(_listed, library()), *_own(config)]
    if config.getoption("policyctx_steps") == "json":
        text = json.dumps([asdict(step) for step in listed], ensure_ascii=False, indent=2)
    else:
        text = "\n\n".join(map(_text, listed))
    print(visible(text))  # noqa: T201 - it is what was asked for


def _listed(definition: Definition) -> ListedStep:
    sentence = readable(definition.sentence)
    where = f"policyctx.testing.steps.{definition.room}"
    return ListedStep(definition.type, sentence, definition.examples, definition.meaning, where)


def _own(config: pytest.Config) -> Iterable[ListedStep]:
    """The steps of the user's own that any of the features can see."""
    collection = config.pluginmanager.get_plugin(FeatureCollection.NAME)
    if not isinstance(collection, FeatureCollection):
        return ()
    found: dict[tuple[str, str], ListedStep] = {}
    for file in collection.files:
        for definition in file.definitions.all if file.definitions else ():
            if not (definition.is_ours or definition.is_of_pytest_bdd):
                step = _listed_own(definition)
                found.setdefault((step.type, step.sentence), step)
    return found.values()


def _listed_own(definition: StepDefinition) -> ListedStep:
    meaning = " ".join((getdoc(definition.function) or "").split())
    sentence = definition.parser.name
    return ListedStep(definition.type or "any", sentence, (sentence,), meaning, definition.place)


def _text(step: ListedStep) -> str:
    keyword = step.type.capitalize()
    lines = [f"{keyword} {step.sentence}"]
    if step.meaning:
        lines += textwrap.wrap(step.meaning, 88, initial_indent="    ", subsequent_indent="    ")
    for example in step.examples:
        first, *rest = example.split("\n")
        lines += [f"      {keyword} {first}", *(f"        {line}" for line in rest)]
    return "\n".join(lines)
