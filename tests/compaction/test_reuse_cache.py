"""A summary that is asked for at the end of the session's own request, which reads the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.compaction.summarizers import summarizer_for
from policyctx.errors import SummaryError
from policyctx.messages.editing import SessionRequest, in_place_anthropic, in_place_chat
from policyctx.turns.result import Result
from tests.chat_server import calling, chat_server
from tests.compaction.messages_server import messages_server, saying
from tests.conversations import Message, call, chat_calls, chat_result, results, thinking, user
from tests.policies import policy

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
TOOLS = [{"name": "Bash", "description": "Run it.", "input_schema": {"type": "object"}}]
SUMMARY = "## Goals & Decisions\nNever push to main. " + "The port moved to 8081. " * 10
MESSAGES: list[Message] = [
    user("Never push to main."),
    call("c0", "Bash", {"command": "ls"}),
    results(("c0", "a.py")),
    {"role": "assistant", "content": "I look."},
    user("Go on."),
]
# The history has fewer words than the summary.
SHARE = ", must_shrink_to: false"


def compacting(by: str, keys: str = "") -> Any:
    return policy(f"""\
        model: {{tokenizer: approximate, name: the-agents-model}}
        store: {{sync: never}}
        compaction:
          keep_recent: {{messages: 1}}
          summary:
            {{by: {by}, reuse_cache: true, attempts: 1, check: {{sections: false}}{SHARE}{keys}}}
        steps: [{{name: summarise, do: compact, when: {{messages: {{over: 3}}}}}}]
        """)


def marked(message: Any) -> bool:
    content = message["content"]
    return isinstance(content, list) and any("cache_control" in block for block in content)


def test_the_request_is_the_sessions_own_with_the_instruction_behind_it(tmp_path: Path) -> None:
    with messages_server() as server:
        server.script = [saying(SUMMARY)]
        with anthropic.Anthropic(base_url=server.url, api_key="sk-k") as client:
            made = summarizer_for("anthropic", client)
            one = Session(compacting("anthropic"), root=tmp_path, summarizer=made)
            result: Result = one.apply(MESSAGES, system=SYSTEM, tools=TOOLS)
    (sent,) = server.requests
    assert result.compacted
    assert (sent["model"], sent["system"], sent["tools"]) == ("the-agents-model", SYSTEM, TOOLS)
    assert "tool_choice" not in sent
    *history, instruction = sent["messages"]
    assert history[:3] == MESSAGES[:3]
    assert history[3]["content"] == [
        {"type": "text", "text": "I look.", "cache_control": {"type": "ephemeral"}}
    ]
    assert len(history) == 4
    assert instruction["role"] == "user"
    assert "not of the user" in instruction["content"]
    assert "<conversation>" not in instruction["content"]
    assert MESSAGES[3]["content"] == "I look."


def test_the_policys_model_for_the_summary_is_asked_if_it_names_one(tmp_path: Path) -> None:
    with messages_server() as server:
        server.script = [saying(SUMMARY)]
        with anthropic.Anthropic(base_url=server.url, api_key="sk-k") as client:
            made = summarizer_for("anthropic", client)
            compiled = compacting("anthropic", ", model: another")
            Session(compiled, root=tmp_path, summarizer=made).apply(MESSAGES)
    assert server.requests[0]["model"] == "another"


def test_a_chat_session_is_sent_as_it_is(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        user("Never push to main."),
        chat_calls(("c0", "Bash", '{"command": "ls"}')),
        chat_result("c0", "a.py"),
        user("Go on."),
    ]
    tools = [{"type": "function", "function": {"name": "Bash", "parameters": {}}}]
    with chat_server() as server:
        server.script = [calling(content=SUMMARY)]
        with openai.OpenAI(base_url=server.url, api_key="sk-k") as client:
            made = summarizer_for("openai", client)
            one = Session(compacting("openai"), root=tmp_path, summarizer=made)
            assert one.apply(messages, tools=tools).compacted
    (sent,) = server.requests
    assert sent["messages"][:-1] == messages[:-1]
    assert (sent["tools"], sent["model"]) == (tools, "the-agents-model")


def markers_in(found: dict[str, Any]) -> int:
    return str(found).count("cache_control")


def test_there_are_never_more_than_four_markers_and_the_last_block_has_one() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    old = [{"role": "user", "content": [{"type": "text", "text": t, **marker}]} for t in "abcd"]
    request = SessionRequest([*old, user("newest")], system=SYSTEM)
    found = in_place_anthropic(request, "Summarise.")
    assert markers_in(found) == 4
    assert [marked(message) for message in found["messages"]] == [
        False, False, True, True, True, False,
    ]  # fmt: skip
    assert all(marked(message) for message in old)


def test_thinking_gets_no_marker() -> None:
    said = {"role": "assistant", "content": [thinking("hm")]}
    found = in_place_anthropic(SessionRequest([user("a"), said]), "Summarise.")
    assert [marked(message) for message in found["messages"]] == [True, False, False]


def test_leading_system_messages_become_the_system_prompt() -> None:
    request = SessionRequest([{"role": "system", "content": "Be brief."}, user("a")])
    found = in_place_anthropic(request, "Summarise.")
    assert found["system"] == "Be brief."
    assert [message["role"] for message in found["messages"]] == ["user", "user"]


def test_messages_of_another_api_are_an_error() -> None:
    chat = SessionRequest([user("a"), chat_calls(("c", "Bash", "{}")), chat_result("c", "x")])
    blocks = SessionRequest([user("a"), call("c", "Bash", {}), results(("c", "x"))])
    with pytest.raises(SummaryError, match="not messages of Anthropic's"):
        in_place_anthropic(chat, "x")
    with pytest.raises(SummaryError, match="not messages of OpenAI's chat API"):
        in_place_chat(blocks, "x")
