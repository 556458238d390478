"""`tool`: a function that a model calls, and how many of its results stay in the context.

    @tool("Read a large file", ephemeral=3)
    async def read_large_file(path: str) -> str: ...

    session = Session("context-filesystem", tools=[read_large_file])

What code says of a tool is a `Hint`: the rules of a policy for the tool or its item type override
it.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from pydantic import PydanticUserError, TypeAdapter

from policyctx.definitions.items import HostObject
from policyctx.definitions.names import names_of_tools
from policyctx.errors import InputError, Location
from policyctx.policy.agent_options import checks_options
from policyctx.policy.models.rules import ToolRule

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

# Where a decorated object keeps what was said of it, and where SDKs keep the function of a tool.
_SAID = "__policyctx_tool__"
_FUNCTIONS = ("func", "coroutine", "__wrapped__")
IN_CODE = Location("code")


class Tool(Protocol[P, R_co]):
    """A function with what `tool` says of it; it is called as before."""

    name: str
    description: str
    input_schema: dict[str, Any] | None
    """The JSON Schema of the parameters; None if one of them has none, such as a framework's
    context."""
    ephemeral: int | None
    """How many of the newest results stay in the context; None if the policy alone decides."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""


class Decorator(Protocol):
    """What `tool(…)` returns: it takes a function, or a tool that an SDK made of one."""

    @overload
    def __call__(self, decorated: Callable[P, R_co], /) -> Tool[P, R_co]: ...
    @overload
    def __call__(self, decorated: T, /) -> T: ...


class Hint(NamedTuple):
    """A rule for one tool that code gives, and the place of that code."""

    rule: ToolRule
    place: Location = IN_CODE

    @classmethod
    def of(cls, given: "Mapping[str, Any] | Hint") -> "Hint":
        """Return the hint of a rule such as `{"keep_recent": 3}`."""
        return given if isinstance(given, Hint) else cls(ToolRule.model_validate(given))


@overload
def tool(function: Callable[P, R_co], /) -> Tool[P, R_co]: ...
@overload
def tool(description: str | None = None, /, *, ephemeral: int | None = None) -> Decorator: ...
@checks_options
def tool(
    description: str | Callable[..., Any] | None = None, /, *, ephemeral: int | None = None
) -> Any:
    """Say of a function that it is a tool, and how many of its newest results stay.

    The function itself is returned, with the attributes of `Tool`. Its description is the first
    argument, else its docstring; a function without a docstring gets the description as one, so
    that the decorator of an SDK finds it.

    Works with the decorators of SDKs, above or below them: `beta_tool` and `beta_async_tool` of
    Anthropic, `function_tool` of OpenAI Agents, `tool` of LangChain. Above one, the SDK's object is
    returned, and a description replaces the one that it has. `function_tool` must be below if the
    SDK's tools have no `__wrapped__`.

    Raises `InputError` for a negative `ephemeral`, a function without a description, and a value
    that is neither a function nor an object with a `name`.
    """
    if description is not None and not isinstance(description, str):
        return _decorated(description, None, None)
    is_number = isinstance(ephemeral, int) and not isinstance(ephemeral, bool)
    if ephemeral is not None and not (is_number and ephemeral >= 0):
        raise InputError(f"ephemeral is a number of results from 0 on, got {ephemeral!r}")

    def decorate(decorated: object) -> object:
        return _decorated(decorated, description, ephemeral)

    return decorate


def tool_hints(
    tools: Iterable[object], hints: Mapping[str, Mapping[str, Any] | Hint]
) -> dict[str, Hint]:
    """Return the hints of tools, by the name under which a model calls each; `hints` override them.

    A tool is what `tool` returned, what an SDK's decorator made of that, or anything with a name,
    such as a schema, which gives no hint. Raises `InputError` for a value without a name.
    """
    found: dict[str, Hint] = {}
    for each in tools:
        names = [*names_of_tools([each])]
        if not names:
            raise InputError(f"expected a tool, got {each!r}; decorate a function with @tool(…)")
        if (hint := _said(each)) is not None:
            found |= dict.fromkeys(names, hint)
    return {**found, **{name: Hint.of(rule) for name, rule in hints.items()}}


def _decorated(decorated: HostObject, description: str | None, ephemeral: int | None) -> HostObject:
    if inspect.isfunction(decorated):
        _describe(decorated, description, ephemeral)
    elif isinstance(decorated, Mapping | type) or not any(names_of_tools([decorated])):
        raise InputError(
            f"@tool needs a function or the tool that an SDK made of one, got {decorated!r}"
        )
    elif description is not None:
        decorated.description = description
    hint = None if ephemeral is None else _hint(decorated, ephemeral)
    # The models of pydantic take no attribute by assignment.
    object.__setattr__(decorated, _SAID, hint)
    return decorated


def _describe(function: HostObject, description: str | None, ephemeral: int | None) -> None:
    documented = inspect.getdoc(function)
    text = description or documented
    if not text:
        raise InputError(
            f"the tool {function.__name__} has no description: @tool('…') or a docstring"
        )
    if not documented:
        function.__doc__ = text
    function.name = function.__name__
    function.description = text
    function.input_schema = _schema(function)
    function.ephemeral = ephemeral


def _schema(function: HostObject) -> dict[str, Any] | None:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(function)
        return adapter.json_schema()
    except (PydanticUserError, NameError):  # a parameter that no JSON can be
        return None


def _hint(decorated: HostObject, ephemeral: int) -> Hint:
    rule = ToolRule.model_validate({"keep_recent": ephemeral})
    code = getattr(inspect.unwrap(_function(decorated)), "__code__", None)
    place = IN_CODE if code is None else Location(code.co_filename, code.co_firstlineno)
    return Hint(rule, place)


def _function(decorated: HostObject) -> HostObject:
    """Return the function of an SDK's tool; the object itself if it shows none."""
    found = (getattr(decorated, name, None) for name in _FUNCTIONS)
    return next(filter(inspect.isroutine, found), decorated)


def _said(decorated: object) -> Hint | None:
    """Return what was said of an object, else of the function that an SDK made it of."""
    holder = decorated if hasattr(decorated, _SAID) else _function(decorated)
    hint = getattr(holder, _SAID, None)
    return hint if isinstance(hint, Hint) else None
