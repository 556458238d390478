"""An agent that reads the files of a folder, with Microsoft's Agent Framework.

OPENAI_API_KEY=… python examples/agent_framework_agent.py FOLDER
"""

import asyncio
import sys
from pathlib import Path

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

from policyctx.integrations.agent_framework import PolicyMiddleware


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
policy = PolicyMiddleware("coding-agent")
agent = Agent(
    OpenAIChatClient("gpt-6-sol"),
    tools=[read_file],
    default_options={"store": False},
    middleware=[policy],
)
session = agent.create_session(session_id="agent-framework-agent")
print(asyncio.run(agent.run(task, session=session)).text)
