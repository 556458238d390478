"""`PolicyHook` in LiteLLM's proxy, between the clients of the SDKs and servers that check."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest
import uvicorn

from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations import litellm as integration
from policyctx.integrations.litellm import PolicyHook, session_id_of
from tests.conversations import session_of
from tests.integrations.agents import long_reply
from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.integrations.examples import ROOT, example
from tests.integrations.loops import (
    BIG,
    LIMITS,
    OLD,
    SECOND,
    SHARE,
    WINDOW,
    files_of,
    limit_of,
    long_results,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.scripted import OVERLOADED, calling, saying
from tests.policies import policy

HOOK = """\
import os
from litellm.proxy._types import UserAPIKeyAuth
from policyctx.integrations.litellm import PolicyHook
from tests.integrations.loops import LONG
from tests.policies import policy as compiled

policy = PolicyHook(compiled(LONG), root=os.environ["POLICY_ROOT"])


async def auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key)
"""
TOOLS: Any = [{"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}}]
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "Bash", "parameters": {}}}]
ITEM_TOOLS: Any = [{"type": "function", "name": "Bash", "parameters": {}, "strict": False}]
# Three results; the policy keeps the two newest.
TEXTS = BIG * 2, SECOND * 2, "gamma " * 800
GIVEN: list[Any] = [*session_of(*TEXTS)]


class Servers(SimpleNamespace):
    """The proxy's address, its hook, and the servers behind it."""

    url: str
    hook: PolicyHook
    anthropic: AnthropicAPI
    openai: OpenAIAPI


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Serve the proxy of LiteLLM in this process, as its command does."""
    folder = tmp_path_factory.mktemp("proxy")
    with (
        pytest.MonkeyPatch.context() as patch,
        anthropic_api(WINDOW) as messages,
        openai_api(WINDOW) as chat,
    ):
        (folder / "policy_hook.py").write_text(HOOK)
        models = [
            ("claude", {"model": "anthropic/claude-some", "api_base": messages.url}),
            ("gpt", {"model": "openai/gpt-some", "api_base": chat.url}),
        ]
        config = {
            "model_list": [
                {"model_name": name, "litellm_params": {**params, "api_key": "k"}}
                for name, params in models
            ],
            "litellm_settings": {"callbacks": "policy_hook.policy", "num_retries": 0},
            "general_settings": {
                "custom_auth": "policy_hook.auth",
                "master_key": f"sk-{secrets.token_hex(32)}",
            },
        }
        (folder / "config.yaml").write_text(json.dumps(config))
        patch.setenv("POLICY_ROOT", str(folder / "root"))
        patch.setenv("WORKER_CONFIG", json.dumps({"config": str(folder / "config.yaml")}))
        patch.setenv("CONFIG_FILE_PATH", str(folder / "config.yaml"))
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        with proxy() as url:
            import litellm  # noqa: PLC0415 - it reads the environment

            [hook] = [each for each in litellm.callbacks if isinstance(each, PolicyHook)]
            yield Servers(url=url, hook=hook, anthropic=messages, openai=chat)


@contextmanager
def proxy() -> Iterator[str]:
    """Serve LiteLLM's application in a thread."""
    from litellm.proxy.proxy_server import app  # noqa: PLC0415 - it reads the environment

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", port, log_level="warning"))
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(autouse=True)
def _scripts(request: pytest.FixtureRequest) -> Iterator[None]:
    if "servers" not in request.fixturenames:
        yield
        return
    servers = request.getfixturevalue("servers")
    for api in (servers.anthropic, servers.openai):
        api.script = []
        for kept in (api.bodies, api.prompts, api.refused):
            kept.clear()
    yield
    assert servers.anthropic.refused == servers.openai.refused == []


def claude(servers: Servers, session: str, key: str = "sk-one") -> Any:
    headers = {"x-litellm-session-id": session}
    return anthropic.Anthropic(base_url=servers.url, api_key=key, default_headers=headers)


