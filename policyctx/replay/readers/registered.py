"""`Reader`, the shipped ones, and those that other packages register."""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

from policyctx.errors import ReaderError
from policyctx.replay.readers import (
    atif,
    chat,
    claude_code,
    claude_stream,
    cline,
    cline_cli,
    codex,
    copilot,
    copilot_chat,
    gemini,
    gemini_stream,
    inspect_log,
    mini_swe,
    opencode,
    openhands,
    otel,
    pi,
    qwen,
    request_log,
    swe_agent,
    tau2,
    tau_bench,
)
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.recording import Recording

GROUP = "policyctx.readers"
"""The group of entry points under which a package registers its readers."""


class Reader(Protocol):
    """Knows one format; a module with these names is one."""

    @property
    def FORMAT(self) -> str:  # noqa: N802 - a constant of a module
        """What its recordings say that they are, such as `claude-code`."""

    def recognises(self, record: object) -> bool:
        """Is this outline of a record enough to know the format by; see `Source.outlines`.

        It is asked of records of all kinds, and answers True for none but its own.
        """

    def recordings(self, source: Source) -> Iterator[Recording]:
        """Yield what the file holds, with what could not be understood counted by name."""


def homes(reader: Reader) -> dict[str, list[Home]]:
    """Return by agent the folders of its sessions, as `HOMES` of the reader has them, if any."""
    found: dict[str, list[Home]] = {}
    for home in getattr(reader, "HOMES", ()):
        found.setdefault(home.agent or reader.FORMAT, []).append(home)
    return found


def glances(reader: Reader, source: Source) -> Iterator[Recording]:
    """Yield what a file holds, perhaps without its messages: calls, usage and compactions.

    A reader with `glances(source)` finds these quickly; others read the file.
    """
    found: Iterator[Recording] = getattr(reader, "glances", reader.recordings)(source)
    return found


# In the order in which they are asked; what is nothing but messages comes last.
_SHIPPED: tuple[Reader, ...] = (
    claude_code,
    claude_stream,
    cline,
    cline_cli,
    codex,
    pi,
    gemini,
    gemini_stream,
    copilot,
    copilot_chat,
    opencode,
    qwen,
    atif,
    otel,
    swe_agent,
    mini_swe,
    openhands,
    tau2,
    tau_bench,
    inspect_log,
    request_log,
    chat,
)

LISTS = frozenset({chat.FORMAT, request_log.FORMAT})
"""Formats of which a document may be one request by itself."""


@cache
def readers() -> tuple[Reader, ...]:
    """Return the readers, the registered ones before the shipped; raises `ReaderError`."""
    return (*_registered(), *_SHIPPED)


def _registered() -> Iterator[Reader]:
    for point in sorted(entry_points(group=GROUP)):
        try:
            reader = point.load()
        except Exception as error:
            raise ReaderError(point.name, f"cannot be loaded: {error}") from error
        names = ("FORMAT", "recognises", "recordings")
        if missing := [name for name in names if not hasattr(reader, name)]:
            raise ReaderError(point.name, f"lacks {' and '.join(missing)}")
        yield reader
