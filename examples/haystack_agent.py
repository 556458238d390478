"""An agent that reads the files of a folder, with Haystack: a shape, and a hook that uses it.

OPENAI_API_KEY=… python examples/haystack_agent.py FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.agents.state.state_utils import replace_values
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool

from policyctx import Part, Session, Shape

TEXTS = {"system": "system_prompt", "user": "user_message", "assistant": "assistant_message"}


class HaystackShape(Shape):
    """The shape of Haystack's messages."""

    def recognises(self, message):
        return isinstance(message, ChatMessage)

    def role(self, message):
        return message.role.value

    def parts(self, message):
        for i, content in enumerate(message.to_dict()["content"]):
            [(kind, value)] = content.items()
            if kind == "text":
                yield Part((i,), TEXTS.get(self.role(message), "unknown"), value)
            elif kind == "tool_call":
                text, call_id = json.dumps(value["arguments"]), value["id"] or value["tool_name"]
                yield Part((i,), "tool_call", text, tool=value["tool_name"], call_id=call_id)
            elif kind == "tool_call_result":
                result, origin = value["result"], value["origin"]
                text = result if isinstance(result, str) else json.dumps(result)
                call_id = origin["id"] or origin["tool_name"]
                yield Part((i,), "tool_result", text, call_id=call_id, error=value["error"])
            elif kind == "reasoning":
                yield Part((i,), "thinking", value["reasoning_text"])
            else:
                yield Part((i,), "unknown", json.dumps(content))

    def replaced(self, message, texts):
        new = message.to_dict()
        for (i,), text in texts.items():
            content = new["content"][i]
            if "tool_call" in content and text is not None:
                content["tool_call"]["arguments"] = json.loads(text)
            elif "tool_call_result" in content:
                content["tool_call_result"]["result"] = text
            elif "text" in content:
                content["text"] = text
        kept = [c for i, c in enumerate(new["content"]) if texts.get((i,), "") is not None]
        return ChatMessage.from_dict({**new, "content": kept}) if kept else None

    def written(self, role, text):
        is_reply = role == "assistant"
        return ChatMessage.from_assistant(text) if is_reply else ChatMessage.from_user(text)

    def plain(self, message):
        return {**message.to_dict(), "meta": {}}

    def block(self, message, path):
        return message.to_dict()["content"][path[0]]


class PolicyHook:
    """A hook for `before_llm`: applies the policy of a session, and observes usage."""

    def __init__(self, session):
        self.session = session

    def run(self, state):
        messages = state.data["messages"]
        answers = [m for m in messages if m.is_from("assistant") and m.meta.get("usage")]
        if answers:
            self.session.observe(answers[-1].meta["usage"])
        tools = [{"type": "function", "function": t.tool_spec} for t in state.data["tools"]]
        edited = self.session.apply(messages, tools=tools).messages
        state.set("messages", list(edited), handler_override=replace_values)


@tool
def read_file(path: Annotated[str, "The path of the file"]) -> str:
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
session = Session("coding-agent", session_id="haystack-agent", shapes=[HaystackShape()])
llm = OpenAIChatGenerator(model="gpt-6-sol")
agent = Agent(chat_generator=llm, tools=[read_file], hooks={"before_llm": [PolicyHook(session)]})
result = agent.run(messages=[ChatMessage.from_user(task)])
print(result["messages"][-1].text)
