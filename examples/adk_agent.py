"""An agent that reads the files of a folder, with Google's Agent Development Kit.

GOOGLE_API_KEY=… python examples/adk_agent.py FOLDER
"""

import asyncio
import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from policyctx.integrations.adk import PolicyPlugin


def read_file(path: str) -> str:
    """Read a file of the folder, or one that a placeholder names."""
    try:
        return (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return f"error: {error}"


async def main() -> None:
    """Run the agent, and print its answer."""
    service = InMemorySessionService()
    await service.create_session(app_name="files", user_id="me", session_id="adk-agent")
    names = {"app_name": "files", "session_service": service}
    agent = LlmAgent(name="reader", model="gemini-3-pro", tools=[read_file])
    policy = PolicyPlugin("coding-agent")
    runner = Runner(agent=agent, **names, plugins=[policy])
    message = types.Content(role="user", parts=[types.Part(text=task)])
    events = runner.run_async(user_id="me", session_id="adk-agent", new_message=message)
    async for event in events:
        if event.is_final_response():
            print(event.content.parts[0].text)


if not sys.argv[1:]:
    sys.exit(__doc__)
folder = Path(sys.argv[1])
file_names = ", ".join(sorted(path.name for path in folder.iterdir()))
task = f"Read each of these files and compare them: {file_names}"
asyncio.run(main())