def gpt(servers: Servers, session: str, key: str = "sk-one") -> Any:
    headers = {"x-litellm-session-id": session}
    url = f"{servers.url}/v1"
    return openai.OpenAI(base_url=url, api_key=key, default_headers=headers, max_retries=0)


def ask(client: Any, messages: list[Any] = GIVEN, **more: Any) -> Any:
    request = {"model": "claude", "max_tokens": 99, "tools": TOOLS, "messages": messages, **more}
    if not request.pop("streams", False):
        return client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        return stream.get_final_message()


def key_of(name: str) -> Any:
    return SimpleNamespace(api_key=name, user_id=None, team_id=None)


def totals(hook: PolicyHook, id_: str, calls: int, key: str = "sk-one") -> Any:
    """Return the totals of a session once its last usage was observed, which follows the answer."""
    from litellm.proxy._types import UserAPIKeyAuth  # noqa: PLC0415

    session = hook.session_of(id_, UserAPIKeyAuth(api_key=key))
    for _ in range(200):
        if session.totals().calls >= calls:
            break
        time.sleep(0.05)
    return session.totals()


def sent_results(body: Any) -> list[str]:
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    found = [block["content"] for block in blocks if block["type"] == "tool_result"]
    return [text if isinstance(text, str) else text[0]["text"] for text in found]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_request_for_messages_is_edited_and_its_usage_is_observed(
    servers: Servers, streams: bool
) -> None:
    name = f"messages-{streams}"
    assert ask(claude(servers, name), streams=streams).content[0].text == "Done."
    [body] = servers.anthropic.bodies
    first, *others = sent_results(body)
    assert first.startswith("[")
    assert others == [*TEXTS[1:]]
    found = totals(servers.hook, name, 1)
    assert (found.calls, found.tokens_sent) == (1, sum(servers.anthropic.prompts))


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_chat_completion_is_edited_and_its_usage_is_observed(
    servers: Servers, streams: bool
) -> None:
    name = f"chat-{streams}"
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    for i, text in enumerate(TEXTS):
        function = {"name": "Bash", "arguments": "{}"}
        call = {"id": f"c{i}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": text})
    options = {"stream_options": {"include_usage": True}} if streams else {}
    answer = gpt(servers, name).chat.completions.create(
        model="gpt", messages=messages, tools=CHAT_TOOLS, stream=streams, **options
    )
    if streams:
        assert list(answer)
    [body] = servers.openai.bodies
    first, *others = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    assert first.startswith("[")
    assert others == [*TEXTS[1:]]
    found = totals(servers.hook, name, 1)
    assert (found.calls, found.tokens_sent) == (1, sum(servers.openai.prompts))


def test_a_request_for_a_response_is_edited_and_its_usage_is_observed(servers: Servers) -> None:
    items: list[Any] = [{"role": "user", "content": "Go."}]
    for i, text in enumerate(TEXTS):
        call = {"type": "function_call", "call_id": f"c{i}", "name": "Bash", "arguments": "{}"}
        items += [call, {"type": "function_call_output", "call_id": f"c{i}", "output": text}]
    client = gpt(servers, "items")
    client.responses.create(model="gpt", input=items, tools=ITEM_TOOLS)
    [body] = servers.openai.bodies
    first, *_ = [i["output"] for i in body["input"] if i.get("type") == "function_call_output"]
    assert first.startswith("[")
    assert totals(servers.hook, "items", 1).tokens_sent == sum(servers.openai.prompts)


def test_two_keys_with_one_session_id_have_a_session_each(servers: Servers) -> None:
    for key in ("sk-one", "sk-two"):
        ask(claude(servers, "shared", key))
    one, two = (totals(servers.hook, "shared", 1, key) for key in ("sk-one", "sk-two"))
    assert (one.calls, two.calls) == (1, 1)
    first, second = (sent_results(body)[0] for body in servers.anthropic.bodies)
    assert first != second


