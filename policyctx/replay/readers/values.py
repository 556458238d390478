"""What readers take out of a record of JSON, whatever is in it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

from policyctx.messages.json_text import compact_json
from policyctx.tokens.usage import MOST_TOKENS

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


def texts(value: object) -> list[str]:
    """Return the texts of a list; anything else is an empty one."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def number(value: object) -> int:
    """Return a count from 0 to `MOST_TOKENS`; anything else is 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= MOST_TOKENS else 0


def counts(fields: object, *names: str) -> Iterator[int]:
    """Return the counts of these names in an object."""
    return (number(mapping(fields).get(name)) for name in names)


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


def size_of(value: object) -> int:
    """Return the characters of a value as JSON; 0 for None."""
    return 0 if value is None else len(compact_json(value))


def as_text(value: object) -> str:
    """Return a text as it is; anything else as JSON."""
    return value if isinstance(value, str) else compact_json(value)


def media(media_type: object, data: object) -> Record:
    """Return the block of a file that is in a message: an image, or a document."""
    kind = "image" if word(media_type).startswith("image/") else "document"
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}
