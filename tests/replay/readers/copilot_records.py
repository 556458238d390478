"""Records of Copilot CLI."""

from __future__ import annotations

from typing import Any


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "e", "timestamp": "2026-01-01T00:00:01Z", "data": fields}


GO = event("user.message", content="go")
