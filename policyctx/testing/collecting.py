"""Feature files as pytest collects them, and the steps that they may be written with, as a list.

Each scenario, or row of an outline, is one test. The list is for people, and for programs.
"""

import json
import re
import textwrap
import types
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import getdoc
from pathlib import Path

import pytest
from pytest_bdd import scenario
from pytest_bdd.parser import Feature

from policyctx.errors import visible
from policyctx.testing.gherkin import BrokenFeatureError, KnownTags, read_feature
from policyctx.testing.guards import problems_in
from policyctx.testing.reporting import finish, shown_path, shown_problems
from policyctx.testing.step_definitions import (
    LIBRARY,
    TYPES,
    Definition,
    Definitions,
    StepDefinition,
    has_words,
    visible_definitions,
)
from policyctx.testing.steps import MODULES

_PLACE = re.compile(r"\{(\w+)([:=])([^}]+)\}")


class FeatureCollection:
    """Collects the feature files below some folders."""

    NAME = "policyctx-features"
    """What the plugin that it is goes by."""

    def __init__(self, config: pytest.Config, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._only: bool = config.known_args_namespace.policyctx_only
        self._tags = KnownTags(config)
        self.files: list[FeatureFile] = []
        """The feature files found so far."""

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Take a feature file that is below one of the folders."""
        if file_path.suffix != ".feature" or not any(map(file_path.is_relative_to, self._folders)):
            return None
        file: FeatureFile = FeatureFile.from_parent(parent, path=file_path, tags=self._tags)
        self.files.append(file)
        return file

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave Python tests to pytest itself where only features are asked for."""
        return True if self._only and collection_path.suffix == ".py" else None


class FeatureFile(pytest.Module):
    """A feature file. It stands where pytest has a Python module, and holds a function a scenario.

    What would let a broken scenario pass is a collection error; see `guards`.
    """

    def __init__(self, *, tags: KnownTags, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._tags = tags
        self.definitions: Definitions | None = None
        """The steps that its scenarios can see, once it is collected."""

    def _getobj(self) -> types.ModuleType:
        return types.ModuleType(self.path.stem)

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Yield the scenarios in their order; raises `BrokenFeatureError` for what is broken."""
        self.definitions = visible_definitions(self)
        source = read_feature(self.path, shown_path(self.path, self.config))
        if problems := problems_in(source, self.definitions, self._tags):
            raise BrokenFeatureError(problems)
        for tag in source.tags():
            self._tags.register(tag.name.removeprefix("@"))
        for name, function in _functions(self.path, source.feature).items():
            setattr(self.obj, name, function)
            yield from self._genfunctions(name, function)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        """Tell each problem with its file and line; anything else as pytest does."""
        if isinstance(excinfo.value, BrokenFeatureError):
            return shown_problems(excinfo.value.problems)
        return str(super().repr_failure(excinfo))


def _functions(path: Path, feature: Feature | None) -> dict[str, Callable[..., object]]:
    """Return a test function for each scenario, by the name that its node ids have."""
    functions: dict[str, Callable[..., object]] = {}
    for name in feature.scenarios if feature else ():

        def body(request: pytest.FixtureRequest) -> None:
            finish(request.node)

        decorate = scenario(path.name, name, features_base_dir=str(path.parent))
        # `::` parts a node id.
        functions[visible(name.replace("::", ":"))] = decorate(body)
    return functions


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

    # A choice has other brackets than what may be left out.
    def shown(match: re.Match[str]) -> str:
        name, sign, kind = match.groups()
        if sign == "=":
            return f"⟨{kind}⟩" if "|" in kind else kind
        word = kind.upper() if kind in {"pieces", "items", "size", "amount"} else name.upper()
        return f'"{word}"' if kind in {"text", "names"} else word

    text = re.sub(r"\((?=[^()]*\))([^()|]*)\)", r"[\1]", _PLACE.sub(shown, sentence))
    text = re.sub(r"\[( ?)([^\[\]]*?)( ?)\]", r"\1[\2]\3", text)
    return text.replace("⟨", "(").replace("⟩", ")")


def list_steps(config: pytest.Config, session: pytest.Session) -> None:
    """Print the library's steps and the user's own, as `--policyctx-steps` says."""
    session.perform_collect()
    # Nothing but the list is to be read here, by programs least of all.
    config.pluginmanager.unregister(name="terminalreporter")
    words = config.getoption("policyctx_steps_with")
    every = [*map(_listed, library()), *_own(config)]
    listed = [one for one in every if has_words(_text(one), words)]
    if config.getoption("policyctx_steps") == "json":
        text = json.dumps([asdict(step) for step in listed], ensure_ascii=False, indent=2)
    else:
        text = "\n\n".join(map(_text, listed)) or f"No step has all of the words: {words}"
    with suppress(BrokenPipeError):  # who reads it has enough
        print(visible(text), flush=True)  # noqa: T201 - it is what was asked for


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
