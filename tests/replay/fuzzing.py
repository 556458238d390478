"""Garbles synthetic recordings: values of any type at any place, cut lines, wrong bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.replay import synthetic

_DEEP: Any = "end"
for _ in range(150):
    _DEEP = [_DEEP]

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**25, 10**400, -(10**400), 1.5, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"), "", " ", "x", "\ud800", "a\udfff b", "\0", "\x1b[2J",
    "\u202e", "0", "NaN", "null", "[]", '{"path": "\\ud800"}', '{"path": NaN}', "[" * 5_000,
    '{"a": ' * 150 + "1" + "}" * 150, "9" * 5_000, "2026-01-01T00:00:01Z",
    "9999-99-99", "assistant", "user", "tool", "text", "tool_use", "tool_result",
    "c0", "a0", [], {}, [[]], [{}], [None], [1],
    {"": ""}, {"\ud800": "\ud800"}, {"type": "text", "text": 5}, {"type": "text", "text": "\ud800"},
    {"type": []}, [{"type": "text"}], {"type": "image", "source": "x"}, _DEEP,
    {"role": "user", "content": None}, {"role": "tool", "content": []}, "x" * 20_000,
)  # fmt: skip
"""What a mutation puts in the place of a value."""

_ODD_BYTES = (
    b"\0", b"\xff\xfe", b"\x80", b"\xed\xa0\x80", b"NaN", b"1e999", b"\n", b"\r\n", b"{", b"]",
    b'"', b"\\", b"\\ud800", b"\xef\xbb\xbf", b"PK\x03\x04", b"9" * 400, b"[" * 300,
)  # fmt: skip


def garbled_file(chance: random.Random) -> bytes:
    """Return a file of some format with a few mutations of its values, its lines or its bytes."""
    documents, lines = synthetic.documents(), synthetic.line_records()
    kind = chance.choice(("document", "lines", "lines", "archive"))
    if kind == "lines":
        records: Any = lines[chance.choice(sorted(lines))]
        _garble(records, chance)
        content = synthetic.encoded_lines(records)
    elif kind == "document":
        document = documents[chance.choice(sorted(documents))]
        _garble(document, chance)
        content = synthetic.encoded(document)
    else:
        document = documents["inspect"]
        _garble(document, chance)
        content = synthetic.archived(document)
    return _garbled_bytes(content, chance) if chance.random() < _BYTES else content


_BYTES = 0.25


def _garble(tree: Any, chance: random.Random) -> None:
    """Mutate a list or an object in place."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        found = list(places(tree))
        if not found:
            return
        holder, key = chance.choice(found)
        what = chance.random()
        if what < 0.7:
            holder[key] = json.loads(json.dumps(chance.choice(ODD)))
        elif what < 0.8:
            del holder[key]
        elif isinstance(holder, list):
            other = chance.randrange(len(holder))
            holder[key], holder[other] = holder[other], holder[key]
            if what > 0.9:
                holder.insert(other, holder[key])
        else:
            holder[key] = [holder[key]]


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place in nested lists and objects, as its holder and its key."""
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def _garbled_bytes(content: bytes, chance: random.Random) -> bytes:
    """Cut a file, or put bytes into it or in the place of some of its own."""
    place = chance.randrange(len(content) + 1)
    what = chance.randrange(4)
    if what == 0:
        return content[:place]
    odd = chance.choice(_ODD_BYTES)
    return content[:place] + odd + content[place + (0 if what == 1 else len(odd)) :]
