"""The path of an item's file below the root: a template whose values cannot lead outside."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from policyctx.definitions.items import Item
from policyctx.definitions.names import PATH_FIELDS
from policyctx.policy.models.steps import Escape
from policyctx.policy.values import Template, parsed_template

_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_MAX_BYTES = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_PLAIN_PART = re.compile(rf"(?!\.+\Z)[A-Za-z0-9._-]{{1,{_MAX_BYTES}}}")
# What `{ext}` is in a path, by `store.format`.
EXTENSIONS = {"text": "md", "envelope": "json"}


@dataclass(frozen=True, slots=True)
class File:
    """A file that holds an item: the one that a plan expects, or the one that was written."""

    relative_path: str
    """Below the store's root, parts joined by `/`."""
    path: str
    """Absolute."""


def path_from(folder: str, path: str) -> str:
    """Return an absolute path relative to a folder that it is in, else as it is.

    An empty `folder` is none.
    """
    start = folder.rstrip("/\\")
    is_inside = folder and path.startswith(start) and path[len(start) :][:1] in {"/", "\\"}
    return path[len(start) + 1 :] if is_inside else path


def path_parts(template: str) -> tuple[Template, ...]:
    """Parse the template of a path into its parts, folders first."""
    return tuple(parsed_template(part, PATH_FIELDS) for part in template.split("/"))


def relative_path(
    parts: Sequence[Template],
    values: Mapping[str, str | None],
    content: str = "",
    *,
    escape: Escape = "percent",
) -> str:
    """Return the path that the parts give with these values, joined by `/`.

    A folder whose only field has no value is left out. Any other empty field becomes the hash of
    the `content`, so that different items without an id never share a file; a missing
    `tool_use_id` becomes the tool's name, where there is one, and that hash.
    """
    *folders, name = parts
    kept = [folder for folder in folders if not _is_empty(folder, values)]
    if values.get("tool_use_id") is None and (tool := values.get("tool_name")):
        values = {**values, "tool_use_id": f"{tool}-{hash_name(content)}"}
    return "/".join(
        part.render({field: _part(values[field], content, escape) for field in part.fields})
        for part in (*kept, name)
    )


def item_path(
    item: Item,
    parts: Sequence[Template],
    *,
    session_id: str,
    file_format: str,
    escape: Escape = "percent",
) -> str:
    """Return the path of an item's file below the root, whether or not the name is free.

    `file_format` is the `store.format` of the policy, `escape` its `store.escape`.
    """
    values = {
        "item_id": item.item_id,
        "item_type": item.type,
        "tool_name": item.tool,
        "tool_use_id": item.tool_use_id,
        "session_id": session_id,
        "ext": EXTENSIONS[file_format],
    }
    return relative_path(parts, values, item.text, escape=escape)


def _part(value: str | None, content: str, escape: Escape) -> str:
    return safe_part(value, escape) if value else hash_name(content)


def _is_empty(folder: Template, values: Mapping[str, str | None]) -> bool:
    return folder.pieces[::2] == ("", "") and values[folder.pieces[1]] is None


def safe_part(value: str, escape: Escape = "percent") -> str:
    """Return `value` as one part of a path.

    `A-Z a-z 0-9 . _ -` stay; any other byte is percent-encoded, a name of dots only too. With the
    escape `_` each such character becomes `_`, so that different values may have one name. What is
    empty or over 120 bytes becomes `sha256-` and 16 hex digits.
    """
    if _PLAIN_PART.fullmatch(value):  # most are
        return value
    if escape == "_":
        replaced = _UNSAFE.sub("_", value) if value.strip(".") else "_" * len(value)
        return replaced if 0 < len(replaced) <= _MAX_BYTES else hash_name(value)
    raw = value.encode("utf-8", "surrogatepass")
    plain = b"" if not value.strip(".") else _KEPT
    encoded = "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in raw)
    if 0 < len(encoded) <= _MAX_BYTES:
        return encoded
    return hash_name(value)


def hash_name(text: str) -> str:
    """Return the name that stands for a text in a path: `sha256-` and 16 hex digits."""
    return f"sha256-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def numbered(path: str, number: int) -> str:
    """Return `path` with `-number` before its extension; number 0 is the path itself."""
    if number == 0:
        return path
    stem, end = _split(path)
    return f"{stem}-{number}{end}"


def marked(path: str, mark: str) -> str:
    """Return `path` with `-mark` before its extension."""
    stem, end = _split(path)
    return f"{stem}-{mark}{end}"


def numbered_forms(path: str) -> str:
    """Return the regular expression of `path` and all that `numbered` makes of it."""
    stem, extension = _split(path)
    return f"{re.escape(stem)}(?:-[0-9]+)?{re.escape(extension)}"


def _split(path: str) -> tuple[str, str]:
    """Split a path before its extension, where a number goes."""
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    return (f"{folder}{slash}{stem}", f"{dot}{extension}") if stem else (path, "")


class FreePaths:
    """Paths that are given out only once: `path`, then `path-1`, `path-2`, … with its extension.

    Those `taken`, and those given out by `beyond`, are not given out.
    """

    def __init__(self, taken: Iterable[str] = (), *, beyond: FreePaths | None = None) -> None:
        self._given = set(taken)
        self._next: dict[str, int] = {}
        self._beyond = beyond

    def __contains__(self, path: str) -> bool:
        return path in self._given or (self._beyond is not None and path in self._beyond)

    def add(self, path: str) -> None:
        """Add a path that is taken."""
        self._given.add(path)

    def take(self, path: str, *, passes: Callable[[str], bool] = lambda _: True) -> str:
        """Give out the first form of `path` that is not given out yet and that `passes` accepts."""
        number = self._next.get(path, 0)
        while (found := numbered(path, number)) in self or not passes(found):
            number += 1
        self._next[path] = number + 1
        self._given.add(found)
        return found
