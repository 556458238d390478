"""The schemas of tools as a provider writes them into the prompt.

Anthropic sends their JSON. OpenAI writes them out as lines, with tokens around each property; a
function's schema is nested in `function` in the chat API and flat in the Responses API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from policyctx.tokens.media import Part
from policyctx.tokens.provider_models import ProviderModel, ToolMarks

Schema: TypeAlias = Mapping[str, Any]


def schemas_of(tools: object) -> Iterator[Schema]:
    """Yield the schema of each tool in a list as a map.

    An SDK's object becomes the map that it stands for, and a bare string a text block. Values that
    are neither are skipped.
    """
    for tool in tools if isinstance(tools, list | tuple) else ():
        if type(tool) is dict or isinstance(tool, Mapping):  # the first test is the quick one
            yield tool
        elif isinstance(tool, str):
            yield {"type": "text", "text": tool}
        elif callable(dump := getattr(tool, "model_dump", None)):
            yield dump(mode="json")


def tool_names(tools: object) -> tuple[str, ...]:
    """Return the name of each tool in a list that has one, nested in `function` or not."""
    found = []
    for schema in schemas_of(tools):
        function = schema.get("function")
        name = (function if isinstance(function, Mapping) else schema).get("name")
        found += [name] if isinstance(name, str) else []
    return tuple(found)


def schema_parts(tool: Schema, model: ProviderModel) -> Iterator[Part]:
    """Yield the texts and the numbers of tokens that one tool adds to a request."""
    marks = model.tool_marks
    if marks is None:
        yield _text(tool)
        return
    function = tool.get("function")
    function = function if isinstance(function, Mapping) else tool
    yield marks.tool
    yield f"{function.get('name', '')}:{_description(function)}"
    yield from _properties(function.get("parameters"), marks)
    if isinstance(form := function.get("format"), Mapping):  # of a custom tool: a grammar
        yield _text(form.get("definition"))


def _properties(schema: object, marks: ToolMarks) -> Iterator[Part]:
    """Yield the properties in an object's schema, and those of its inner objects."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not properties or not isinstance(properties, Mapping):
        return
    yield marks.properties
    for name, value in properties.items():
        inner = value if isinstance(value, Mapping) else {}
        yield marks.property
        yield f"{name}:{_text(inner.get('type'))}:{_description(inner)}"
        choices = inner.get("enum")
        if isinstance(choices, list) and choices:
            yield marks.enum
            for choice in choices:
                yield marks.value
                yield _text(choice)
        yield from _properties(inner, marks)
        yield from _properties(inner.get("items"), marks)


def _description(schema: Schema) -> str:
    return _text(schema.get("description")).removesuffix(".")


def _text(value: object) -> str:
    """Return a string unchanged, nothing as an empty text, and any other value as compact JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return _encode(value)
    except (RecursionError, ValueError):
        return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
