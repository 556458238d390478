"""The example of the document "context filesystem", through Anthropic's SDK.

Of a tool two results stay, and each of four queries reads one file. Everything that the document
says of this example is asserted: what stays, what is offloaded and when, the placeholder, the
folder, the file, and what the session lists.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from policyctx import Session
from policyctx.integrations.anthropic import PolicyMiddleware
from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.integrations.scripted import Reply, calling, saying

TOOL: Any = {
    "name": "read_file",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
FILES = ("file1.txt", "file2.txt", "file3.txt", "file4.txt")


def text_of(name: str) -> str:
    return f"{name} says: " + "a line of it\n" * 400


def reply(body: Any) -> Reply:
    """Call the tool with the path that the user names, then answer."""
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and last[0]["type"] == "tool_result":
        return saying("I have read it.")
    asked = last if isinstance(last, str) else last[-1]["text"]
    number = sum(message["role"] == "assistant" for message in body["messages"])
    return calling((f"call_{number}", "read_file", {"path": asked.removeprefix("Read ")}))


class Agent:
    """The agent of the document: a tool, a list, and a loop for each query."""

    def __init__(self, api: AnthropicAPI, session: Session, folder: Path) -> None:
        self.messages: list[Any] = []
        self._folder = folder
        self._client = anthropic.Anthropic(
            base_url=api.url, api_key="k", middleware=[PolicyMiddleware(session)]
        )

    def query(self, text: str) -> None:
        """Let the model answer, and run its calls on the way."""
        self.messages.append({"role": "user", "content": text})
        while True:
            answer = self._client.messages.create(
                model="claude-some", max_tokens=500, tools=[TOOL], messages=self.messages
            )
            self.messages.append({"role": "assistant", "content": answer.content})
            results = [self._run(call) for call in answer.content if call.type == "tool_use"]
            if not results:
                return
            self.messages.append({"role": "user", "content": results})

    def _run(self, call: Any) -> dict[str, Any]:
        text = (self._folder / call.input["path"]).read_text(encoding="utf-8")
        return {"type": "tool_result", "tool_use_id": call.id, "content": text}

    def close(self) -> None:
        self._client.close()


class Story:
    """The four queries, and what the session listed after each."""

    def __init__(self, api: AnthropicAPI, folder: Path) -> None:
        for name in FILES:
            (folder / name).write_text(text_of(name), encoding="utf-8")
        api.script = reply
        self.api = api
        self.session = Session("context-filesystem", hints={"read_file": {"keep_recent": 2}})
        self.agent = Agent(api, self.session, folder)
        self.offloaded_after: list[list[str]] = []
        for name in FILES:
            self.agent.query(f"Read {name}")
            self.offloaded_after.append(self.offloaded_paths())

    def offloaded_paths(self) -> list[str]:
        """The last line of the document's example."""
        return [str(item.offload_path) for item in self.session.items if item.offloaded]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    folder = tmp_path / "files"
    folder.mkdir()
    with anthropic_api() as api:
        told = Story(api, folder)
        yield told
        told.agent.close()
        assert api.refused == []


def results_in(body: Any) -> list[str]:
    """The texts of all results that a request has."""
    contents = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    blocks = [block for content in contents for block in content]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def shown(body: Any) -> list[str]:
    """For each result of a request whether it is whole."""
    wholes = [text_of(name) for name in FILES]
    return [
        "whole" if text == whole else "placeholder"
        for text, whole in zip(results_in(body), wholes, strict=False)
    ]


def test_the_first_file_goes_at_the_third_query_and_the_second_at_the_fourth(story: Story) -> None:
    assert [shown(body) for body in story.api.bodies] == [
        [],
        ["whole"],
        ["whole"],
        ["whole", "whole"],
        ["whole", "whole"],
        ["placeholder", "whole", "whole"],
        ["placeholder", "whole", "whole"],
        ["placeholder", "placeholder", "whole", "whole"],
    ]
    assert [len(paths) for paths in story.offloaded_after] == [0, 0, 1, 2]


def test_each_request_begins_with_the_one_before_up_to_the_new_decision(story: Story) -> None:
    bodies = [body["messages"] for body in story.api.bodies]
    new = {5: 2, 7: 6}  # in the request of this number the message with this index is new
    for number in range(1, len(bodies)):
        before, after = bodies[number - 1], bodies[number]
        same = new.get(number, len(before))
        assert json.dumps(after[:same]) == json.dumps(before[:same])


def test_the_placeholder_names_the_absolute_path_and_how_to_read_it(story: Story) -> None:
    first, second = story.offloaded_after[-1]
    assert results_in(story.api.bodies[-1])[:2] == [
        f"[Content offloaded]\nPath: {path}\nUse Read tool to view details."
        for path in (first, second)
    ]


def test_the_list_of_the_program_keeps_the_whole_results(story: Story) -> None:
    sent = [m for m in story.agent.messages if m["role"] == "user"]
    wholes = [m["content"][0]["content"] for m in sent if isinstance(m["content"], list)]
    assert wholes == [text_of(name) for name in FILES]


def test_calls_stay_with_their_results(story: Story) -> None:
    blocks = [b for m in story.api.bodies[-1]["messages"] for b in m["content"] if type(b) is dict]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert called == answered
    assert len(called) == len(FILES)


def test_the_session_lists_what_is_offloaded_and_where(story: Story) -> None:
    results = [item for item in story.session.items if item.type == "tool_result"]
    assert [item.offloaded for item in results] == [True, True, False, False]
    assert [item.destroyed for item in results] == [True, True, False, False]
    assert [item.offload_path is None for item in results] == [False, False, True, True]


def test_the_folder_is_that_of_a_session_with_a_generated_id(story: Story) -> None:
    root = Path.home() / ".agent" / "context" / story.session.session_id
    assert re.fullmatch(r"session_[0-9]{8}_[0-9]{6}_[a-z0-9]{6}", story.session.session_id)
    assert [Path(path).relative_to(root).parts[:2] for path in story.offloaded_paths()] == [
        ("tool_result", "read_file"),
        ("tool_result", "read_file"),
    ]
    story.session.close()
    index = json.loads((root / "index.json").read_text(encoding="utf-8"))
    assert [f"{root}/{entry['path']}" for entry in index["items"]] == story.offloaded_paths()


def test_each_file_is_the_documents_json_with_the_original_text(story: Story) -> None:
    offloaded = [item for item in story.session.items if item.offloaded]
    for item, name in zip(offloaded, FILES, strict=False):
        path = Path(str(item.offload_path))
        document = json.loads(path.read_text(encoding="utf-8"))
        assert path.stem == item.item_id
        assert document["schema_version"] == "1.0"
        assert document["item_id"] == item.item_id
        assert document["item_type"] == "tool_result"
        assert 0 <= time.time() - document["offloaded_at"] < 600
        assert document["metadata"]["tool_name"] == "read_file"
        assert document["content"] == text_of(name)


def test_the_model_reads_an_offloaded_file_with_its_own_tool(story: Story) -> None:
    path = story.offloaded_paths()[0]
    story.agent.query(f"Read {path}")
    read = json.loads(results_in(story.api.bodies[-1])[-1])
    assert read["content"] == text_of("file1.txt")
    assert path in story.offloaded_paths()
