"""The same call, or a call for the same file, made again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from policyctx.replay.readers.json_text import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.messages.items import Item
    from policyctx.replay.part import Part

Asked: TypeAlias = tuple[str | None, str]


def asked_again(part: Part, replies: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield each call of a tool that was made before: it, the model's call, the result before.

    The result is the newest one of the same tool for the same input. Numbers and switches do not
    make an input another one: they ask for another piece of the same file.
    """
    of_reply = dict(replies)
    newest: dict[Asked, int] = {}
    answers: list[tuple[Asked, int]] = []
    for position, item in enumerate(part.items):
        if item.kind != "tool_call":
            continue
        asked = _asked(item)
        call = of_reply.get(position)
        if call is not None:
            answers = _taken(answers, newest, part, call)
            if asked in newest:
                yield position, call, newest[asked]
        result = part.partners.get(position)
        if result is not None:
            answers.append((asked, result))


def _taken(
    answers: list[tuple[Asked, int]], newest: dict[Asked, int], part: Part, call: int
) -> list[tuple[Asked, int]]:
    """Take over the results that a call of the model had; return those that came later."""
    waiting = []
    for asked, result in answers:
        if result < part.had(call):
            newest[asked] = result
        else:
            waiting.append((asked, result))
    return waiting


def _asked(call: Item) -> Asked:
    try:
        given = value_of(call.text)
    except ValueError:
        return call.tool, call.text
    if not isinstance(given, dict):
        return call.tool, call.text
    words = {key: value for key, value in given.items() if not isinstance(value, int | float)}
    return call.tool, _encode(words or given)


_encode = json.JSONEncoder(sort_keys=True).encode
