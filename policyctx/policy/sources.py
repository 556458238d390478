"""Policy files: presets by name, files by path. Only this module of the language reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from policyctx.errors import PolicyError, UnknownPolicyError
from policyctx.resources import shipped_folder

MAX_BYTES = 64 * 1024

# A preset's name or a file's path.
PolicyName: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a policy and the name that its errors are reported under."""

    name: str
    text: str


def preset_names() -> tuple[str, ...]:
    """Return the names of the policies that ship with the library, sorted."""
    return tuple(sorted(path.stem for path in shipped_folder("policies").glob("*.yaml")))


def policy_source(name: PolicyName) -> Source:
    """Read the policy called `name`: a preset's name, else a file's path.

    A file named like a preset is reached by a path with a separator, such as `./coding-agent`.
    Raises `UnknownPolicyError` when there is neither, `PolicyError` when the file cannot be read,
    is larger than 64 KiB or is not UTF-8.
    """
    wanted = os.fspath(name)
    presets = preset_names()
    if wanted in presets:
        return _read(shipped_folder("policies") / f"{wanted}.yaml", f"{wanted}.yaml")
    path = Path(wanted).expanduser()
    if not wanted or "\0" in wanted or not path.exists():
        likely = get_close_matches(Path(wanted).stem, presets, n=1)
        raise UnknownPolicyError(wanted, presets, likely[0] if likely else None)
    return _read(path, wanted)


def _read(path: Path, name: str) -> Source:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError([f"{name}: cannot be read: {error.strerror}"]) from error
    if len(raw) > MAX_BYTES:
        raise PolicyError([f"{name}: larger than {MAX_BYTES // 1024} KiB, the most for a policy"])
    try:
        return Source(name, raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise PolicyError([f"{name}: not UTF-8: byte {error.start} cannot be read"]) from error
