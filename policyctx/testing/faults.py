"""What a scenario scripts: answers of the summarizer, faults of the disk, time, environment."""

import asyncio
import builtins
import errno
import fcntl
import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from policyctx.compaction.assembly import SummaryRequest
from policyctx.compaction.restoration import WorkingFiles
from policyctx.compaction.sdk_summarizers import refusal
from policyctx.compaction.summarizers import ModelSummarizer
from policyctx.definitions.items import HostObject
from policyctx.errors import SummaryError, UnrestorableFileError

_READABLE = 0o444
LONGEST_WAIT = 10
FULL = errno.ENOSPC
FORBIDDEN = errno.EACCES
_READING = ("r", "rb", "rt")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(slots=True)
class ScriptedSummarizer:
    """Answers with `text` once it has failed `failures` times, and keeps what it was asked.

    It fails with the HTTP `status` of a provider, if there is one, that asks to wait for
    `retry_after` seconds; each try is billed so many input tokens. One that `hangs` answers after
    ten seconds.
    """

    text: str = "The summary."
    failures: float = 0
    why: str = "scripted"
    status: int | None = None
    retry_after: int | None = None
    billed: int = 0
    hangs: bool = False
    requests: list[SummaryRequest] = field(default_factory=list)

    def summarize(self, request: SummaryRequest) -> str:
        """Return the text; raises `SummaryError` while it is to fail."""
        self.requests.append(request)
        if self.hangs:
            Event().wait(LONGEST_WAIT)
        if self.billed:
            request.billed({"input_tokens": self.billed, "output_tokens": 0})
        if self.failures > 0:
            self.failures -= 1
            asked = {} if self.retry_after is None else {"retry-after": f"{self.retry_after}"}
            error = SummaryError(self.why)
            raise error if self.status is None else refusal(self.status, self.why, asked)
        return self.text


class ScriptedModel(ScriptedSummarizer, ModelSummarizer):
    """A `ScriptedSummarizer` whose answers are those of a language model."""


@dataclass(frozen=True, slots=True)
class FilesBelow:
    """A `FileReader` of a real disk; a relative working directory is one below `folder`."""

    folder: Path

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the absolute path that `path` leads to; raises `UnrestorableFileError`."""
        return WorkingFiles().resolve(path, os.fspath(self.folder / work_dir))

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of a file; raises `UnrestorableFileError`.

        What nobody has a right to read is not read, even where the tests are run by the superuser.
        """
        if Path(resolved).exists() and not Path(resolved).stat().st_mode & _READABLE:
            raise UnrestorableFileError(resolved, "there is no permission to read it")
        return WorkingFiles().read(resolved, most_bytes)


class DiskWriter:
    """A `FileWriter` that writes to the disk, and remembers the paths."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def write(self, path: str, text: str) -> None:
        """Write the text, and make the folders above the file."""
        self.paths.append(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8", newline="")


@contextmanager
def refusing_writes(folder: Path, error_number: int) -> Iterator[None]:
    """Have the operating system refuse to make or open for writing anything at or below `folder`.

    The refusal is an `OSError` with this number, such as `errno.ENOSPC`, raised where the call to
    the system would be made; everything elsewhere works as ever. For one thread at a time.
    """
    opened, descriptor_of, made = builtins.open, os.open, os.mkdir
    refuse = partial(_refuse, folder, error_number)

    def open_(
        file: HostObject, mode: str = "r", *rest: HostObject, **options: HostObject
    ) -> HostObject:
        if mode not in _READING:
            refuse(file)
        return opened(file, mode, *rest, **options)

    def os_open(path: HostObject, flags: int, *rest: HostObject, **options: HostObject) -> int:
        if flags & _WRITING:
            refuse(path, options.get("dir_fd"))
        return descriptor_of(path, flags, *rest, **options)

    def mkdir(path: HostObject, *rest: HostObject, **options: HostObject) -> None:
        refuse(path, options.get("dir_fd"))
        made(path, *rest, **options)

    instead = {(builtins, "open"): open_, (io, "open"): open_, (os, "open"): os_open}
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), function in {**instead, (os, "mkdir"): mkdir}.items():
            patch.setattr(module, name, function)
        yield


@contextmanager
def passing_time(let_pass: Callable[[float], None]) -> Iterator[None]:
    """Let no pause take time: `let_pass` gets its seconds, awaited or not. One thread at a time."""
    sleep_async = asyncio.sleep

    async def pass_async(seconds: float, result: HostObject = None) -> HostObject:
        if seconds > 0:
            let_pass(seconds)
        return await sleep_async(0, result)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", let_pass)
        patch.setattr(asyncio, "sleep", pass_async)
        yield


def home_directory(folder: Path) -> AbstractContextManager[None]:
    """Have `~` stand for this folder."""
    return environment(dict.fromkeys(("HOME", "USERPROFILE"), str(folder)))


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Have these environment variables, and not those whose value is None."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        yield


def _refuse(folder: Path, error_number: int, path: object, dir_fd: int | None = None) -> None:
    if isinstance(path, str | os.PathLike):
        above = Path() if dir_fd is None else _path_of(dir_fd)
        if (above / path).absolute().is_relative_to(folder):
            raise OSError(error_number, os.strerror(error_number), str(path))


def _path_of(descriptor: int) -> Path:
    """The path of an open folder, as the system tells it."""
    if get_path := getattr(fcntl, "F_GETPATH", None):  # macOS
        return Path(os.fsdecode(fcntl.fcntl(descriptor, get_path, bytes(1024)).rstrip(b"\0")))
    return Path(f"/proc/self/fd/{descriptor}").readlink()
