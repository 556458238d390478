"""The project of a recording: what its sessions share, so that a test may not train on it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath

from policyctx.replay.recording import Recording

# Stands between the name of a project and the rest in the names of many exported files.
_SEPARATOR = "__"


class ProjectBy(StrEnum):
    """What makes two recordings ones of the same project."""

    RECORDED = "recorded"
    """The working directory in the recording; where it has none, the file's folder and the
    beginning of its name before `__`."""
    FOLDER = "folder"
    """The folder of the file."""
    FILE = "file"
    """The file; all sessions in it belong together."""


def project_of(recording: Recording, path: str, by: ProjectBy = ProjectBy.RECORDED) -> str:
    """Return the project of a recording in the file at `path`."""
    if by is ProjectBy.FILE:
        return path
    folder, name = PurePath(path).parent, PurePath(path).name
    if by is ProjectBy.FOLDER:
        return str(folder)
    if recording.project:
        return recording.project
    start, separator, _ = name.partition(_SEPARATOR)
    return str(folder / start) if start and separator else str(folder)
