"""The `envelope` format: a JSON document around a content (PRD context-filesystem, file format)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from policyctx.store.content import Origin
from policyctx.store.encoding import encoded

if TYPE_CHECKING:
    from policyctx.store.content import JSON

_SCHEMA_VERSION = "1.0"
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def enveloped(text: str, origin: Origin | None, saved_at: float) -> bytes:
    """Return the document, in UTF-8; the content is its last key, so that it can be streamed."""
    document: dict[str, JSON] = {
        "schema_version": _SCHEMA_VERSION,
        "item_id": origin.item_id if origin else None,
        "item_type": origin.item_type if origin else None,
        "offloaded_at": int(saved_at),
        "metadata": {"tool_name": origin.tool_name} if origin and origin.tool_name else {},
        "content": text,
    }
    shown = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        return f"{shown}\n".encode()
    except UnicodeEncodeError:
        # JSON can escape a lone surrogate, but two halves that are no pair would become one.
        if _HALVES.search(text):
            return encoded(f"{shown}\n")
        return f"{json.dumps(document, indent=2)}\n".encode()


def opened_envelope(raw: bytes) -> tuple[str, Origin | None]:
    """Return the content of a document and what it was. Raises `ValueError` for another one."""
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise ValueError("no envelope: nested too deep") from error
    if isinstance(document, dict) and isinstance(document.get("content"), str):
        return document["content"], _origin(document)
    raise ValueError("no envelope: it has no content")


def _origin(document: dict[str, JSON]) -> Origin | None:
    item_id, item_type = document.get("item_id"), document.get("item_type")
    if not isinstance(item_id, str) or not isinstance(item_type, str):
        return None
    metadata = document.get("metadata")
    tool = metadata.get("tool_name") if isinstance(metadata, dict) else None
    is_call = item_type in {"tool_result", "tool_call"}
    return Origin(
        item_id,
        item_type,
        tool_use_id=item_id if is_call else None,
        tool_name=tool if isinstance(tool, str) else None,
    )