def test_a_request_without_a_session_passes_unchanged(servers: Servers) -> None:
    with anthropic.Anthropic(base_url=servers.url, api_key="sk-one") as client:
        ask(client)
    assert sent_results(servers.anthropic.bodies[0]) == [*TEXTS]


def test_an_error_of_the_server_goes_through_and_the_next_attempt_sends_the_same(
    servers: Servers,
) -> None:
    servers.anthropic.script = [OVERLOADED, saying("Done.")]
    client = claude(servers, "errors").with_options(max_retries=0)
    with pytest.raises(anthropic.APIStatusError):
        ask(client)
    assert ask(client).content[0].text == "Done."
    first, second = servers.anthropic.bodies
    assert first["messages"] == second["messages"]


def test_a_hundred_turns_of_messages_stay_valid_and_within_the_window(servers: Servers) -> None:
    api, client, system = servers.anthropic, claude(servers, "hundred"), "You are careful. " * 120
    messages: list[Any] = []
    for turn in range(100):
        results = long_results(turn)
        if turn % 10 == 9:
            api.script = [saying(f"Part {turn} is done. " + "We go on. " * 40)]
        else:
            calls = [(id_, "Bash", {"n": turn}) for id_, _ in results]
            api.script = [calling(*calls, reasons="hm " * 60 if turn % 2 else "")]
        if turn % 10 == 0:
            messages.append({"role": "user", "content": f"Do part {turn // 10}."})
        answer = ask(client, messages, system=system, streams=turn % 2 == 1)
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        messages.append({"role": "assistant", "content": content})
        if turn % 10 != 9:
            blocks = [{"type": "tool_result", "tool_use_id": i, "content": t} for i, t in results]
            messages.append({"role": "user", "content": blocks})
        found = totals(servers.hook, "hundred", turn + 1)
        assert found.calls == turn + 1
    assert len(api.prompts) == 100
    assert max(api.prompts) <= WINDOW
    assert len(json.dumps(messages)) // 3 > 10 * WINDOW
    assert "offloaded" in found.items
    assert found.compactions > 2


def test_a_hundred_turns_of_chat_stay_valid_and_within_the_window(servers: Servers) -> None:
    api, client = servers.openai, gpt(servers, "hundred-chat")
    messages: list[Any] = [{"role": "system", "content": "You are careful. " * 120}]
    for turn in range(100):
        api.script = [long_reply(turn)]
        if turn % 10 == 0:
            messages.append({"role": "user", "content": f"Do part {turn // 10}."})
        answer = client.chat.completions.create(model="gpt", messages=messages, tools=CHAT_TOOLS)
        fields = {"role", "content", "tool_calls"}
        said = answer.choices[0].message.model_dump(include=fields, exclude_none=True)
        messages.append(said)
        if turn % 10 != 9:
            messages += [
                {"role": "tool", "tool_call_id": id_, "content": text}
                for id_, text in long_results(turn)
            ]
        found = totals(servers.hook, "hundred-chat", turn + 1)
    assert len(api.prompts) == 100
    assert max(api.prompts) <= WINDOW
    assert found.compactions > 2


def test_the_example_is_the_hook_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    code = example("litellm_hook").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "litellm.md").read_text(encoding="utf-8")
    assert code.split('"""')[2].strip() in page
    names: dict[str, Any] = {}
    exec(compile(code, "litellm_hook.py", "exec"), names)  # noqa: S102 - ours
    many = session_of(*(f"{i} " * 6000 for i in range(9)))
    sent = passed(names["policy"], {"messages": many, "litellm_session_id": "s"})["messages"]
    assert "[Offloaded: Bash result" in str(sent)
    assert (tmp_path / ".agent" / "context").is_dir()


@pytest.fixture
def hook_of(tmp_path: Path) -> Callable[[str], PolicyHook]:
    def make(text: str) -> PolicyHook:
        return PolicyHook(policy(text), root=tmp_path)

    return make


