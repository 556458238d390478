"""What all maps of a policy share, and the types of their scalars."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    Strict,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from policyctx.definitions.items import PlainValue
from policyctx.policy import values

M = TypeVar("M")
# For a rule such as `at_least_one` that speaks of every key of the map.
EVERY_KEY = ("*",)
_LARGE = {"tokens": 200_000, "input": 6.0, "cache_write": 7.5, "cache_read": 0.6, "output": 22.5}
Price = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A map in a policy: frozen, strictly typed, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def keys_of_rule(cls, rule: str) -> tuple[str, ...]:
        """Return the keys of which `exactly_one`, `at_least_one` or `at_most_one` is allowed."""
        keys: tuple[str, ...] = getattr(cls, rule, ())
        return tuple(cls.model_fields) if keys == EVERY_KEY else keys

    @classmethod
    def noted(cls, kind: type[M]) -> Mapping[str, M]:
        """Return, by its key, what the model says about each key in a value of this class."""
        noted: Mapping[str, M] = _noted(cls, cast("Any", kind))
        return noted

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Say in the JSON Schema which keys exclude one another, and of which one is needed.

        A map's own keys come before those that it inherits. A key is described by the docstring
        of its field. The schema reads the source for these; pydantic would read it at each import.
        """
        written = handler(schema)
        resolved = handler.resolve_ref_schema(written)
        for key, text in described(cls).items():
            resolved["properties"][key].setdefault("description", text)
        inherited = {k for base in cls.__bases__ for k in getattr(base, "model_fields", ())}
        own_first = sorted(resolved["properties"].items(), key=lambda pair: pair[0] in inherited)
        resolved.update(_combinations(cls), properties=dict(own_first))
        return written


def described(model: type[Section]) -> dict[str, str]:
    """Return the docstring of each field of a model that has one."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__[: model.__mro__.index(Section)]):
        if "[" not in base.__name__:  # a generic model with its parameter has no source
            found |= _field_docstrings(base)
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _field_docstrings(model: type) -> dict[str, str]:
    """Return the strings that follow the fields in the source of a model, by the field's name."""
    node = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    body = node.body if isinstance(node, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(text.value.value, str)
    }


@cache
def _noted(model: type[Section], kind: PlainValue) -> Mapping[str, Any]:
    return {
        key: found
        for key, field in model.model_fields.items()
        for found in field.metadata
        if isinstance(found, kind)
    }


def _combinations(model: type[Section]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for rule, keyword in (("exactly_one", "oneOf"), ("at_least_one", "anyOf")):
        if keys := model.keys_of_rule(rule):
            found[keyword] = [{"required": [key]} for key in keys]
    if keys := model.keys_of_rule("at_most_one"):
        found["not"] = {"anyOf": [{"required": list(pair)} for pair in combinations(keys, 2)]}
    return found


class _OneOrMore:
    """Reads a single value where a list is meant as a list of one."""

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: value if isinstance(value, list) else [value], handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


def _text(title: str, pattern: str, example: str) -> dict[str, Any]:
    title = f"{title} such as {example}"
    return {"type": "string", "title": title, "pattern": f"^{pattern}$", "examples": [example]}


_SHARE = _text("share", values.SHARE_PATTERN, "10%")
_BYTES = WithJsonSchema(_text("size", values.BYTES_PATTERN, "5GB"))
_DURATION = _text("duration", values.DURATION_PATTERN, "5m")
_AMOUNT = WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, _SHARE]})
_RATIO = WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, _SHARE]})
_IDLE = WithJsonSchema({"anyOf": [_DURATION, {"const": "cache_ttl"}]})
_CACHE_TTL = WithJsonSchema({"anyOf": [_DURATION, {"const": "recorded"}]})
_LIMIT = WithJsonSchema({"anyOf": [{"const": False}, _SHARE]})


def _plain(value: object) -> object:
    """What a person writes for a value: numbers and words as they are, the rest by its text."""
    return value if isinstance(value, int | str) else str(value)


_WRITTEN = PlainSerializer(_plain)
_RATIO_WRITTEN = PlainSerializer(float)

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[int | values.Share, PlainValidator(values.amount), _AMOUNT, _WRITTEN]
Calls = Annotated[int | values.Share, PlainValidator(values.calls), _AMOUNT, _WRITTEN]
Ratio = Annotated[Fraction, PlainValidator(values.ratio), _RATIO, _RATIO_WRITTEN]
Duration = Annotated[
    values.Duration, PlainValidator(values.duration), WithJsonSchema(_DURATION), _WRITTEN
]
IdleTime = Annotated[values.Duration | str, PlainValidator(values.idle_time), _IDLE, _WRITTEN]
CacheTtl = Annotated[values.Duration | str, PlainValidator(values.cache_ttl), _CACHE_TTL, _WRITTEN]
ByteSize = Annotated[values.ByteSize, PlainValidator(values.byte_size), _BYTES, _WRITTEN]
ShrinkLimit = Annotated[values.Share | bool, PlainValidator(values.shrink_limit), _LIMIT, _WRITTEN]
Text = Annotated[str, Field(min_length=1)]
# A list in the file; `Strict(strict=False)` lets it become the tuple that a frozen model holds.
Names = Annotated[tuple[str, ...], Strict(strict=False)]
OneOrMore = _OneOrMore()


def such(*examples: object) -> object:
    """Return the note on a key that it is written such as these examples."""
    return Field(examples=[*examples])


class PriceKinds(Section):
    """What a model call costs, in $ per million tokens."""

    input: Price
    """Input that is not cached."""
    cache_write: Price
    """Input that is written to the prompt cache for five minutes."""
    cache_write_1h: Price | None = None
    """Input that is written to the prompt cache for an hour. Default: `cache_write`."""
    cache_read: Price
    """Input that is read from the prompt cache."""
    output: Price
    """Output."""


class PricesAbove(PriceKinds):
    """Prices of a whole call, its output included, if its prompt has more than `tokens` tokens."""

    tokens: Annotated[int, Field(gt=0, examples=[200_000])]
    """The prompt, cached tokens included, has more tokens than this."""


class Prices(PriceKinds):
    """What a model call costs, in $ per million tokens."""

    above: Annotated[tuple[PricesAbove, ...], Strict(strict=False), such([_LARGE])] = ()
    """Other prices for the whole call, by the size of its prompt."""
