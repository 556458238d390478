"""An agent that reads the files of a folder, with Inspect.

OPENAI_API_KEY=… python examples/inspect_task.py FOLDER
"""

import sys
from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as run_task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.tool import Tool, tool

from policyctx.integrations.inspect_ai import PolicyCompaction


@tool
def read_file() -> Tool:
    """Make the tool."""

    async def execute(path: str) -> str:
        """Read a file of the folder, or one that a placeholder names.

        Args:
            path: The path of the file.
        """
        try:
            return (folder / path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return f"error: {error}"

    return execute


if not sys.argv[1:]:
    sys.exit(__doc__)
folder = Path(sys.argv[1])
names = ", ".join(sorted(path.name for path in folder.iterdir()))
sample = Sample(input=f"Read each of these files and compare them: {names}")
model = get_model("openai/gpt-6-sol", responses_api=False)
policy = PolicyCompaction("coding-agent", threshold=100_000)
agent = react(tools=[read_file()], compaction=policy)
task = Task(dataset=[sample], solver=agent)
# By default, Inspect cuts each result to 16 KB.
[log] = run_task(task, model=model, display="none", max_tool_output=1_000_000)
print(log.samples[0].output.completion)
