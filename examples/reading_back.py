"""An agent that reads back what has left its context.

Run `python examples/reading_back.py LOGS QUESTION` with the environment variable ANTHROPIC_API_KEY
set. LOGS is a folder of text files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anthropic

from policyctx import Session
from policyctx.integrations.tools import ReadBackTools

TOOLS: list[Any] = [
    {
        "name": "show_log",
        "description": "Return the whole text of a log file.",
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
]


def answered(folder: Path, call: Any) -> dict[str, Any]:  # noqa: ANN401 - an SDK's object
    """Return the result of a call of the agent's own tool."""
    text = (folder / Path(call.input["name"]).name).read_text(encoding="utf-8")
    return {"type": "tool_result", "tool_use_id": call.id, "content": text}


def main(folder: Path, question: str) -> None:
    """Let the model answer the question, and print the answer."""
    client = anthropic.Anthropic()
    session = Session(Path(__file__).with_suffix(".yaml"), root=folder / ".context", session_id="a")
    reading = ReadBackTools(session)
    tools = [*TOOLS, *reading.for_anthropic]
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        sent: Any = session.apply(messages, tools=tools).messages
        response = client.messages.create(
            model="claude-haiku-4-5", max_tokens=1024, messages=sent, tools=tools
        )
        session.observe(response.usage)
        messages.append({"role": "assistant", "content": response.content})
        calls = [block for block in response.content if block.type == "tool_use"]
        if not calls:
            print(*(block.text for block in response.content if block.type == "text"))
            return
        results = [reading.answer(call) or answered(folder, call) for call in calls]
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    if not sys.argv[2:]:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2])