def passed(hook: PolicyHook, data: dict[str, Any], kind: str = "anthropic_messages") -> Any:
    """Return a copy of a request as the hook passes it on."""
    return asyncio.run(hook.async_pre_call_hook(key_of("k"), None, dict(data), kind))


NAMED: dict[str, Any] = {"messages": GIVEN, "litellm_session_id": "s"}


@pytest.mark.parametrize(("model", "limit"), LIMITS)
@pytest.mark.parametrize("kind", ["anthropic_messages", "acompletion"])
def test_a_share_is_of_the_window_of_the_called_model(
    tmp_path: Path, model: str, limit: int, kind: str
) -> None:
    hook = PolicyHook(policy(SHARE), root=tmp_path)
    passed(hook, {**NAMED, "model": model}, kind)
    assert limit_of(hook.session_of("s", key_of("k"))) == limit


@pytest.mark.parametrize(
    "name", ["previous_response_id", "conversation", "thread", "previous_message_id", "compaction"]
)
def test_a_request_whose_history_the_server_holds_passes_unchanged(hook_of: Any, name: str) -> None:
    assert passed(hook_of(OLD), {**NAMED, name: "x"})["messages"] is GIVEN


def test_other_kinds_of_calls_pass_unchanged(hook_of: Any) -> None:
    assert passed(hook_of(OLD), NAMED, "aembedding")["messages"] is GIVEN


def test_a_restart_sends_the_same_bytes(hook_of: Any) -> None:
    first = passed(hook_of(OLD), NAMED)
    assert passed(hook_of(OLD), NAMED)["messages"] == first["messages"] != GIVEN


def test_a_function_chooses_the_session_of_a_request(tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s")
    hook = PolicyHook(
        lambda user, data: session if (user.api_key, data["user"]) == ("k", "m") else None
    )
    assert passed(hook, {**NAMED, "user": "o"})["messages"] is GIVEN
    assert passed(hook, {**NAMED, "user": "m"})["messages"] is not GIVEN
    assert len(files_of(session)) == 2
    with pytest.raises(InputError, match="by a function"):
        hook.session_of("s", key_of("k"))
    with pytest.raises(InputError, match="need a policy"):
        PolicyHook(lambda *_: None, root=tmp_path)


def test_a_side_call_of_the_same_session_passes_unchanged(hook_of: Any) -> None:
    hook = hook_of(OLD)
    passed(hook, {**NAMED, "system": "You code.", "tools": TOOLS})
    side = {"messages": session_of("delta " * 400, SECOND), "litellm_session_id": "s"}
    assert passed(hook, {**side, "system": "You name."})["messages"] is side["messages"]


def test_a_bounded_number_of_sessions_is_kept(
    hook_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integration, "_MOST_SESSIONS", 2)
    hook = hook_of(OLD)
    held = hook.session_of("0", key_of("k"))
    for name in "123":
        hook.session_of(name, key_of("k"))
    assert hook.session_of("0", key_of("k")) is held
    assert len(hook._sessions._recent) == 2


@pytest.mark.parametrize(
    ("data", "headers", "expected"),
    [
        ({}, {"X-Claude-Code-Session-Id": "a"}, "a"),
        ({}, {"x-claude-code-session-id": "a", "x-claude-code-agent-id": "b"}, "a/b"),
        ({"prompt_cache_key": "c"}, {"session-id": "d"}, "d"),
        ({"prompt_cache_key": "c"}, {}, "c"),
        ({"metadata": {"user_id": '{"session_id": "e"}'}}, {}, "e"),
        ({"metadata": {"user_id": "someone"}}, {}, None),
        ({"metadata": {"session_id": "f"}}, {}, "f"),
        ({"litellm_session_id": "g"}, {}, "g"),
        ({}, {"x-other-session-id": "h"}, "h"),
        ({}, {}, None),
    ],
)
def test_a_request_names_its_session(
    data: Any, headers: dict[str, str], expected: str | None
) -> None:
    assert session_id_of({**data, "proxy_server_request": {"headers": headers}}) == expected
