"""An agent that reads the files of a folder, with smolagents.

OPENAI_API_KEY=… python examples/smolagents_agent.py FOLDER
"""

import sys
from pathlib import Path

from smolagents import OpenAIServerModel, ToolCallingAgent, tool

from policyctx.integrations.smolagents import PolicyCallback


@tool
def read_file(path: str) -> str:
    """Read a file of the folder, or one that a placeholder names.

    Args:
        path: The path of the file.
    """
    try:
        return (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"error: {error}"


if not sys.argv[1:]:
    sys.exit(__doc__)
folder = Path(sys.argv[1])
names = ", ".join(sorted(path.name for path in folder.iterdir()))
task = f"Read each of these files and compare them: {names}"
limits = {"max_steps": 100, "verbosity_level": 0}
model = OpenAIServerModel("gpt-6-sol")
policy = PolicyCallback("coding-agent", session_id="smolagents-agent")
agent = ToolCallingAgent([read_file], model, step_callbacks=[policy], **limits)
print(agent.run(task))
