"""MESSAGES: from a file or stdin to the request that is in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from policyctx.cli.output import console
from policyctx.errors import MessagesError, UnreadableRecordingError
from policyctx.messages.request import Request, request_of
from policyctx.replay.readers.registered import LISTS, readers
from policyctx.replay.reading import recordings_of
from policyctx.resources import open_file

if TYPE_CHECKING:
    from policyctx.replay.recording import Recording


def read_request(messages: str, *, quiet: bool = False) -> Request:
    """Read a message list, a request body or a recording; `-` is stdin.

    What it is shows in the content, not in the name. Where the file holds more than what is read,
    stderr says so, unless all is to be `quiet`. Raises `MessagesError`, its text led by the file's
    name.
    """
    return read_recording(messages, quiet=quiet)[0]


def read_recording(messages: str, *, quiet: bool = False) -> tuple[Request, Recording | None]:
    """Read as `read_request` does; also return the recording that the request is the end of.

    That is the first of a file with several.
    """
    name = "stdin" if messages == "-" else messages
    try:
        return _read(_content(messages), name, quiet=quiet)
    except MessagesError as error:
        raise MessagesError(f"{name}: {error}", index=error.index) from error


def _content(messages: str) -> bytes:
    try:
        if messages == "-":
            return sys.stdin.buffer.read()
        with open_file(Path(messages), allow_pipe=True) as file:
            return file.read()
    except OSError as error:
        raise MessagesError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MessagesError(f"cannot be read: {error}") from error


def _read(content: bytes, name: str, *, quiet: bool) -> tuple[Request, Recording | None]:
    recording = _recording(content, name, quiet=quiet)
    if recording is not None and recording.format not in LISTS:
        return Request(recording.messages()), recording
    # What is a request by itself keeps what stands around its messages.
    try:
        return request_of(json.loads(content.decode("utf-8-sig"))), recording
    except UnicodeDecodeError as error:
        raise MessagesError(f"not UTF-8: byte {error.start} cannot be read") from error
    except RecursionError as error:
        raise MessagesError("nested too deeply to be a message list") from error
    except MessagesError as error:
        if recording is not None and not recording.not_understood:
            return Request(recording.messages()), recording
        if error.index is None:
            raise MessagesError(f"{error}; {_no_recording()}") from error
        raise
    except json.JSONDecodeError as error:
        if recording is not None:
            return Request(recording.messages()), recording
        where = f"line {error.lineno}, column {error.colno}"
        raise MessagesError(f"not JSON: {where}: {error.msg}; {_no_recording()}") from error
    except ValueError as error:
        raise MessagesError(f"not JSON: {error}") from error


def _no_recording() -> str:
    formats = ", ".join(reader.FORMAT for reader in readers())
    return f"nor is it a recording that is known, of {formats}"


def _recording(content: bytes, name: str, *, quiet: bool) -> Recording | None:
    found = recordings_of(content, Path(name).name)
    try:
        first, second = next(found), next(found, None)
    except UnreadableRecordingError as error:
        if error.is_other or error.format in LISTS:
            return None
        of = "" if error.format is None else f"a recording of {error.format}: "
        raise MessagesError(f"{of}{error.why}") from error
    if second is not None and not quiet:
        several = f"{name} holds several recordings; this is the first, {first.name}"
        console(stderr=True).print(several, soft_wrap=True)
    return first
