"""An agent that reads the files of a folder, with LangChain.

OPENAI_API_KEY=… python examples/langchain_agent.py FOLDER
"""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig

from policyctx.integrations.langchain import PolicyMiddleware


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
config: RunnableConfig = {"configurable": {"thread_id": "langchain-agent"}, "recursion_limit": 100}
policy = PolicyMiddleware("coding-agent")
agent = create_agent("openai:gpt-6-sol", [read_file], middleware=[policy])
result = agent.invoke({"messages": [{"role": "user", "content": task}]}, config)
print(result["messages"][-1].text)
