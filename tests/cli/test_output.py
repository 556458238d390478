"""What a command prints where the output is large, full, or no longer read."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from policyctx.cli.output import console, json_text

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


def test_a_text_for_programs_is_not_laid_out(capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"long": "' + "[bold]x[/bold] " * 100 + '"}'
    console().out(text, highlight=False)
    console().out("a", "b", end="")
    assert capsys.readouterr().out == f"{text}\na b"


def test_no_control_character_gets_out_and_json_stays_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    controls = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
    console().out(json_text({"said": controls}))
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"said": controls}
    assert set(shown.replace("\n", "")).isdisjoint(controls)
    console().out("\x1b[2J\x9b")
    assert capsys.readouterr().out == "\\x1b[2J\\x9b\n"
