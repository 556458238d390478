"""System and developer messages in the middle of a list stay through a compaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session, compact_messages
from tests.policies import policy

RULE = "Writes outside of /srv/app are forbidden from now on."
LATER = "The network is off."
Messages = list[dict[str, Any]]


def chat(number: int) -> Messages:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "lorem ipsum " * 20},
    ]


def responses(number: int) -> Messages:
    given = {"type": "function_call", "call_id": f"c{number}", "name": "run", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": f"c{number}"}
    return [given, output | {"output": "lorem ipsum " * 20}]


def anthropic(number: int) -> Messages:
    use = {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "lorem ipsum " * 20}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def plain(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


SHAPES = [
    pytest.param((chat, plain, "system"), id="chat system"),
    pytest.param((chat, plain, "developer"), id="chat developer"),
    pytest.param((responses, item, "developer"), id="responses developer"),
    pytest.param((responses, item, "system"), id="responses system"),
    pytest.param((anthropic, plain, "system"), id="anthropic system"),
]


def conversation(rounds: Callable[[int], Messages], said: Any, role: str) -> Messages:
    return [
        *([] if rounds is anthropic else [said(role, "Be terse.")]),
        said("user", "Deploy the service."),
        *rounds(0),
        said(role, RULE),
        *rounds(1),
        said("user", "Go on, please."),
        *rounds(2),
        *([said("user", "Look at the log.")] if rounds is anthropic else []),
        said(role, LATER),
        *rounds(3),
    ]


def session(root: Path, more: str = "keep_recent: {messages: 1}") -> Session:
    compiled = policy(f"""\
        store: {{sync: never}}
        compaction: {{min_new: 0, {more}}}
        steps: [{{name: summarise, do: compact, when: {{messages: {{over: 9}}}}}}]
        """)
    return Session(compiled, root=root, session_id="s", summarizer=lambda _: "the summary")


def texts(messages: Sequence[Any]) -> list[str]:
    return [str(message) for message in messages]


def places(messages: Sequence[Any], *wanted: str) -> list[int]:
    return [next(i for i, text in enumerate(texts(messages)) if one in text) for one in wanted]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("passes_back", [False, True])
@pytest.mark.parametrize(
    "keys",
    ["keep_recent: {messages: 1}", "keep_recent: {messages: 1}, keep_newest_user_message: true"],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_system_messages_stay_whole_and_in_order(
    tmp_path: Path, shape: Any, keys: str, *, passes_back: bool, restart: bool
) -> None:
    rounds, said, role = shape
    given, used = conversation(rounds, said, role), session(tmp_path, keys)
    rules = [message for message in given if RULE in str(message) or LATER in str(message)]
    for number in range(4, 16):
        used = session(tmp_path, keys) if restart else used
        result = used.apply(given)
        messages = list(result.messages)
        assert [m for m in messages if RULE in str(m) or LATER in str(m)] == rules
        if number > 4:
            assert len(messages) <= 12
        given = [*(messages if passes_back else given), *rounds(number)]
    summary, first, later = places(messages, "the summary", RULE, LATER)
    assert summary < first < later


def roles(messages: Sequence[Any]) -> list[str]:
    return [message["role"] for message in messages]


def test_a_system_message_of_anthropic_follows_a_message_of_the_user(tmp_path: Path) -> None:
    result = session(tmp_path).apply(conversation(anthropic, plain, "system"))
    found = roles(result.messages)
    assert result.compacted
    assert found[0] == "user"
    assert "system" in found
    talk = [role for role in found if role != "system"]
    assert all(one != other for one, other in pairwise(talk))


def test_what_was_compacted_before_gets_the_same_list_again(tmp_path: Path) -> None:
    given = conversation(responses, item, "developer")
    first = session(tmp_path).apply(given)
    again = session(tmp_path).apply(given)
    assert list(again.messages) == list(first.messages)
    sources = [source for source in first.sources if source is not None]
    assert sources == sorted(sources)
    assert all(first.messages[i] is given[s] for i, s in enumerate(first.sources) if s is not None)


def test_explain_says_that_a_system_message_stays(tmp_path: Path) -> None:
    plan = session(tmp_path).plan(conversation(chat, plain, "developer"))
    [decision] = [plan.decision(i) for i, one in enumerate(plan.items) if RULE in one.text]
    assert str(decision.reason) == "system_stays: a system message stays, whole"
    assert decision.rule == "compaction.keep_system_messages"


def test_a_policy_may_replace_them_and_the_summary_quotes_them(tmp_path: Path) -> None:
    compiled = policy("""\
        compaction: {keep_system_messages: false}
        steps: [{name: summarise, do: compact}]
        """)
    result = Session(compiled, root=tmp_path).apply(conversation(chat, plain, "developer"))
    assert roles(result.messages) == ["developer", "user", "assistant"]
    assert f"developer: {RULE}" in str(result.messages[1])


def test_a_request_of_pydantic_ai_with_a_system_prompt_alone_stays(tmp_path: Path) -> None:
    from pydantic_ai import messages as ai  # noqa: PLC0415 - slow to import

    from policyctx.integrations.pydantic_ai import PydanticAIShape  # noqa: PLC0415

    rule = ai.ModelRequest([ai.SystemPromptPart(RULE)])
    given: list[Any] = [ai.ModelRequest([ai.UserPromptPart("Deploy the service.")])]
    for number in range(3):
        given.append(ai.ModelResponse([ai.ToolCallPart("run", {}, f"c{number}")]))
        result = ai.ToolReturnPart("run", "lorem ipsum " * 40, f"c{number}")
        given += [ai.ModelRequest([result]), *([rule] if number == 1 else [])]
    compiled = policy("compaction: {keep_recent: {messages: 1}}\nsteps: [{name: s, do: compact}]")
    used = Session(compiled, root=tmp_path, shapes=[PydanticAIShape()])
    first = used.apply(given)
    assert first.compacted
    assert any(message is rule for message in first.messages)
    assert list(used.apply(given).messages) == list(first.messages)


def test_compact_messages_replaces_them_as_its_document_says(tmp_path: Path) -> None:
    given = conversation(chat, plain, "system")
    result = compact_messages(given, threshold=1, output_dir=tmp_path)
    assert roles(result.messages) == ["system", "user", "assistant"]
    assert RULE in result.summary
