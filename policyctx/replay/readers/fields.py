"""What readers ask of the fields of a record, whatever is written there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

from policyctx.errors import UsageError
from policyctx.messages.json_text import compact_json
from policyctx.tokens.usage import MOST_TOKENS, Usage, usage_of

Record: TypeAlias = dict[str, Any]
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, since 1970."""


def word(value: object) -> str:
    """Return a text as it is; anything else is none."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> Record:
    """Return an object as it is; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Record]:
    """Return the objects of a list; anything else is an empty one."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def number(value: object) -> int:
    """Return a count from 0 to `MOST_TOKENS`; anything else is 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= MOST_TOKENS else 0


def usage(fields: object) -> Usage | None:
    """Return a response's usage, None when there is none that can be read."""
    try:
        return usage_of(fields)
    except UsageError:
        return None


def seconds(time: object) -> float | None:
    """Return a time as seconds since 1970: ISO 8601, or a number of seconds or milliseconds.

    A time without a zone is taken as UTC, so that a recording reads the same everywhere. Returns
    None for anything else, and for a number beyond the year 9999.
    """
    if isinstance(time, str):
        try:
            moment = datetime.fromisoformat(time)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, ValueError):
            return None
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    # `not` refuses NaN as well. Seconds above 1e11 are 3,000 years away, so they are milliseconds.
    if not abs(time) <= 1000 * _LAST_SECOND:
        return None
    return time / 1000 if time > 1e11 else float(time)  # noqa: PLR2004


def function_call(call_id: object, name: object, arguments: object) -> Record:
    """Return a call in the form of the chat API, whose arguments are JSON text."""
    text = arguments if isinstance(arguments, str) else compact_json(arguments)
    function = {"name": word(name), "arguments": text}
    return {"id": word(call_id), "type": "function", "function": function}
