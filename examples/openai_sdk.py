"""An agent that reads the files of a folder, through OpenAI's SDK.

OPENAI_API_KEY=… python examples/openai_sdk.py FOLDER
"""

import json
import sys
from pathlib import Path

from openai import OpenAI

from policyctx import Session
from policyctx.integrations.openai import with_policy

READ_FILE = {
    "type": "function",
    "name": "read_file",
    "description": "Read a text file.",
    "parameters": {
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
session = Session("coding-agent", session_id="openai-sdk")
client = with_policy(OpenAI(), session)
items = [{"role": "user", "content": f"Read each of these files and compare them: {names}"}]
while True:
    answer = client.responses.create(model="gpt-6-sol", tools=[READ_FILE], input=items)
    items += answer.output
    results = [
        {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": read_file(folder, json.loads(call.arguments)["path"]),
        }
        for call in answer.output
        if call.type == "function_call"
    ]
    if not results:
        break
    items += results
print(answer.output_text)
