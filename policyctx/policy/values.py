"""The values of a policy that are more than a number or a word: shares, templates, modes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.policy.template import parsed_template

if TYPE_CHECKING:
    from collections.abc import Callable

_ITEM_FIELDS = ("item_id", "item_type", "tool_name", "tool_use_id", "session_id")

PLACEHOLDER_FIELDS = (
    *_ITEM_FIELDS, "path", "relative_path", "tokens", "chars", "lines", "sha256",
)  # fmt: skip
PATH_FIELDS = (*_ITEM_FIELDS, "ext")
ROOT_FIELDS = ("session_id",)
SESSION_FIELDS = ("date", "time", "random")

_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)%")


@dataclass(frozen=True, slots=True)
class Share:
    """A percentage of something that its key names."""

    percent: float

    def of(self, whole: int) -> int:
        """Return the share of `whole`, rounded up, so that `at least` stays true."""
        return -int(-self.percent * whole // 100)

    def __str__(self) -> str:
        return f"{self.percent:g}%"


def amount(value: object) -> int | Share:
    """Read a number of tokens, or a share such as `10%`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is None or float(match.group(1)) > 100:  # noqa: PLR2004 - per cent
        raise ValueError("expected a whole number of tokens, 0 or more, or a share such as 10%")
    return Share(float(match.group(1)))


def keep_recent_map(value: Any) -> Any:  # noqa: ANN401 - a YAML value not yet typed
    """Read the short form `3` as `{items: 3}`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return {"items": value}
    if isinstance(value, dict):
        return value
    raise ValueError("expected a number of items or a map")


def template_of(fields: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a check that a text uses none but these fields."""

    def checked(value: Any) -> Any:  # noqa: ANN401 - a YAML value not yet typed
        if isinstance(value, str):
            parsed_template(value, fields)
        return value

    return checked


def path_template(value: Any) -> Any:  # noqa: ANN401 - a YAML value not yet typed
    """Check a file's path below the root: known fields, and no part that leads out of it."""
    checked = template_of(PATH_FIELDS)(value)
    if isinstance(checked, str) and {"", ".", ".."} & set(checked.split("/")):
        raise ValueError("expected a path below the root, without empty parts or dots")
    return checked


def file_mode(value: Any) -> Any:  # noqa: ANN401 - a YAML value not yet typed
    """Check a quoted octal mode that leaves the owner able to read and write."""
    if not isinstance(value, str) or not re.fullmatch(r"0?[67][0-7]{2}", value):
        raise ValueError('expected a quoted octal mode such as "0600"')
    return value
