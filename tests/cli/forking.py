"""The program of a server that runs the command in forks of itself.

A fork starts with every module of the command imported, its commands and options built and the
vocabulary read, which is most of what a short command costs. Each run still has a process, a
working directory, an environment and descriptors of its own. `running.py` starts the server; the
two exchange one line of JSON for each run. A run with `ended` goes on in the background: the answer
is its process, and its exit code goes to the named pipe `ended`.
`program` is the path of a Python program to run instead of the command.
"""

from __future__ import annotations

import atexit
import gc
import importlib.util
import io
import json
import os
import pkgutil
import runpy
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

# The integrations import the packages of their hosts; the command imports those that it uses.
NOT_PRELOADED = "policyctx.integrations"
# What commands import themselves.
ALSO_PRELOADED = ("policyctx.integrations.claude_code", "pytest_bdd.plugin", "typer._adapters")


def serve() -> None:
    """Answer each request on stdin with the exit code of its run, until stdin ends."""
    _preload()
    for line in sys.stdin:
        request = json.loads(line)
        _reap()
        child = os.fork()
        if child == 0:
            if "ended" in request:
                _watch(request)
            _run(request, _opened(request))
        if "ended" not in request:
            _, status = os.waitpid(child, 0)
            print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)  # noqa: T201
    _reap()


def _reap() -> None:
    """Let those end that watched a run in the background."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(request: dict[str, Any]) -> NoReturn:
    """Start a run, answer with its process, and tell its exit code when it has ended."""
    streams = _opened(request)  # before the answer, as who reads them would see an end
    child = os.fork()
    if child == 0:
        _run(request, streams)
    os.write(1, f"{child}\n".encode())
    for number in (0, 1, *streams):
        os.close(number)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):  # nobody waits for it
        ended = os.open(request["ended"], os.O_WRONLY | os.O_NONBLOCK)
        os.write(ended, f"{os.waitstatus_to_exitcode(status)}".encode())
    os._exit(0)


def _opened(request: dict[str, Any]) -> list[int]:
    flags = (os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_APPEND)
    return [os.open(path, flag) for path, flag in zip(request["streams"], flags, strict=True)]


def _preload() -> None:
    from _pytest.config import default_plugins  # noqa: PLC0415

    import policyctx  # noqa: PLC0415
    from policyctx.errors import MissingExtraError  # noqa: PLC0415
    from policyctx.pricing.rows import row_of  # noqa: PLC0415
    from policyctx.tokens.encoders import measure_for  # noqa: PLC0415

    of_pytest = (f"_pytest.{plugin}" for plugin in default_plugins)
    for name in (*_modules(policyctx.__path__, "policyctx."), *ALSO_PRELOADED, *of_pytest):
        with suppress(MissingExtraError, ModuleNotFoundError):  # of what is not installed
            importlib.import_module(name)
    # Each of the two libraries reads its vocabulary at the first count.
    for fast in {False, importlib.util.find_spec("toktok") is not None}:
        measure_for("o200k_base", fast=fast)([""])
    row_of("claude")  # builds the table of prices
    _build_command_once()
    gc.freeze()  # a collection in a fork would copy every page that it shares with the server


def _modules(folders: Iterable[str], prefix: str) -> Iterator[str]:
    """Yield the names of the modules to import, packages first."""
    for module in pkgutil.iter_modules(folders, prefix):
        if not module.name.startswith(NOT_PRELOADED):
            yield module.name
            if module.ispkg:
                package = importlib.import_module(module.name)
                yield from _modules(package.__path__, f"{module.name}.")


def _build_command_once() -> None:
    """Have forks take the tree of commands that is built here."""
    import typer.main  # noqa: PLC0415
    from typer.core import TyperGroup  # noqa: PLC0415

    from policyctx.cli.app import Command, app  # noqa: PLC0415

    typer.main.get_command = cache(typer.main.get_command)
    commands = typer.main.get_command(app)
    assert isinstance(commands, TyperGroup)
    for command in commands.commands.values():
        assert isinstance(command, Command)
        _ = command.imported


def _run(request: dict[str, Any], streams: list[int]) -> NoReturn:
    known = os.environ.get("PYTHONPATH", "")
    os.environ.clear()
    os.environ.update(request["environment"])
    if (path := os.environ.get("PYTHONPATH", "")) != known:
        sys.path[1:1] = path.split(os.pathsep)  # behind the working directory, as at a start
    time.tzset()  # the C library has read TZ of the server already
    os.chdir(request["cwd"])
    for number, opened in enumerate(streams):
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = _stream(0, "r")
    sys.stdout = _stream(1, "w")
    sys.stderr = _stream(2, "w")
    sys.argv = ["-c", *request["arguments"]]
    code = _exit_code(request["program"])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _exit_code(program: str) -> int:
    from policyctx.cli import main  # noqa: PLC0415

    try:
        if program:
            runpy.run_path(program, run_name="__main__")
        else:
            main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)  # noqa: T201 - as the interpreter does
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    finally:
        atexit._run_exitfuncs()
    return 0


def _stream(number: int, mode: str) -> io.TextIOWrapper:
    raw = io.FileIO(number, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    errors = "backslashreplace" if number == 2 else "surrogateescape"
    by_line = number == 2 or bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=by_line)


if __name__ == "__main__":
    serve()
