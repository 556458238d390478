"""Runs the examples whose models are OpenAI's, against a server that checks each request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integrations.examples import (
    ANSWER,
    FILES,
    check_sent,
    example,
    offloaded_path,
    printed_by,
    without_policyctx,
)
from tests.integrations.openai_api import openai_api
from tests.integrations.scripted import Reply, calling, saying


def outputs(body: Any) -> list[str]:
    """Return the texts of the results in a request of either API."""
    found = [
        item.get("output") or item.get("content")
        for item in body.get("input") or body["messages"]
        if item.get("type") == "function_call_output" or item.get("role") == "tool"
    ]
    return [text if isinstance(text, str) else text[0]["text"] for text in found]


def reading(body: Any) -> Reply:
    """Read one file after the other, then the file of the first placeholder, then answer."""
    found = outputs(body)
    turn = len(found)
    if turn < FILES:
        return calling((f"t{turn}", "read_file", {"path": f"{turn}.txt"}), reasons=turn % 2 == 0)
    if turn == FILES:
        return calling((f"t{turn}", "read_file", {"path": offloaded_path(found)}))
    return saying(f"The first begins with {found[-1][:6]}.")


def run(program: Path, folder: Path) -> list[int]:
    """Run a program, check what it prints, and return the tokens of its prompts."""
    with openai_api() as api:
        api.script = reading
        given = {
            "OPENAI_BASE_URL": api.url,
            "OPENAI_API_KEY": "k",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }
        assert printed_by(program, folder, given) == ANSWER
        assert api.refused == []
        return api.prompts


def check_example(name: str, folder: Path, page: str = "") -> None:
    """Check that an example and the program without policyctx give the same answer."""
    bare = folder / "bare.py"
    bare.write_text(without_policyctx(name, page))
    sent = run(example(name), folder / "a")
    sent_bare = run(bare, folder / "b")
    check_sent(sent, sent_bare, FILES + 2, (folder / "a" / ".agent" / "context").iterdir())
