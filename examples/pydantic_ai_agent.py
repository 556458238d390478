"""An agent that reads the files of a folder, with Pydantic AI.

OPENAI_API_KEY=… python examples/pydantic_ai_agent.py FOLDER
"""

import sys
from pathlib import Path

from pydantic_ai import Agent

from policyctx.integrations.pydantic_ai import PolicyCapability


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
policy = PolicyCapability("coding-agent")
agent = Agent("openai:gpt-6-sol", tools=[read_file], capabilities=[policy])
result = agent.run_sync(task, conversation_id="pydantic-ai-agent")
print(result.output)
