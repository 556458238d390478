"""An agent that reads the files of a folder, with OpenAI Agents.

OPENAI_API_KEY=… python examples/openai_agents.py FOLDER
"""

import sys
from pathlib import Path

from agents import Agent, Runner, function_tool

from policyctx import Session
from policyctx.integrations.openai_agents import PolicyFilter


@function_tool
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
agent = Agent(name="reader", model="gpt-6-sol", tools=[read_file])
task = f"Read each of these files and compare them: {names}"
policy = PolicyFilter(Session("coding-agent", session_id="openai-agents"))
result = Runner.run_sync(agent, task, max_turns=50, **policy.options)
print(result.final_output)
