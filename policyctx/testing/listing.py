"""The steps that features may be written with: for people, and for programs."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import getdoc
from typing import TYPE_CHECKING

from policyctx.definitions.items import HostObject
from policyctx.errors import visible
from policyctx.testing.collecting import FeatureCollection
from policyctx.testing.step_definitions import LIBRARY, Definition, StepDefinition
from policyctx.testing.steps import MODULES

if TYPE_CHECKING:
    import pytest

_PLACE = re.compile(r"\{(\w+)([:=])([^}]+)\}")
TYPES = ("given", "when", "then")


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
    return tuple(sorted(LIBRARY, key=lambda d: (TYPES.index(d.type), MODULES.index(d.room))))


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
