"""The tools with which a model reads offloaded content back, by their names."""

from __future__ import annotations

import re

READ_TOOL = "read_offloaded"
SEARCH_TOOL = "search_offloaded"

# A host may put the name of the tool's server before it: `mcp__policyctx__read_offloaded`.
_RECALL = re.compile(rf"(?:.*[^A-Za-z0-9])?({READ_TOOL}|{SEARCH_TOOL})", re.DOTALL)


def recall_tool(name: str | None) -> str | None:
    """Return which of the two tools has this name, with or without a prefix; None for another."""
    if name is None or not name.endswith("_offloaded"):
        return None
    found = _RECALL.fullmatch(name)
    return None if found is None else found[1]
