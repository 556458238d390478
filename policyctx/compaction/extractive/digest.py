"""`Digest`: what a summary holds, before it is written and after it is read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Group(StrEnum):
    """The groups of lines, each with the label that it has in a summary, in the order of writing.

    The labels are how a summary knows its own: they never change with a policy.
    """

    TOLD = "User, in order (of two that disagree the later holds):"
    PASTED = "Pasted, or put there by a program:"
    AGENT = "Agent, decided or reported:"
    FOUND = "Found in tool results:"
    CARRIED = "From an earlier summary:"
    FILES = "Files, the one used last first:"
    TOOLS = "Tools used:"
    DONE = "Done last:"
    NEXT = "Announced next:"
    OPEN = "Still open:"
    FAILURES = "Failures:"


class Statement(NamedTuple):
    """A sentence in its writer's own words; with what it answers, or replaces, where it does."""

    text: str
    answers: str = ""
    replaces: str = ""
    """What it takes back, without the values that hold no longer."""


class FileState(NamedTuple):
    """A file: how often it was read, written, edited, deleted or only named, and its last state."""

    path: str
    counts: tuple[tuple[str, int], ...]
    """By verb (`read`, `written`, `edited`, `deleted`, `named`): how many calls."""
    last: str = ""
    """The last verb, with ` failed` after it if that failed."""
    lines: int | None = None
    """Lines that it had when it was last read or written whole."""


class ToolCount(NamedTuple):
    """A tool: its calls, and how many of them failed or were never answered."""

    name: str
    calls: int
    failed: int = 0
    unanswered: int = 0


class Failure(NamedTuple):
    """A call that failed, and what became of it."""

    call: str
    """The tool and what it was called for; one name for one thing tried."""
    error: str
    times: int = 1
    resolved: str = ""
    """How it was resolved; empty while it is not."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Everything that a summary can hold, each group in the order in which it is written."""

    told: tuple[Statement, ...] = ()
    pasted: tuple[Statement, ...] = ()
    agent: tuple[Statement, ...] = ()
    found: tuple[Statement, ...] = ()
    carried: tuple[Statement, ...] = ()
    files: tuple[FileState, ...] = ()
    tools: tuple[ToolCount, ...] = ()
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
