"""Which files belong to the work: those of the folders that it is done in.

An agent keeps scratch files in other folders: captured output, drafts, scripts for one look. They
say little of the work, and a check of the work does not read them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.statements import PATH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.work import Call

# The folders of an operating system for temporary files.
_TEMPORARY = re.compile(
    r"(?:/private)?/tmp(?:/|$)|(?:/private)?/var/(?:tmp|folders)(?:/|$)|/dev/shm(?:/|$)"
    r"|[A-Za-z]:[\\/].*[\\/]Temp(?:[\\/]|$)",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:[\\/]")
_STROKE = re.compile(r"[\\/]+")
# Fields of a call, and the command, that say where it runs.
_FOLDER_FIELD = re.compile(r"(?:cwd|work_?dir|working_?dir(?:ectory)?)", re.IGNORECASE)
_CHANGES_FOLDER = re.compile(r"(?:^|&&|;|\n)\s*(?:cd|pushd)\s+['\"]?([~/][^\s'\"&;]*)")
# Leading parts of a path that two folders of one project share: `/home/name/project`.
_SHARED_PARTS = 3
# Endings of files that people read and no compiler or test does.
_DOCUMENTATION = re.compile(r"\.(?:md|markdown|mdx|rst|adoc|asciidoc|txt)$", re.IGNORECASE)


class Places(NamedTuple):
    """Where the work is done."""

    folders: frozenset[tuple[str, ...]]
    """The first parts of the folders that commands ran in."""
    in_temporary: bool
    """Whether the work itself is in a folder for temporary files."""
    named: frozenset[str]
    """The paths that user and agent spoke of: those files matter wherever they are."""

    def is_outside(self, path: str) -> bool:
        """Whether a file belongs to another folder than the work."""
        if not _ABSOLUTE.match(path) or path in self.named:
            return False
        if _TEMPORARY.match(path):
            return not self.in_temporary
        return bool(self.folders) and _parts(path) not in self.folders

    def is_source(self, path: str) -> bool:
        """Whether a check may read a file: one of the work that is not documentation."""
        return not (self.is_outside(path) or _DOCUMENTATION.search(path))


def places_of(calls: Iterable[Call], changed: Iterable[str], said: Iterable[Said] = ()) -> Places:
    """Return where the calls ran; `changed` are the files that they changed, and `said`
    is what user and agent said.
    """
    ran_in: set[str] = set()
    paths = set(changed)
    for call in calls:
        for field, value in call.fields.items():
            if isinstance(value, str) and _FOLDER_FIELD.fullmatch(field):
                ran_in.add(value)
        if call.path is not None:
            paths.add(call.path)
        ran_in.update(_CHANGES_FOLDER.findall(call.command or ""))
    absolute = {one for one in ran_in if _ABSOLUTE.match(one)}
    lasting = {one for one in absolute if not _TEMPORARY.match(one)}
    others = any(not _TEMPORARY.match(path) for path in paths)
    named = frozenset(value.text for one in said for value in one.values if value.kind == PATH)
    in_temporary = not lasting and (bool(absolute) or not others)
    return Places(frozenset(_parts(one) for one in lasting), in_temporary, named)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(_STROKE.split(path.rstrip("/\\"))[: _SHARED_PARTS + 1])
