from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from policyctx.errors import install_command
from policyctx.tokens.anthropic_api import AnthropicCounter
from policyctx.tokens.counter import counter_for
from policyctx.tokens.sizes import OPENAI
from tests.tokens.counting_server import AROUND, CountingServer, counting_server
from tests.tokens.requests import request_tokens

if TYPE_CHECKING:
    import anthropic as sdk

anthropic = pytest.importorskip("anthropic")

# A word that the local tokenizer counts as one token, and the server as so many characters.
WORD = "government"


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server() as running:
        yield running


def client_of(url: str) -> sdk.Anthropic:
    key, wait = "not a key", 5.0
    client: sdk.Anthropic
    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=wait)
    return client


@pytest.fixture
def counter(server: CountingServer) -> Iterator[AnthropicCounter]:
    with client_of(server.url) as client:
        yield AnthropicCounter(client=client, language_model="claude-some")


def test_a_text_has_the_providers_count(counter: AnthropicCounter) -> None:
    assert counter.count(WORD) == len(WORD)
    assert counter.stats.estimated == 0


def test_the_endpoint_is_asked_for_the_language_model(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    counter.count(WORD)
    assert {(r["path"], r["model"]) for r in server.requests} == {
        ("/v1/messages/count_tokens", "claude-some")
    }


def test_each_text_is_asked_about_once(counter: AnthropicCounter, server: CountingServer) -> None:
    assert counter.count_many([WORD, "other", WORD]) == [10, 5, 10]
    assert [counter.count("other"), counter.count(WORD)] == [5, 10]
    assert sorted(map(str, server.texts)) == [WORD, "other", "x"]


@pytest.mark.slow
def test_many_texts_keep_their_order(counter: AnthropicCounter) -> None:
    texts = ["a" * size for size in range(1, 40)]
    assert counter.count_many(texts) == list(range(1, 40))


def test_an_empty_text_makes_no_request(counter: AnthropicCounter, server: CountingServer) -> None:
    assert counter.count("") == 0
    assert server.requests == []


def test_a_blank_text_is_counted_locally(counter: AnthropicCounter, server: CountingServer) -> None:
    assert counter.count(" \n") == counter_for("o200k_base").count(" \n")
    assert (server.requests, counter.stats.estimated) == ([], 1)


def test_a_lone_surrogate_is_asked_about_as_its_replacement(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    assert counter.count("a\ud800") == 2
    assert server.texts[-1] == "a\ufffd"


def test_a_whole_request_is_asked_about_in_one_call(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    messages = [{"role": "user", "content": WORD}]
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    assert request_tokens(messages, tools, "be kind", counter=counter) == AROUND + len(WORD)
    assert server.requests == [
        {
            "messages": messages,
            "tools": tools,
            "system": "be kind",
            "model": "claude-some",
            "path": "/v1/messages/count_tokens",
        }
    ]


def test_a_cut_text_fits_by_the_providers_count(counter: AnthropicCounter) -> None:
    text = f"{WORD} " * 50
    cut = counter.truncate(text, 100)
    assert text.startswith(cut)
    assert 80 < counter.count(cut) <= 100
    assert counter.truncate(text, 0) == ""


@pytest.mark.parametrize("status", [401, 403, 429, 500, 529])
def test_a_text_that_the_provider_does_not_count_is_counted_locally(
    counter: AnthropicCounter, server: CountingServer, status: int
) -> None:
    server.statuses = [status]
    assert counter.count(WORD) == 1
    assert counter.stats.estimated == 1
    assert counter.stats.problem.endswith(f" {status}")


def test_after_a_failure_the_provider_is_left_alone_for_a_while(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    server.statuses = [500]
    counter.count_many([f"{WORD} {i}" for i in range(150)])
    assert len(server.requests) == 1
    counter.count_many([f"{WORD} again {i}" for i in range(150)])
    assert len(server.requests) > 50
    assert counter.count("a later text") == 12


def test_a_refused_text_says_nothing_about_the_next(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    assert counter.count("first") == 5
    server.statuses = [413]
    assert counter.count(WORD) == 1
    assert counter.count("other") == 5


def test_a_refused_request_is_added_up_from_its_texts(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    server.statuses = [400]
    messages = [{"role": "system", "content": WORD}]
    assert request_tokens(messages, counter=counter) == 3 + 4 + len(WORD)


def test_items_of_the_responses_api_are_added_up_from_their_texts(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    items = [{"type": "function_call_output", "call_id": "a", "output": WORD}]
    marks = OPENAI.request + OPENAI.message + OPENAI.tool_result
    assert request_tokens(items, counter=counter) == marks + len(WORD)
    assert server.texts == ["x", WORD]
    assert (counter.stats.estimated, counter.stats.problem) == (0, "")


def test_a_locally_counted_text_is_not_requested_again(
    counter: AnthropicCounter, server: CountingServer
) -> None:
    server.statuses = [400]
    first = counter.count(WORD)
    assert [first, counter.count(WORD)] == [1, 1]


def test_offline_all_is_counted_locally() -> None:
    with counting_server() as gone:
        url = gone.url
    with client_of(url) as client:
        counter = AnthropicCounter(client=client)
        texts = [WORD, "other words", "字か"]
        assert counter.count_many(texts) == counter_for("o200k_base").count_many(texts)
        messages = [{"role": "user", "content": WORD}]
        local = request_tokens(messages)
        assert request_tokens(messages, counter=counter) == local
    assert (counter.stats.estimated, counter.stats.problem) == (3, "APIConnectionError")


@pytest.mark.slow
def test_a_policy_that_asks_for_it_is_counted_by_the_provider(server: CountingServer) -> None:
    program = (
        "from policyctx.tokens.counter import counter_for\n"
        f"print(counter_for('anthropic').count({WORD!r}))"
    )
    where = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "not a key"}
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, check=True, env={**os.environ, **where},
    )  # fmt: skip
    assert run.stdout.strip() == b"10"


@pytest.mark.slow
def test_without_a_key_all_is_counted_locally_with_the_reason() -> None:
    program = (
        "from policyctx.tokens.counter import counter_for\n"
        "counter = counter_for('anthropic')\n"
        f"print(counter.count({WORD!r}), counter.stats.estimated, bool(counter.stats.problem))"
    )
    env = {name: value for name, value in os.environ.items() if "ANTHROPIC" not in name}
    home = {"HOME": os.devnull, "USERPROFILE": os.devnull, "XDG_CONFIG_HOME": os.devnull}
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env={**env, **home}
    )
    assert run.stdout.split() == [b"1", b"1", b"True"]


def test_a_failure_never_shows_the_key(server: CountingServer) -> None:
    server.statuses = [401]
    with anthropic.Anthropic(base_url=server.url, api_key="sk-secret", max_retries=0) as client:
        counter = AnthropicCounter(client=client)
        counter.count(WORD)
    assert "sk-secret" not in f"{counter.stats}{vars(counter)!r}"


def test_without_the_package_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['anthropic'] = None\n"
        "from policyctx.errors import MissingExtraError\n"
        "from policyctx.tokens.counter import counter_for\n"
        "try: counter_for('anthropic')\n"
        "except MissingExtraError as error: print(error.extra, error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.startswith(b"anthropic the tokenizer `anthropic` needs")
    assert install_command("anthropic").encode() in run.stdout
