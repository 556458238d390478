"""Step definitions: a sentence with typed places, an example, and what it means.

`StepSentence` reads a sentence; `given`, `when` and `then` define a step; `Definitions` are those
that the scenarios of one file can see.
"""

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import pytest
from pytest_bdd.compat import get_fixture_names, getfixturedefs
from pytest_bdd.parsers import StepParser
from pytest_bdd.steps import StepFunctionContext, StepNamePrefix, step_function_context_registry

from policyctx.paths import path_from
from policyctx.testing.contents import PIECES
from policyctx.testing.kinds import COUNT_WORDS, KINDS, Kind
from policyctx.testing.selecting import ITEMS, Fate
from policyctx.testing.world import World

_ALL_KINDS = {**KINDS, "pieces": PIECES, "items": ITEMS}
_TOKEN = re.compile(r"\{(?P<name>\w+)(?P<kind>[:=][^}]+)\}|(?P<sign>[()|])|(?P<words>[^{()|]+)")
_FIELD = re.compile(r"\{(path|relative_path|cwd_path|root|session_id)\}")
StepType: TypeAlias = Literal["given", "when", "then"]
TYPES: tuple[StepType, ...] = get_args(StepType)
Function = TypeVar("Function", bound=Callable[..., object])
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"")
_WORD = re.compile(r"[^\W\d_]+")
_ENDING = re.compile(r"(?<=\w{3})(ing|ed|es|s|ly|e|y)$")
# Words that say nothing of what a step is about, and units of time, which are all alike.
_NOTHING = frozenset(
    "a an and are as at be been by did for from had has have he in is it its of on or she so that"  # noqa: SIM905
    " the their them then there they this to was were which with".split()
).union(COUNT_WORDS)
_TIME = re.compile(r"(second|minute|hour|day|week|duration)s?")
_SAME = 4
"""Words that begin with so many letters of one another are of one stem."""
# What letters count beside words, a word of the meaning beside one of the example, and what a step
# of another type loses; the least likeness, and how far it may be below the best.
_LETTERS, _TOLD, _OTHER_TYPE, _LIKE, _BEHIND = 0.7, 0.7, 0.2, 0.5, 0.35


class StepSentence(StepParser):
    """Matches the steps that say what `template` says; what was left out is no argument."""

    def __init__(self, template: str, examples: tuple[str, ...] = ()) -> None:
        super().__init__(template)
        self.examples = examples
        self._regex = re.compile(_pattern(template) + ":?")
        self._converters = {
            m["name"]: _kind(m["kind"]) for m in _TOKEN.finditer(template) if m["name"]
        }

    def is_matching(self, name: str) -> bool:
        """Does the step say this."""
        return self._regex.fullmatch(name) is not None

    def parse_arguments(self, name: str) -> dict[str, Any] | None:
        """Return the values in the step, None when it says something else."""
        match = self._regex.fullmatch(name)
        if match is None:
            return None
        return {
            place: kind.convert(match[place])
            for place, kind in self._converters.items()
            if match[place] is not None
        }


def _kind(name: str) -> Kind:
    """The kind after `:`; the words after `=` are a kind of their own."""
    sign, words = name[0], name[1:]
    if sign == ":":
        return _ALL_KINDS[words]
    return Kind("|".join(map(re.escape, words.split("|"))), str, f"one of {words}")


def _pattern(template: str) -> str:
    """The regular expression of a template."""
    groups: list[tuple[list[str], bool]] = [([], False)]
    for token in _TOKEN.finditer(template):
        parts, has_choice = groups[-1]
        if token["sign"] == "(":
            groups.append(([], False))
        elif token["sign"] == "|":
            parts.append("|")
            groups[-1] = (parts, True)
        elif token["sign"] == ")":
            groups.pop()
            body = f"(?:{''.join(parts)})"
            groups[-1][0].append(body if has_choice else f"{body}?")
        elif token["name"]:
            parts.append(f"(?P<{token['name']}>{_kind(token['kind']).regex})")
        else:
            parts.append(re.escape(token["words"]))
    return "".join(groups[0][0])


