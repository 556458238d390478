"""Runs the command as a user's shell would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import IO

SERVER = Path(__file__).with_name("forking.py")
# The interpreter reads these once, at its start.
READ_AT_START = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}


def policyctx(
    *arguments: str | Path,
    stdin: bytes = b"",
    cwd: Path | None = None,
    stdout: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own; what it prints is read as UTF-8.

    With `stdout` it prints into that file or device instead.

    The process is a fork of one that has imported the command already, unless the environment says
    something to the interpreter itself.
    """
    words = [str(argument) for argument in arguments]
    read_at_start = {n: v for n, v in os.environ.items() if n.startswith("PYTHON")}
    if read_at_start != READ_AT_START or not hasattr(os, "fork"):
        return _in_new_process(words, stdin, cwd, stdout)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        for stream, content in zip(streams, (stdin, b"", b""), strict=True):
            stream.write_bytes(content)
        request = {
            "arguments": words,
            "cwd": str(cwd or Path.cwd()),
            "environment": {**os.environ, "PYTHONUTF8": "1"},
            "streams": [str(streams[0]), str(stdout or streams[1]), str(streams[2])],
        }
        code = _answer(json.dumps(request))
        printed = (stream.read_bytes().decode() for stream in streams[1:])
        return subprocess.CompletedProcess(words, code, *printed)


def _in_new_process(
    words: list[str], stdin: bytes, cwd: Path | None, stdout: Path | None
) -> subprocess.CompletedProcess[str]:
    with stdout.open("wb") if stdout else nullcontext(subprocess.PIPE) as printing:
        run = subprocess.run(
            [sys.executable, "-c", "from policyctx.cli import main; main()", *words],
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
        env={**os.environ, "PYTHONUTF8": "1"},
    )
