"""MESSAGES: from a file or stdin to the request that is in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from policyctx.errors import MessagesError
from policyctx.messages.request import Request, request_of
from policyctx.replay.recording import read_recording

if TYPE_CHECKING:
    from policyctx.replay.model_call import ModelCall


def read_request(messages: str) -> Request:
    """Read a message list, a request body or a recording; `-` is stdin.

    What it is shows in the content, not in the name. Raises `MessagesError`, its text led by the
    file's name.
    """
    return read_calls(messages, with_calls=False)[0]


def read_calls(messages: str, *, with_calls: bool = True) -> tuple[Request, tuple[ModelCall, ...]]:
    """Read as `read_request` does, and the calls of a model where a recording tells of them."""
    name = "stdin" if messages == "-" else messages
    try:
        return _read(_text(messages), with_calls=with_calls)
    except MessagesError as error:
        raise MessagesError(f"{name}: {error}", index=error.index) from error


def _text(messages: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if messages == "-" else Path(messages).read_bytes()
    except OSError as error:
        raise MessagesError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MessagesError(f"cannot be read: {error}") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MessagesError(f"not UTF-8: byte {error.start} cannot be read") from error


def _read(text: str, *, with_calls: bool) -> tuple[Request, tuple[ModelCall, ...]]:
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise MessagesError("nested too deeply to be a message list") from error
    except json.JSONDecodeError as error:
        recording = read_recording(text.split("\n"), with_calls=with_calls)
        if recording is None:
            where = f"line {error.lineno}, column {error.colno}"
            raise MessagesError(f"not JSON: {where}: {error.msg}") from error
        return Request(recording.messages), recording.calls
    except ValueError as error:
        raise MessagesError(f"not JSON: {error}") from error
    recording = read_recording([text]) if isinstance(document, dict) else None
    return (request_of(document) if recording is None else Request(recording.messages)), ()