@dataclass(frozen=True, slots=True)
class Definition:
    """One step of the library, as its page and `--steps` show it."""

    type: StepType
    sentence: str
    examples: tuple[str, ...]
    """Steps as they are in a feature, without their keyword."""
    meaning: str
    room: str
    """The module that defines it, such as `contexts`."""
    function: Callable[..., object]


LIBRARY: list[Definition] = []
_FIXTURE = f"{StepNamePrefix.step_def.value}_policyctx"


class _Defining:
    """Defines steps of these types; the function's docstring is what the page says of each.

    Without examples the sentence is one.
    """

    def __init__(self, *types: StepType) -> None:
        self._types = types

    def __call__(self, sentence: str, *examples: str) -> Callable[[Function], Function]:
        shown = examples or (sentence,)

        def define(function: Function) -> Function:
            meaning = " ".join((function.__doc__ or "").split())
            room = function.__module__.rpartition(".")[2]
            for type_ in self._types:
                LIBRARY.append(Definition(type_, sentence, shown, meaning, room, function))
                step = StepFunctionContext(type_, function, StepSentence(sentence, shown))
                _register(function, step)
            return function

        return define


given, when, then = map(_Defining, TYPES)
given_or_when = _Defining("when", "given")


def _register(function: Function, context: StepFunctionContext) -> None:
    """Make a fixture of a step in its module, as `pytest_bdd.step` does, but all under one name.

    For each step of a scenario pytest-bdd asks pytest which fixtures of each name it can see. With
    a name for each definition that takes longer than most steps.
    """

    def step() -> StepFunctionContext:
        return context

    step_function_context_registry[step] = context
    module = sys.modules[function.__module__]
    setattr(module, f"_step_{len(LIBRARY)}", pytest.fixture(name=_FIXTURE)(step))


_SHIPPED = str(Path(__file__).resolve().parent)
_NEAREST = 3


