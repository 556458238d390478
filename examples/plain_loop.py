"""An agent with a loop of its own that reads the files of a folder.

ANTHROPIC_API_KEY=… python examples/plain_loop.py FOLDER
"""

import sys
from pathlib import Path

from anthropic import Anthropic

from policyctx import Session

SYSTEM = "You compare files."
READ_FILE = {
    "name": "read_file",
    "description": "Read a text file.",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}


def read_file(folder: Path, path: str) -> str:
    """Return the text of a file of the folder, or of one that a placeholder names."""
    try:
        return (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"error: {error}"


if not sys.argv[1:]:
    sys.exit(__doc__)
folder = Path(sys.argv[1])
names = ", ".join(sorted(path.name for path in folder.iterdir()))
session = Session("coding-agent", session_id="plain-loop")
client = Anthropic()
messages = [{"role": "user", "content": f"Read each of these files and compare them: {names}"}]
while True:
    answer = client.messages.create(
        model="claude-sonnet-5",
        max_tokens=2000,
        system=SYSTEM,
        tools=[READ_FILE],
        messages=session.apply(messages, system=SYSTEM, tools=[READ_FILE]).messages,
    )
    session.observe(answer.usage)
    messages.append({"role": "assistant", "content": answer.content})
    results = [
        {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": read_file(folder, call.input["path"]),
        }
        for call in answer.content
        if call.type == "tool_use"
    ]
    if not results:
        break
    messages.append({"role": "user", "content": results})
print(answer.content[-1].text)
