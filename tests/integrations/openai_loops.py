"""A long script for loops over OpenAI's APIs."""

from __future__ import annotations

from tests.integrations.scripted import Reply, calling, saying


def long_reply(turn: int) -> Reply:
    """Reason and call one to three tools at once; every tenth turn ends with a text."""
    if turn % 10 == 9:
        return saying(f"Part {turn} is done. " + "We go on with the next part. " * 20)
    asked = [(f"t{turn}_{i}", "Bash", {"n": turn, "i": i}) for i in range(1 + turn % 3)]
    return calling(*asked, reasons=turn % 2 == 0)
