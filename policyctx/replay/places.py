"""Where recordings are: files and folders of this machine, objects and prefixes of a store."""

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from policyctx.definitions.names import is_url, url_problem
from policyctx.errors import InputError
from policyctx.replay.objects import ObjectUrl
from policyctx.replay.reading import files_in, is_folder

Place: TypeAlias = Path | ObjectUrl


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """A file to read, and whether it was named; what a folder holds may be something else."""

    path: Place
    named: bool
    bytes: int = 0


def place_of(text: str) -> Place:
    """Return the path or the URL that a text names; `file://` is a path.

    Raises `InputError` for a URL that cannot be one of recordings.
    """
    if not is_url(text):
        return Path(text)
    problem = url_problem(text.rstrip("/"))
    if problem:
        raise InputError(f"{text.rpartition('@')[2]}: {problem}")
    parts = urlsplit(text)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return ObjectUrl(f"{parts.scheme}://{parts.netloc}", parts.path.strip("/"))


def files(places: Iterable[Place]) -> list[RecordingFile]:
    """Return the files at the places and in the folders among them, sorted within each folder.

    A file that is found in two ways is there once. Raises `MissingExtraError` for a URL without the
    package that reads it.
    """
    found: dict[Place, RecordingFile] = {}
    for place in places:
        for each in _at(place):
            identity = each.path if isinstance(each.path, ObjectUrl) else _resolved(each.path)
            earlier = found.setdefault(identity, each)
            if each.named and not earlier.named:
                found[identity] = replace(earlier, named=True)
    return list(found.values())


def _at(place: Place) -> Iterator[RecordingFile]:
    if isinstance(place, ObjectUrl):
        yield from _at_url(place)
        return
    is_named = not is_folder(place)
    for each in files_in([place]):
        yield RecordingFile(each, is_named, _size(each))


def _at_url(url: ObjectUrl) -> Iterator[RecordingFile]:
    """Yield the objects below a URL; the URL itself if it is an object, or cannot be asked for.

    Reading it then reports why.
    """
    try:
        below = [RecordingFile(each, named=False, bytes=size) for each, size in url.below()]
        if not below:
            yield RecordingFile(url, named=True, bytes=url.size())
    except OSError:
        yield RecordingFile(url, named=True)
    else:
        yield from below


def _resolved(path: Path) -> Path:
    """Return the path without links, or as it is where that fails; reading it reports why."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _size(path: Path) -> int:
    """Return the bytes of a regular file; 0 for anything else."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
