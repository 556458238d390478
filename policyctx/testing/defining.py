"""How the library's steps are defined: a sentence, an example, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import pytest_bdd

from policyctx.testing.sentences import StepSentence

StepType: TypeAlias = Literal["given", "when", "then"]
Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Definition:
    """One step of the library, as its page and `--steps` show it."""

    type: StepType
    sentence: str
    examples: tuple[str, ...]
    """Steps as they stand in a feature, without their keyword."""
    meaning: str
    room: str
    """The module that defines it, such as `contexts`."""
    function: Callable[..., object]


LIBRARY: list[Definition] = []


def given(sentence: str, *examples: str) -> Callable[[Function], Function]:
    """Define a Given; the function's docstring is what the page says of it."""
    return _defined("given", sentence, examples)


def when(sentence: str, *examples: str) -> Callable[[Function], Function]:
    """Define a When; see `given`."""
    return _defined("when", sentence, examples)


def then(sentence: str, *examples: str) -> Callable[[Function], Function]:
    """Define a Then; see `given`."""
    return _defined("then", sentence, examples)


def _defined(
    type_: StepType, sentence: str, examples: tuple[str, ...]
) -> Callable[[Function], Function]:
    # pytest-bdd puts the definition into the module two frames above: the one that decorates.
    register = pytest_bdd.step(StepSentence(sentence, examples), type_, stacklevel=2)

    def define(function: Function) -> Function:
        meaning = " ".join((function.__doc__ or "").split())
        room = function.__module__.rpartition(".")[2]
        LIBRARY.append(Definition(type_, sentence, examples, meaning, room, function))
        register(function)
        return function

    return define
