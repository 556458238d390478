"""Each command that a document shows is one that the program has, with its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from policyctx.cli.app import Command, app

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("[!.]*/README.md")]
# A line of a shell, indented or in a fence, and a command in a sentence.
LINE = re.compile(r"^(?: {4}|\$ )policyctx (\S.*)$", re.MULTILINE)
INLINE = re.compile(r"`policyctx (\S[^`]*)`")
DIFF = re.compile(r"^ *```diff$.*?^ *```$", re.MULTILINE | re.DOTALL)
# The words of a command end there.
ENDS = frozenset({"--", "|", "&&", ">", "#"})


@cache
def command() -> Any:
    return typer.main.get_command(app)


def commands_in(text: str) -> Iterator[str]:
    text = text.split("\n## [0.", 1)[0]  # a changelog's older versions stay as they are
    text = DIFF.sub("", text)  # a worked diff adds what the program does not have
    yield from LINE.findall(text)
    yield from (" ".join(found.split()) for found in INLINE.findall(text))


def unknown_words(line: str) -> list[str]:
    """Return the subcommand or the options of a command line that the program does not have."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a quotation in a sentence
        words = line.split()
    at, unknown = command(), list[str]()
    for word in words:
        if word in ENDS:
            break
        subcommands = getattr(at, "commands", None)
        if subcommands is not None and re.fullmatch(r"[a-z][a-z-]*", word):
            if word not in subcommands:
                return [word]
            at = subcommands[word]
            at = at.imported if isinstance(at, Command) else at
        elif re.match(r"--?[a-z]", word):
            option = word.split("=")[0].rstrip(",.;:")
            if option not in {o for p in at.params for o in (*p.opts, *p.secondary_opts, "--help")}:
                unknown.append(option)
    return unknown


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_command_of_a_document_exists_with_its_options(path: Path) -> None:
    lines = commands_in(path.read_text(encoding="utf-8"))
    assert {line: unknown for line in lines if (unknown := unknown_words(line))} == {}


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("replay coding-agent PATH --report out.html", []),
        ("store gc ROOT --max-age 30d | less --nothing", []),
        ("test -- -k offload -x", []),
        ("replays coding-agent", ["replays"]),
        ("store gcc ROOT", ["gcc"]),
        ("plan a.yaml m.json --jsn", ["--jsn"]),
    ],
)
def test_an_unknown_command_or_option_is_found(line: str, unknown: list[str]) -> None:
    assert unknown_words(line) == unknown
