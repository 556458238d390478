"""Expected texts: fields that stand for an item's file, and patterns."""

from __future__ import annotations

import os
import re

from policyctx.planning.paths import path_from
from policyctx.testing.fates import Fate
from policyctx.testing.world import World

_FIELD = re.compile(r"\{(path|relative_path|cwd_path|root|session_id)\}")


def filled(world: World, text: str | None, fate: Fate | None = None) -> str:
    """Return the text with its fields filled in; any other brace is one.

    Raises `OutcomeError` when it names the file of an item that has none.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "root":
            return world.root.absolute().as_posix()
        if name == "session_id" or fate is None:
            return (world.session_id or "") if name == "session_id" else match[0]
        file = world.saved(fate)[1].file
        if file is None:
            return match[0]
        shown = {"path": file.path, "relative_path": f"./{file.relative_path}"}
        return shown.get(name) or path_from(os.getcwd(), file.path)  # noqa: PTH109 - a text

    return _FIELD.sub(value, text or "")


def like(pattern: str, text: object) -> bool:
    """Does the pattern, in which `*` is anything, fit the whole text."""
    parts = ".*".join(map(re.escape, pattern.split("*")))
    return isinstance(text, str) and re.fullmatch(parts, text, re.DOTALL) is not None
