"""`Home`: a folder in which an agent keeps its sessions, and the files of sessions in it."""

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
# By platform: the folder of settings, and the variable that moves it.
_SETTINGS = {
    "darwin": ("~/Library/Application Support", ""),
    "win32": ("~/AppData/Roaming", "APPDATA"),
}


@dataclass(frozen=True, slots=True)
class Home:
    """The default place of an agent's sessions."""

    folder: str
    """Such as `~/.claude/projects`."""
    files: str
    """Which files in it are sessions: a name for each level, `**` for any number of levels."""
    variable: str = ""
    """The agent's own environment variable that moves the folder."""
    moved: str = ""
    """The beginning of `folder` that the variable replaces, such as `~/.claude`."""
    agent: str = ""
    """Whose folder it is, where the reader's format is named after another agent."""
    editor: str = ""
    """The folder of an editor in it, where each editor has one alike."""

    def path(self, environment: Mapping[str, str] = os.environ) -> Path:
        """Return the folder, as the environment has it."""
        folder = self.folder
        if self.variable and (value := environment.get(self.variable)):
            folder = value + folder.removeprefix(self.moved)
        return Path(os.path.expanduser(folder))  # noqa: PTH111 - raises nothing without a home


def editor_homes(folder: str, files: str, *, agent: str = "") -> tuple[Home, ...]:
    """Return where an extension of VS Code, or of an editor made of it, keeps its sessions.

    `folder` is in the user's folder of the editor, such as `globalStorage/author.extension`.
    """
    settings, variable = _SETTINGS.get(sys.platform, ("~/.config", "XDG_CONFIG_HOME"))
    return tuple(
        Home(f"{settings}/{editor}/User/{folder}", files, variable, settings, agent, editor)
        for editor in _EDITORS
    )


@dataclass(frozen=True, slots=True)
class HomeFile:
    """A file of sessions."""

    path: Path
    project: str
    """The folder whose name is open in the pattern, where that begins with one."""
    bytes: int
    changed: float
    """When it was written last, in seconds since 1970; of a database, its journal counts too."""


@dataclass(slots=True)
class HomeFiles:
    """What a folder has."""

    files: list[HomeFile] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)
    """Folders that cannot be listed and files that cannot be looked up, and why."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What is never opened, such as links: how often, by what it is."""
    is_there: bool = True


def files_of(home: Home, environment: Mapping[str, str] = os.environ) -> HomeFiles:
    """Return the files of sessions in the folder of an agent. No link below it is followed."""
    found, folder = HomeFiles(), home.path(environment)
    is_by_project = home.files.startswith("*/")
    if not os.path.lexists(folder):
        found.is_there = False
    for entry, entries in _matching(folder, home.files.split("/"), found):
        try:
            status = entry.stat(follow_symlinks=False)
            journal = entries.get(f"{entry.name}-wal")
            changed = status.st_mtime
            if journal is not None:
                changed = max(changed, journal.stat(follow_symlinks=False).st_mtime)
        except OSError as error:
            found.unreadable[Path(entry.path)] = error.strerror or str(error)
            continue
        if stat.S_ISREG(status.st_mode):
            path = Path(entry.path)
            project = path.relative_to(folder).parts[0] if is_by_project else ""
            found.files.append(HomeFile(path, project, status.st_size, changed))
        else:
            is_link = stat.S_ISLNK(status.st_mode)
            found.left_out["link" if is_link else "pipe, socket or device"] += 1
    return found


def _matching(
    folder: Path, levels: Sequence[str], found: HomeFiles
) -> Iterator[tuple[os.DirEntry[str], Mapping[str, os.DirEntry[str]]]]:
    """Yield what is no folder and matches, each with what is beside it, by name."""
    # No recursion: whoever writes in the folder may nest folders without end.
    waiting = _listed(folder, levels, found) if found.is_there else []
    while waiting:
        entry, levels, entries = waiting.pop()
        any_depth = levels[0] == "**"
        # Behind `**` only the name of a file stands.
        name, below = (levels[1:] if any_depth else levels)[0], levels if any_depth else levels[1:]
        if entry.is_dir(follow_symlinks=False):
            if below and (any_depth or fnmatchcase(entry.name, name)):
                waiting += _listed(Path(entry.path), below, found)
        elif (any_depth or not below) and fnmatchcase(entry.name, name):
            yield entry, entries
        elif below and entry.is_symlink() and (any_depth or fnmatchcase(entry.name, name)):
            found.left_out["link"] += 1


def _listed(
    folder: Path, levels: Sequence[str], found: HomeFiles
) -> list[tuple[os.DirEntry[str], Sequence[str], Mapping[str, os.DirEntry[str]]]]:
    """Return what a folder has, the last one first, each with the levels and what is beside it."""
    try:
        with os.scandir(folder) as listed:
            entries = {entry.name: entry for entry in sorted(listed, key=lambda one: one.name)}
    except OSError as error:
        found.unreadable[folder] = error.strerror or str(error)
        return []
    return [(entry, levels, entries) for entry in reversed(entries.values())]
