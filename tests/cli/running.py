"""Runs the command as a user's shell would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from select import select
from typing import IO

SERVER = Path(__file__).with_name("forking.py")
AT_START = dict(os.environ)
# Variables of the interpreter that a fork follows. It reads all others once, at its start.
FOLLOWED = frozenset({"PYTHONUNBUFFERED", "PYTHONUTF8"})
# A fork copies the table of its server's pages, and the vocabularies take few large ones.
_LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def _forks(environment: Mapping[str, str], *followed: str) -> bool:
    """Return whether a fork can have an environment; it follows these variables too."""
    changed = {name for name, _ in environment.items() ^ AT_START.items()}
    own = {name for name in changed if name.startswith("PYTHON")}
    return own <= FOLLOWED.union(followed)


def policyctx(
    *arguments: str | Path,
    stdin: bytes = b"",
    cwd: Path | None = None,
    stdout: Path | None = None,
    program: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own; what it prints is read as UTF-8.

    With `stdout` it prints into that file or device instead; with `program` this runs instead.

    The process is a fork of one that has imported the command already, unless the environment says
    something to the interpreter itself.
    """
    words = [str(argument) for argument in arguments]
    # Only a module `sitecustomize` would need a new interpreter.
    if not hasattr(os, "fork") or not _forks(os.environ, "PYTHONPATH"):
        return _in_new_process(words, stdin, cwd, stdout, program)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        for stream, content in zip(streams, (stdin, b"", b""), strict=True):
            stream.write_bytes(content)
        request = {
            "arguments": words,
            "cwd": str(cwd or Path.cwd()),
            "environment": {**os.environ, "PYTHONUTF8": "1"},
            "streams": [str(streams[0]), str(stdout or streams[1]), str(streams[2])],
            "program": str(program or ""),
        }
        code = _answer(json.dumps(request))
        printed = (stream.read_bytes().decode() for stream in streams[1:])
        return subprocess.CompletedProcess(words, code, *printed)


class Started:
    """The command, started in a fork that goes on; it is waited for as for a `Popen`."""

    def __init__(self, words: list[str], log: Path, environment: Mapping[str, str]) -> None:
        folder = Path(tempfile.mkdtemp())
        ended, printed = folder / "ended", folder / "stdout"
        for pipe in (ended, printed):
            os.mkfifo(pipe)
        self._ended = os.open(ended, os.O_RDONLY | os.O_NONBLOCK)
        out = os.open(printed, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(out, True)
        self.stdout: IO[str] | None = os.fdopen(out, encoding="utf-8")
        log.touch()
        request = {
            "arguments": words,
            "cwd": str(Path.cwd()),
            "environment": dict(environment),
            "streams": [os.devnull, str(printed), str(log)],
            "ended": str(ended),
            "program": "",
        }
        self.pid = _answer(json.dumps(request))
        self.returncode: int | None = None
        self._process: int | None = None
        with suppress(ProcessLookupError):  # it has ended
            self._process = os.pidfd_open(self.pid)
        self._folder = folder

    def poll(self) -> int | None:
        """Return the exit code, None as long as there is none."""
        return self._code(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code; raise an error after `timeout` seconds."""
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("policyctx", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None and self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)

    def _code(self, timeout: float | None) -> int | None:
        if self.returncode is None and select([self._ended], [], [], timeout)[0]:
            self.returncode = int(os.read(self._ended, 16))
            os.close(self._ended)
            if self._process is not None:
                os.close(self._process)
            shutil.rmtree(self._folder)
        return self.returncode


def started(
    words: list[str], log: Path, environment: Mapping[str, str]
) -> Started | subprocess.Popen[str]:
    """Start the command so that it goes on; its standard error stream is added to `log`.

    It is a fork as for `policyctx`, unless the system or the environment does not allow one.
    """
    if hasattr(os, "pidfd_open") and _forks(environment):
        return Started(words, log, environment)
    with log.open("a") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", "from policyctx.cli import main; main()", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=dict(environment),
        )


def _in_new_process(
    words: list[str], stdin: bytes, cwd: Path | None, stdout: Path | None, program: Path | None
) -> subprocess.CompletedProcess[str]:
    started = [str(program)] if program else ["-c", "from policyctx.cli import main; main()"]
    with stdout.open("wb") if stdout else nullcontext(subprocess.PIPE) as printing:
        run = subprocess.run(
            [sys.executable, *started, *words],
            input=stdin,
            stdout=printing,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, "PYTHONUTF8": "1"},
            check=False,
        )
    printed = (run.stdout or b"").decode(), run.stderr.decode()
    return subprocess.CompletedProcess(run.args, run.returncode, *printed)


def _answer(request: str) -> int:
    process = _server()
    to_server: IO[str] | None = process.stdin
    from_server: IO[str] | None = process.stdout
    assert to_server is not None
    assert from_server is not None
    to_server.write(request + "\n")
    to_server.flush()
    return int(json.loads(from_server.readline()))


def stop_server() -> None:
    """End the server, if there is one, so that a measured run contains the time it took."""
    if _server.cache_info().currsize:
        _server().communicate()
        _server.cache_clear()


@cache
def _server() -> subprocess.Popen[str]:
    """Start the server of this process; it ends when its stdin does."""
    return subprocess.Popen(
        [sys.executable, "-c", SERVER.read_text(encoding="utf-8")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1", **_LARGE_PAGES},
    )
