"""What the system may do to a scenario: refuse to write, let time pass, have another home."""

from __future__ import annotations

import asyncio
import builtins
import errno
import fcntl
import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

FULL = errno.ENOSPC
FORBIDDEN = errno.EACCES

_READING = ("r", "rb", "rt")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@contextmanager
def refusing_writes(folder: Path, error_number: int) -> Iterator[None]:
    """Have the operating system refuse to make or open for writing anything at or below `folder`.

    The refusal is an `OSError` with this number, such as `errno.ENOSPC`, raised where the call to
    the system would be made; everything elsewhere works as ever. For one thread at a time.
    """
    opened, descriptor_of, made = builtins.open, os.open, os.mkdir
    refuse = partial(_refuse, folder, error_number)

    def open_(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        if mode not in _READING:
            refuse(file)
        return opened(file, mode, *rest, **options)

    def os_open(path: Any, flags: int, *rest: Any, **options: Any) -> int:  # noqa: ANN401
        if flags & _WRITING:
            refuse(path, options.get("dir_fd"))
        return descriptor_of(path, flags, *rest, **options)

    def mkdir(path: Any, *rest: Any, **options: Any) -> None:  # noqa: ANN401
        refuse(path, options.get("dir_fd"))
        made(path, *rest, **options)

    instead = {(builtins, "open"): open_, (io, "open"): open_, (os, "open"): os_open}
    with ExitStack() as replaced:
        for (module, name), function in {**instead, (os, "mkdir"): mkdir}.items():
            replaced.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, function)
        yield


@contextmanager
def passing_time(let_pass: Callable[[float], None]) -> Iterator[None]:
    """Have no pause take its time, awaited or not: `let_pass` is given its seconds instead.

    For one thread at a time.
    """
    sleep, sleep_async = time.sleep, asyncio.sleep

    async def pass_async(seconds: float, result: Any = None) -> Any:  # noqa: ANN401 - as asyncio's
        if seconds > 0:
            let_pass(seconds)
        return await sleep_async(0, result)

    time.sleep = let_pass  # type: ignore[assignment] # it takes whatever is a number
    asyncio.sleep = pass_async  # type: ignore[assignment] # one function for all its overloads
    try:
        yield
    finally:
        time.sleep, asyncio.sleep = sleep, sleep_async


def home_directory(folder: Path) -> AbstractContextManager[None]:
    """Have `~` stand for this folder."""
    return environment(dict.fromkeys(("HOME", "USERPROFILE"), str(folder)))


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Have these environment variables, and not those whose value is None."""
    before = {name: os.environ.get(name) for name in variables}
    _set_environment(variables)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


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
