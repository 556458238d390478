"""Generated sessions as recordings: one a line in large files, or one file each.

A line is `{"id": …, "messages": […]}`, which has neither times nor usage. A file of its own is in
the form of Claude Code, which has both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.scale.generating import GeneratedSession

Layout: TypeAlias = Literal["lines", "files"]
# Sessions of a large file, and files of a folder.
PER_FILE = 5_000
PER_FOLDER = 1_000

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def write_sessions(
    made: Iterable[GeneratedSession], folder: Path, layout: Layout, *, per_file: int = PER_FILE
) -> int:
    """Write sessions below a folder and return their number."""
    if layout == "files":
        return _write_files(made, folder)
    left, count = iter(made), 0
    folder.mkdir(parents=True, exist_ok=True)
    while chunk := list(islice(left, 1)):
        path = folder / f"sessions-{count // per_file:04}.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for one in (*chunk, *islice(left, per_file - 1)):
                file.write(_encode({"id": one.id, "messages": one.messages}) + "\n")
                count += 1
    return count


def _write_files(made: Iterable[GeneratedSession], folder: Path) -> int:
    count = 0
    for one in made:
        below = folder / f"{count // PER_FOLDER:04}"
        below.mkdir(parents=True, exist_ok=True)
        text = "".join(_encode(record) + "\n" for record in claude_code(one))
        (below / f"{one.id}.jsonl").write_text(text, encoding="utf-8", newline="\n")
        count += 1
    return count


def claude_code(one: GeneratedSession) -> Iterator[dict[str, Any]]:
    """Yield the records of a session in the form of Claude Code."""
    parent: str | None = None
    count = 0
    for call, exchange in enumerate(one.exchanges):
        at = datetime.fromtimestamp(exchange.at, UTC).isoformat().replace("+00:00", "Z")
        billed = {"model": one.model, "id": f"msg_{one.id}_{call}", "usage": dict(exchange.usage)}
        said = {**billed, "type": "message", **exchange.reply}
        for kind, message in (*(("user", new) for new in exchange.new), ("assistant", said)):
            uuid = f"{one.id}-{count:05}"
            yield {
                "type": kind,
                "uuid": uuid,
                "parentUuid": parent,
                "sessionId": one.id,
                "timestamp": at,
                "cwd": "/generated",
                "message": message,
            }
            parent, count = uuid, count + 1
