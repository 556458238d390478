"""An agent that reads the files of a folder, with Strands.

OPENAI_API_KEY=… python examples/strands_agent.py FOLDER
"""

import sys
from pathlib import Path

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel

from policyctx.integrations.strands import PolicyPlugin


@tool
def read_file(path: str) -> str:
    """Read a file of the folder, or one that a placeholder names."""
    try:
        return (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"error: {error}"


if not sys.argv[1:]:
    sys.exit(__doc__)
folder = Path(sys.argv[1])
names = ", ".join(sorted(path.name for path in folder.iterdir()))
task = f"Read each of these files and compare them: {names}"
policy = PolicyPlugin("coding-agent", session_id="strands-agent")
agent = Agent(
    OpenAIModel(model_id="gpt-6-sol"),
    tools=[read_file],
    callback_handler=None,
    conversation_manager=NullConversationManager(),
    plugins=[policy],
)
print(agent(task), end="")
