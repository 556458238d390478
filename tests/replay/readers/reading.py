"""Reads recordings that a test writes in a few lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.replay.reading import recordings_of
from policyctx.replay.recording import Recording


def read_lines(records: Sequence[object]) -> list[Recording]:
    """Read records as JSON lines, however much of them is not understood."""
    return list(recordings_of("\n".join(map(json.dumps, records)).encode(), "s", partial=True))


def read_document(document: object) -> list[Recording]:
    """Read one JSON document."""
    return list(recordings_of(json.dumps(document, indent=1).encode(), "s", partial=True))


def read_one(records: Sequence[object]) -> Recording:
    """Read records as JSON lines, which are one recording."""
    (recording,) = read_lines(records)
    return recording


def document_of(document: object) -> Recording:
    """Read one JSON document, which is one recording."""
    (recording,) = read_document(document)
    return recording


def roles(messages: Recording | Sequence[dict[str, Any]]) -> list[str]:
    found = messages.messages() if isinstance(messages, Recording) else messages
    return [BUILT_IN.role(message) for message in found]


def lengths(recording: Recording) -> list[int]:
    """How many messages each call was made with."""
    return [len(context) for context in recording.contexts()]
