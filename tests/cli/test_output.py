"""What a command prints where the output is large, full, or no longer read."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from io import StringIO

import pytest

from policyctx.cli.output import console

COMMAND = [sys.executable, "-c", "from policyctx.cli import main; main()"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["schema"], ["show", "coding-agent"]])
def test_a_full_disk_is_told_in_a_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        run = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (run.returncode, run.stderr) == (1, b"error: No space left on device\n")


def test_who_stops_reading_hears_nothing_more() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run([*COMMAND, "schema"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (run.returncode, run.stderr) == (1, b"")


@pytest.mark.skipif(os.name == "nt", reason="no shell closes a stream there")
@pytest.mark.parametrize("arguments", ["--version", "schema", "show coding-agent"])
def test_a_stream_that_the_shell_has_closed_takes_nothing(arguments: str) -> None:
    words = shlex.join(COMMAND)
    run = subprocess.run(
        ["/bin/sh", "-c", f"{words} {arguments} >&-"], capture_output=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_a_text_for_programs_is_written_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    text = '{"long": "' + "[bold]x[/bold] \x1b " * 100 + '"}'
    console().out(text, highlight=False)
    console().out("a", "b", end="")
    assert stream.getvalue() == f"{text}\na b"
