"""The verbs of a session: one body, and three forms with its parameters."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, assert_type

import pytest

from policyctx import Request, Result, Session
from policyctx.errors import InputError
from policyctx.turns.driving import Steps, finished
from tests.conversations import session_of

VERBS = ["apply", "preview", "observe", "on_tool_result", "compact"]
FORMS = [name for name in vars(Session) if name.endswith(("_async", "_in_steps"))]


def base_of(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(
        Session, name.removesuffix("_async").removesuffix("_in_steps")
    )
    return found


def returned(function: Callable[..., Any]) -> Any:
    return typing.get_type_hints(function)["return"]


def test_each_verb_has_an_asynchronous_form() -> None:
    assert {f"{name}_async" for name in VERBS} <= {*FORMS}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_the_parameters_of_its_verb_and_says_what_it_is(name: str) -> None:
    form, base = getattr(Session, name), base_of(name)
    is_async = name.endswith("_async")
    assert inspect.signature(form).parameters == inspect.signature(base).parameters
    assert (form.__name__, form.__qualname__) == (name, f"Session.{name}")
    assert form.__module__ == "policyctx.session"
    assert form.__doc__.startswith(f"Do what `{base.__name__}` does, ")
    assert inspect.iscoroutinefunction(form) is is_async
    assert inspect.isgeneratorfunction(form) is not is_async


@pytest.mark.parametrize("name", FORMS)
def test_a_form_returns_what_its_verb_returns(name: str) -> None:
    found, base = returned(getattr(Session, name)), returned(base_of(name))
    steps: Any = Generator
    assert found == (base if name.endswith("_async") else steps[None, None, base])


@pytest.mark.parametrize("name", [*VERBS, "plan", "breakpoints"])
def test_a_verb_keeps_the_signature_and_the_docstring_of_its_body(name: str) -> None:
    method = getattr(Session, name)
    assert inspect.isfunction(method)
    assert "Turn[" not in str(inspect.signature(method))
    assert f"def {name}(" in inspect.getsource(method)
    assert str(method.__doc__).startswith(("Return ", "Edit ", "Learn ", "Run ", "Replace "))


def test_type_checkers_see_the_parameters_and_the_result(tmp_path: Path) -> None:
    session = Session("context-offload", root=tmp_path, session_id="s")
    messages = session_of("x")
    assert_type(session.apply(messages, changed=True), Result)
    coroutine: Coroutine[Any, Any, Result]
    coroutine = assert_type(
        session.apply_async(messages, request=Request(model="gpt-4o")), Coroutine[Any, Any, Result]
    )
    coroutine.close()
    steps = session.apply_in_steps(messages, tools=())
    assert_type(steps, Steps[Result])
    assert finished(steps).messages == messages
    with pytest.raises(TypeError, match="unexpected keyword argument 'tool'"):
        session.apply(messages, tool=())  # type: ignore[call-arg]


def test_arguments_are_checked_by_each_form(tmp_path: Path) -> None:
    session = Session("context-offload", root=tmp_path, session_id="s")
    steps = session.apply_in_steps([], system="s", request=Request())
    with pytest.raises(InputError, match="a request has its own system and tools"):
        finished(steps)
