"""The tokens of a whole request: its texts, and what the provider's API adds to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from policyctx.definitions.items import Medium
from policyctx.definitions.request_content import Mark, Piece
from policyctx.tokens.media import Counts, Part, medium_parts, total
from policyctx.tokens.provider_models import ProviderModel
from policyctx.tokens.tool_schemas import schema_parts, schemas_of


def request_tokens(
    counter: Counts, pieces: Iterable[Piece], tools: object, model: ProviderModel
) -> int:
    """Return the tokens of a request, by the documented constants of its provider.

    `pieces` are those of its messages and of its system prompt, `tools` the schemas of the
    available tools, in the form in which any of the APIs takes them.
    """
    return total(_request_parts(pieces, tools, model), counter)


def piece_tokens(counter: Counts, pieces: Iterable[Piece], model: ProviderModel) -> int:
    """Return what these pieces add to a request; the request's own parts are not included."""
    return total(_parts(pieces, model), counter)


def _request_parts(pieces: Iterable[Piece], tools: object, model: ProviderModel) -> Iterator[Part]:
    yield model.request
    yield from _parts(pieces, model)
    if tools:
        yield model.tools
        for schema in schemas_of(tools):
            yield from schema_parts(schema, model)


def _parts(pieces: Iterable[Piece], model: ProviderModel) -> Iterator[Part]:
    marks = {
        Mark.MESSAGE: model.message,
        Mark.SPEAKER: model.speaker,
        Mark.TOOL_CALL: model.tool_call,
        Mark.TOOL_RESULT: model.tool_result,
    }
    for piece in pieces:
        if isinstance(piece, Mark):
            yield marks[piece]
        elif isinstance(piece, Medium):
            yield from medium_parts(piece, model)
        else:
            yield piece
