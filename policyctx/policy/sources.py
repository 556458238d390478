"""Policy files: presets by name, files by path. Only this module of the language reads them."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from policyctx.errors import Diagnostic, Location, PolicyError, UnknownPolicyError, nearest
from policyctx.resources import open_file, shipped_folder

MAX_BYTES = 64 * 1024
AGENTS_FILE = "policyctx.yaml"
EXTENDS_FROM = "POLICYCTX_EXTENDS_FROM"
_FRAGMENTS = "fragments"

PathName: TypeAlias = str | os.PathLike[str]
# A preset's name or a file's path.
PolicyName: TypeAlias = PathName


class PolicySource(NamedTuple):
    """The text of a policy and the name that its errors are reported under.

    `path` is the file that it was read from, resolved; None for a text from elsewhere.
    """

    name: str
    text: str
    path: str | None = None
    is_named_by_file: bool = False
    """Whether another file names it, and not the user."""
    within: tuple[str, ...] = ()
    """Folders that the files which it names may be in; those of its project if empty."""

    @property
    def is_indirect(self) -> bool:
        """Whether the user need not know what the file is: another file or a link leads to it."""
        if self.is_named_by_file or self.path is None:
            return self.is_named_by_file
        return self.path != _without_links(self.name)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the files which it names may be in."""
        return self.within or (_project(self.path or str(Path(self.name).absolute())),)

    def allows(self, path: Path) -> bool:
        """Return whether it may name this file: links followed, one of `folders` has it.

        The environment may add folders: `POLICYCTX_EXTENDS_FROM`. A name that no file can have is
        allowed.
        """
        given = environment().get(EXTENDS_FROM, "").split(os.pathsep)
        folders = [*self.folders, *(folder for folder in given if folder)]
        try:
            wanted = Path(os.path.realpath(path))
        except ValueError:
            return True
        return any(wanted.is_relative_to(os.path.realpath(_expanded(f))) for f in folders)


def is_linked(name: PathName) -> bool:
    """Return whether a link below the folder of its project leads to a file."""
    return os.path.realpath(name) != _without_links(name)


def _without_links(name: PathName) -> str:
    """Return where a file is if no link below the folder of its project leads to it."""
    named = os.path.abspath(name)  # noqa: PTH100 - which does not follow links
    top = _project(named)
    return os.path.join(os.path.realpath(top), os.path.relpath(named, top))  # noqa: PTH118


def _project(path: str) -> str:
    """The folder of the project that a file is in: the nearest above it with a `.git`.

    Without one it is the working directory if the file is below it, else the file's own folder.
    """
    above = Path(path).parents
    for folder in above:
        if (folder / ".git").exists():
            return str(folder)
    here = Path.cwd()
    is_whole_disk = here == Path(here.anchor)
    return str(here if here in above and not is_whole_disk else above[0])


def environment() -> Mapping[str, str]:
    """Return the variables that `${NAME}` is read from."""
    return os.environ


@cache  # each policy that is loaded asks for these names
def preset_names() -> tuple[str, ...]:
    """Return the names of the policies that ship with the library, sorted."""
    return tuple(sorted(path.stem for path in shipped_folder("policies").glob("*.yaml")))


@cache
def fragment_names() -> tuple[str, ...]:
    """Return the names of the shipped fragments, sorted: parts of policies, for `extends` alone."""
    folder = shipped_folder("policies") / _FRAGMENTS
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


@cache
def further_names() -> tuple[str, ...]:
    """Return the names of the policies that ship beside the presets, sorted: `FOLDER/NAME`."""
    shipped = shipped_folder("policies").glob("*/*.yaml")
    named = (f"{path.parent.name}/{path.stem}" for path in shipped)
    return tuple(sorted(name for name in named if not name.startswith(f"{_FRAGMENTS}/")))


def is_shipped(name: str) -> bool:
    """Return whether a policy of this name ships with the library, as a preset or beside them."""
    return name in (further_names() if "/" in name else preset_names())


def made_source(name: str, text: str) -> PolicySource:
    """Return a policy that the program wrote itself; it may extend any file that it names."""
    return PolicySource(name, text, within=(Path().absolute().anchor,))


