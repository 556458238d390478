"""What has to hold of a session whose requests went through the proxy, as the provider saw it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.proxy.blackbox.proxies import PLACEHOLDER, SUMMARY
from tests.proxy.blackbox.recorded import Recorded

_PATH = re.compile(re.escape(PLACEHOLDER) + r"(/[^\]]+)\]")
_MARKER = re.compile(r',\s*"cache_control":\s*\{[^{}]*\}')


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How the lists of a session's requests follow one another.

    `wrong` says what changed in a prefix without a decision. `offloads` and `summaries` count the
    requests that have a new placeholder, and a new summary.
    """

    wrong: tuple[str, ...]
    offloads: int
    summaries: int


def prefixes(requests: Sequence[Recorded], *, moves_markers: bool = False) -> Prefixes:
    """Compare the list of each request with the one before it, byte by byte.

    A list has to begin with the bytes of the list before it. It may differ by a decision: in a
    message that got a placeholder more, or by a new summary. For a client that `moves_markers` the
    messages are compared without cache markers, and a lone text block counts as its text.
    """
    wrong: list[str] = []
    offloads = summaries = 0
    for number, (before, after) in enumerate(pairwise(requests), 1):
        old, new = (_texts(one, moves_markers) for one in (before, after))
        if not moves_markers and after.list_text.startswith(before.list_text):
            continue
        if {text for text in new if SUMMARY in text} - set(old):
            summaries += 1
            continue
        changed = [i for i, (was, now) in enumerate(zip(old, new, strict=False)) if was != now]
        offloads += bool(changed)
        wrong += [
            f"request {number}, message {i}: {old[i][:150]} -> {new[i][:150]}"
            for i in changed
            if new[i].count(PLACEHOLDER) <= old[i].count(PLACEHOLDER)
        ]
        if len(new) < len(old):
            wrong.append(f"request {number}: {len(new)} messages after {len(old)}")
        if not changed and not moves_markers:
            wrong.append(f"request {number}: bytes between the messages changed")
    return Prefixes(tuple(wrong), offloads, summaries)


def _texts(request: Recorded, moves_markers: bool) -> list[str]:
    return [_unmarked(text) for text in request.elements] if moves_markers else request.elements


def _unmarked(text: str) -> str:
    message = json.loads(_MARKER.sub("", text))
    content = message.get("content")
    if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
        message["content"] = content[0]["text"]
    return json.dumps(message)


def placeholder_paths(requests: Sequence[Recorded]) -> set[Path]:
    """Return the files that the placeholders of all requests name."""
    texts = (text for request in requests for _, text in strings(request.messages))
    return {Path(found) for text in texts for found in _PATH.findall(text)}


def strings(value: Any) -> Iterator[tuple[str, str]]:
    """Yield each string in a value of JSON, after the name of its field."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        name, one = stack.pop()
        if isinstance(one, str):
            yield name, one
        elif isinstance(one, dict):
            stack += one.items()
        elif isinstance(one, list):
            stack += [(name, element) for element in one]


def lost_texts(root: Path, paths: set[Path], sent: set[str]) -> list[str]:
    """Return what is wrong with the files that placeholders name.

    Each has to be a file below the root that holds one of the texts that the client had sent.
    """
    wrong = [f"{path} is not below {root}" for path in paths if not path.is_relative_to(root)]
    wrong += [f"{path} is no file" for path in paths if not path.is_file()]
    held = {path: path.read_bytes().decode() for path in paths if path.is_file()}
    return wrong + [
        f"{path} holds what was never sent: {text[:100]!r}"
        for path, text in held.items()
        if text not in sent
    ]