@dataclass(frozen=True, slots=True)
class StepDefinition:
    """One definition: the steps that it matches, and how near it is to the feature."""

    type: str | None
    """`given`, `when`, `then`; None for any of them."""
    parser: StepParser
    function: Callable[..., object]
    rank: tuple[int, bool]
    """The depth of the folder that it is defined for; of one depth, a user's before ours."""

    @property
    def is_ours(self) -> bool:
        """Is it one of the library."""
        return _is_shipped(self.function)

    @property
    def is_of_pytest_bdd(self) -> bool:
        """Is it the step `trace`, which pytest-bdd itself brings along."""
        module: str = inspect.unwrap(self.function).__module__
        return module.startswith("pytest_bdd.")

    @property
    def place(self) -> str:
        """The definition's `file:line`."""
        code = inspect.unwrap(self.function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def is_async(self) -> bool:
        """Would calling it only make a coroutine that nobody awaits."""
        function = inspect.unwrap(self.function)
        return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

    @property
    def examples(self) -> tuple[str, ...]:
        """Steps that it matches: its examples, or its wording."""
        if isinstance(self.parser, StepSentence):
            return tuple(example.partition("\n")[0] for example in self.parser.examples)
        return (self.parser.name,)


class Definitions:
    """What a step means, looked up once for each wording."""

    def __init__(self, definitions: Iterable[StepDefinition]) -> None:
        self.all = tuple(definitions)
        self.matching = lru_cache(maxsize=None)(self._matching)

    def _matching(self, type_: str, text: str) -> tuple[StepDefinition, ...]:
        """Return the definitions that a step calls for: one, if all is well.

        Those further away are overridden by those nearer to the feature.
        """
        found = [
            definition
            for definition in self.all
            if definition.type in {None, type_} and definition.parser.is_matching(text)
        ]
        nearest = max((definition.rank for definition in found), default=None)
        return tuple(definition for definition in found if definition.rank == nearest)

    def other_types(self, text: str) -> list[str]:
        """Return the kinds of step that have this wording."""
        return [type_ for type_ in TYPES if self.matching(type_, text)]

    def is_known(self, text: str) -> bool:
        """Is there any step with this wording."""
        return bool(self.other_types(text))

    def nearest(self, type_: str, text: str) -> list[tuple[str, str]]:
        """Return the steps that are most like an unknown one, with their types, likeliest first.

        A step is like another one by its letters, and by the words that its example, its sentence
        and its meaning have, whatever their endings. A rare word tells more than a frequent one,
        and what is quoted tells nothing.
        """
        text = _QUOTED.sub("", text)
        wanted = {word: self._rarity(word) for word in _stems(text)}
        found: dict[str, tuple[float, str]] = {}
        for definition in self.all:
            told = self._words[definition]
            other = 0 if definition.type in {None, type_} else _OTHER_TYPE
            for example in definition.examples:
                plain = _QUOTED.sub("", example)
                own = _stems(plain)
                shared = sum(
                    rarity * (1 if _has(own, word) else _TOLD if _has(told, word) else 0)
                    for word, rarity in wanted.items()
                )
                share = shared / (sum(wanted.values()) or 1)
                alike = SequenceMatcher(None, text.lower(), plain.lower()).ratio()
                likeness = share + _LETTERS * alike - other
                known = found.get(example, (0.0, ""))
                found[example] = max(known, (likeness, definition.type or type_))
        likely = sorted(found.items(), key=lambda step: -step[1][0])
        # Steps that are far less like it are of no use beside the first.
        least = max(_LIKE, likely[0][1][0] - _BEHIND) if likely else 0
        return [(kind, step) for step, (likeness, kind) in likely if likeness >= least][:_NEAREST]

    @cached_property
    def _words(self) -> dict[StepDefinition, frozenset[str]]:
        """The words of what each definition says and means."""
        return {
            one: _stems(f"{one.parser.name} {inspect.getdoc(one.function) or ''}")
            for one in self.all
        }

    def _rarity(self, word: str) -> float:
        having = sum(_has(told, word) for told in self._words.values())
        return 1 / math.sqrt(1 + having)


@lru_cache(maxsize=1024)
def _stems(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(
        "duration" if _TIME.fullmatch(word) else _ENDING.sub("", word)
        for word in words
        if word not in _NOTHING
    )


def has_words(text: str, wanted: str) -> bool:
    """Return whether a text has all of the words, whatever their endings.

    Words that say nothing of what a step is about count only if there are no others.
    """
    stems = _stems(wanted)
    if not stems:
        return all(word in text.lower() for word in wanted.lower().split())
    return all(_has(_stems(text), word) for word in stems)


def _has(stems: frozenset[str], word: str) -> bool:
    """Whether one of the stems is that of the word, or begins with it or the other way round."""
    return word in stems or any(
        min(len(one), len(word)) >= _SAME and (one.startswith(word) or word.startswith(one))
        for one in stems
    )


def visible_definitions(node: pytest.Collector) -> Definitions:
    """Return the step definitions that pytest-bdd would find for the tests of a collector."""
    manager = node.session._fixturemanager  # noqa: SLF001 - as pytest-bdd itself must
    found = []
    for name in get_fixture_names(fixturemanager=manager):
        for fixture in getfixturedefs(manager, name, node) or ():
            if (context := step_function_context_registry.get(fixture.func)) is not None:
                depth = len(Path(fixture.baseid).parts) if fixture.baseid else 0
                rank = (depth, not _is_shipped(context.step_func))
                found.append(StepDefinition(context.type, context.parser, context.step_func, rank))
    return Definitions(found)


def _is_shipped(function: Callable[..., object]) -> bool:
    file: str = inspect.unwrap(function).__code__.co_filename
    return file.startswith(_SHIPPED)


def filled(world: World, text: str | None, fate: Fate | None = None) -> str:
    """Return the text with its fields filled in; any other brace is one.

    Raises `OutcomeError` when it names the file of an item that has none.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "root":
            return world.root.absolute().as_posix()
        if name == "session_id" or fate is None:
            return (world.session_id or "") if name == "session_id" else match[0]
        _, file = world.saved(fate)
        shown = {"path": file.path, "relative_path": f"./{file.relative_path}"}
        return shown.get(name) or path_from(os.getcwd(), file.path)  # noqa: PTH109 - a text

    return _FIELD.sub(value, text or "")


def like(pattern: str, text: object) -> bool:
    """Does the pattern, in which `*` is anything, fit the whole text."""
    parts = ".*".join(map(re.escape, pattern.split("*")))
    return isinstance(text, str) and re.fullmatch(parts, text, re.DOTALL) is not None