def policy_source(
    name: PolicyName,
    *,
    beside: PolicySource | None = None,
    fragments: bool = False,
    extends_from: Iterable[PathName] = (),
) -> PolicySource:
    """Read the policy called `name`: that of a shipped policy, else a file's path.

    With `fragments` it may also be the name of a fragment, which is not a policy by itself.
    A relative path is below the folder of `beside`, else below the working directory. A file named
    like a preset is reached by a path with a separator, such as `./coding-agent`. Without `beside`
    the path may be a pipe, such as a shell's `<(…)`; what another file names must be regular, and
    inside the project of the file that the user named, or in one of the folders `extends_from`.
    Raises `UnknownPolicyError` when there is neither, `PolicyError` when the file cannot be read,
    is larger than 64 KiB or is not UTF-8.
    """
    wanted = os.fsdecode(name)
    presets = preset_names()
    parts = fragment_names() if fragments else ()
    if is_shipped(wanted) or wanted in parts:
        folder = shipped_folder("policies") / ("" if is_shipped(wanted) else _FRAGMENTS)
        return read_source(folder / f"{wanted}.yaml", f"{wanted}.yaml")
    folder = Path(beside.path).parent if beside and beside.path else Path()
    path = folder / _expanded(wanted)
    if beside is not None and wanted and not beside.allows(path):
        sentence = f"is outside of the project, which is {beside.folders[0]}"
        hint = f"copy it there, or allow its folder by the variable {EXTENDS_FROM}"
        raise PolicyError([Diagnostic(Location(wanted), "PC207", sentence, hint)])
    if not wanted or not _exists(path):
        likely = nearest(Path(wanted).stem, (*presets, *parts)) or nearest(wanted, further_names())
        raise UnknownPolicyError(wanted, presets, likely)
    found = read_source(path, str(path), allow_pipe=beside is None)
    if beside is not None:
        return found._replace(is_named_by_file=True, within=beside.folders)
    if more := tuple(map(os.fsdecode, extends_from)):
        return found._replace(within=(*found.folders, *more))
    return found


def agents_source(start: PolicyName = "") -> PolicySource:
    """Read the `policyctx.yaml` nearest to the folder `start`: in it, else in one above it.

    Raises `PolicyError` when there is none, or when it cannot be read.
    """
    folder = _expanded(os.fsdecode(start))
    if not _exists(folder) or not folder.is_dir():
        raise PolicyError([Diagnostic(Location(str(folder)), "PC205", "no such folder")])
    above = folder.resolve().parents
    for path in (folder / AGENTS_FILE, *(parent / AGENTS_FILE for parent in above)):
        if os.access(path, os.F_OK):
            return read_source(path, str(path))
    looked_in = ", ".join(map(str, (folder.resolve(), *above)))
    sentence, hint = f"no such file in {looked_in}", "`policyctx init` writes one"
    raise PolicyError([Diagnostic(Location(AGENTS_FILE), "PC205", sentence, hint)])


def read_source(path: Path, name: str, *, allow_pipe: bool = False) -> PolicySource:
    """Read a file of at most 64 KiB, or a pipe if allowed. `PolicyError` calls it `name`."""
    try:
        with open_file(path, allow_pipe=allow_pipe) as file:
            raw = file.read(MAX_BYTES + 1)
    except IsADirectoryError as error:
        raise _unreadable(name, "is a folder; name the policy files in it") from error
    except OSError as error:
        raise _unreadable(name, f"cannot be read: {error.strerror}") from error
    if len(raw) > MAX_BYTES:
        raise _unreadable(name, f"larger than {MAX_BYTES // 1024} KiB, the most for a policy")
    try:
        return PolicySource(name, raw.decode("utf-8-sig"), str(path.resolve()))
    except UnicodeDecodeError as error:
        raise _unreadable(name, f"not UTF-8: byte {error.start} cannot be read") from error


def _expanded(name: str) -> Path:
    """The path with `~` filled in, where there is such a user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _exists(path: Path) -> bool:
    """Is there such a file; a name that no file can have has none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _unreadable(name: str, sentence: str) -> PolicyError:
    return PolicyError([Diagnostic(Location(name), "PC001", sentence)])
