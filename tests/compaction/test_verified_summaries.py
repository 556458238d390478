"""Sessions whose model summaries are verified, held to limits, and spared what files show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.compaction.prompt import words_asked_for
from policyctx.compaction.summarizers import summarizer_for
from policyctx.policy.models.compaction import Summary
from policyctx.turns.result import Result
from tests.compaction.messages_server import MessagesServer, messages_server, saying
from tests.conversations import Message, call, results, user
from tests.policies import policy

anthropic = pytest.importorskip("anthropic")

MODELS_TEXT = "## Aims\n" + "The port moved from 8080 to 8081 and the tests pass. " * 5
ORDER = "Never push to main."


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with messages_server() as running:
        yield running


# The histories have fewer words than their summaries.
ANY = "must_shrink_to: false"


def conversation(*orders: str) -> list[Message]:
    said: list[Message] = []
    for text in orders or (ORDER,):
        said += [user(text), {"role": "assistant", "content": "I look at the port."}]
    return [*said, user("Go on.")]


def applied(
    root: Path,
    server: MessagesServer,
    keys: str = "",
    messages: list[Message] | None = None,
    *,
    is_async: bool = False,
) -> Result:
    compiled = policy(f"""\
        model: {{tokenizer: approximate}}
        store: {{sync: never}}
        compaction: {{summary: {{by: anthropic, sections: [Aims], attempts: 1, {ANY}{keys}}}}}
        steps: [{{name: summarise, do: compact}}]
        """)
    given = conversation() if messages is None else messages
    options: dict[str, Any] = {"base_url": server.url, "api_key": "sk-k"}

    async def in_a_loop() -> Result:
        async with anthropic.AsyncAnthropic(**options) as client:
            made = summarizer_for("anthropic", client)
            return await Session(compiled, root=root, summarizer=made).apply_async(given)

    if is_async:
        return asyncio.run(in_a_loop())
    with anthropic.Anthropic(**options) as client:
        made = summarizer_for("anthropic", client)
        return Session(compiled, root=root, summarizer=made).apply(given)


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_models_summary_lacks_is_appended_and_counted(
    tmp_path: Path, server: MessagesServer, *, is_async: bool
) -> None:
    server.script = [saying(MODELS_TEXT)]
    result = applied(tmp_path, server, is_async=is_async)
    text = str(result.messages[0]["content"])
    assert MODELS_TEXT.strip() in text
    assert f"- {ORDER}" in text.partition("## Not said above")[2]
    assert result.summary_usage.appended_lines == 1
    assert result.warnings == ()


def test_a_summary_that_says_everything_is_counted_as_verified(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [saying(f"{MODELS_TEXT}\n{ORDER}")]
    result = applied(tmp_path, server)
    assert "## Not said above" not in str(result.messages[0]["content"])
    assert result.summary_usage.appended_lines == 0


def test_a_policy_may_switch_it_off(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [saying(MODELS_TEXT)]
    result = applied(tmp_path, server, ", verify: false")
    assert ORDER not in str(result.messages[0]["content"])
    assert result.summary_usage.appended_lines is None
    assert "at most 1200 words" in server.requests[0]["system"]


def test_the_room_is_reserved_before_the_model_is_asked(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [saying(MODELS_TEXT)]
    applied(tmp_path, server, ", max_words: 200")
    assert "at most 170 words" in server.requests[0]["system"]


@pytest.mark.parametrize("verify", ["", "verify: false"])
def test_a_callable_is_verified_only_if_the_policy_says_so(verify: str, tmp_path: Path) -> None:
    for keys, appended in ((verify, None), ("verify: true", 1)):
        compiled = policy(f"""\
            store: {{sync: never}}
            compaction: {{summary: {{{", ".join(filter(None, (ANY, keys)))}}}}}
            steps: [{{name: summarise, do: compact}}]
            """)
        one = Session(compiled, root=tmp_path / str(appended), summarizer=lambda _: MODELS_TEXT)
        result = one.apply(conversation())
        assert result.summary_usage.appended_lines == appended


def test_pinned_texts_stay_at_the_end_of_a_verified_summary(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [saying(MODELS_TEXT)]
    compiled = policy("""\
        store: {sync: never}
        items: {rule: {match: {type: user_message, text: {contains: [secret]}}, pin: true}}
        compaction: {summary: {by: anthropic, sections: [Aims], must_shrink_to: false}}
        steps: [{name: summarise, do: compact}]
        """)
    with anthropic.Anthropic(base_url=server.url, api_key="sk-k") as client:
        made = summarizer_for("anthropic", client)
        one = Session(compiled, root=tmp_path, summarizer=made)
        result = one.apply(conversation(ORDER, "The secret is never 4711."))
    text = str(result.messages[0]["content"])
    assert text.endswith("## Pinned\nThe secret is never 4711.")
    assert text.index("## Not said above") < text.index("## Pinned")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (", max_tokens: 40", "tokens; at most 40 are allowed"),
        (", max_chars: 200", "characters; at most 200 are allowed"),
        (", max_share: 30%", "tokens; at most"),
    ],
)
def test_a_models_summary_over_a_limit_is_rejected(
    keys: str, said: str, tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [saying(MODELS_TEXT)]
    result = applied(tmp_path, server, keys)
    assert not result.compacted
    assert said in result.warnings[0]


def test_nothing_is_appended_over_a_limit(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [saying(MODELS_TEXT)]
    result = applied(tmp_path, server, f", max_chars: {len(MODELS_TEXT) + 5}")
    assert result.compacted
    assert result.summary_usage.appended_lines == 0


def test_the_model_is_asked_for_the_words_that_all_limits_allow() -> None:
    assert words_asked_for(Summary(), None) == 1200
    assert words_asked_for(Summary(), 300) == 200
    assert words_asked_for(Summary(max_chars=700), 300) == 100
    assert words_asked_for(Summary(max_words=50), 300) == 50


def test_a_model_is_told_which_files_come_back(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [saying(MODELS_TEXT)]
    (tmp_path / "a.py").write_text("A = 1\n")
    compiled = policy(f"""\
        store: {{sync: never}}
        tools: {{Read: {{reads_file: path}}}}
        compaction:
          restore: {{work_dir: '{tmp_path}'}}
          summary: {{by: anthropic, sections: [Aims], {ANY}}}
        steps: [{{name: summarise, do: compact}}]
        """)
    messages = [user("Go."), call("c", "Read", {"path": "a.py"}), results(("c", "A = 1"))]
    with anthropic.Anthropic(base_url=server.url, api_key="sk-k") as client:
        made = summarizer_for("anthropic", client)
        one = Session(compiled, root=tmp_path / "out", summarizer=made)
        assert one.apply([*messages, {"role": "assistant", "content": "Read."}]).compacted
    assert server.requests[0]["system"].endswith("do not repeat their contents:\n- a.py")
