"""The policies of Pydantic AI's harness against its capabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.compaction import (
    ClampOversizedMessages,
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
)

from policyctx.integrations.pydantic_ai import PydanticAIShape
from tests.peers import pydantic_messages
from tests.peers.comparing import Ours, changed, tally
from tests.peers.options import (
    Setting,
    assert_all_are_compared,
    assert_equal_as_the_page_says,
    settings,
)
from tests.peers.pydantic_side import SUMMARISER, SUMMARY, InAgent
from tests.peers.said import SHELLS, conversations

ALWAYS = {"tokens: {over: 100000}": "tokens: {over: 0}"}
SELECT = "batches: split}}"
CLEARING, CLAMP = "pydantic-ai-clear-tool-results", "pydantic-ai-clamp"
SUMMARISING, WINDOW = "pydantic-ai-summarizing-compaction", "pydantic-ai-sliding-window"


def clearing(**options: Any) -> InAgent:
    return InAgent(ClearToolResults(**{"max_tokens": 1} | options))


def clamp(**options: Any) -> InAgent:
    given = {"max_part_chars": 900, "keep_head_chars": 200, "keep_tail_chars": 200} | options
    return InAgent(ClampOversizedMessages(clamp_tool_call_args=False, **given))


def clamped(most: int = 900, head: int = 200, tail: int = 200) -> dict[str, str]:
    return {
        "min_chars: 50001": f"min_chars: {most + 1}",
        "head: {chars: 2000}": f"head: {{chars: {head}}}",
        "tail: {chars: 2000}": f"tail: {{chars: {tail}}}",
    }


def summarising(most: int = 40, kept: int = 10) -> InAgent:
    return InAgent(SummarizingCompaction(model=SUMMARISER, max_messages=most, keep_messages=kept))


def keeping_users(chars: int) -> InAgent:
    return InAgent(
        SummarizingCompaction(
            model=SUMMARISER,
            max_messages=40,
            keep_messages=10,
            keep_user_messages=True,
            keep_user_messages_max_chars=chars,
        )
    )


def window(most: int = 40, kept: int = 10) -> InAgent:
    return InAgent(SlidingWindowCompaction(max_messages=most, keep_messages=kept))


SETTINGS = [
    *settings(
        CLEARING,
        "max_tokens",
        lambda tokens: clearing(max_tokens=tokens),
        lambda tokens: {"over: 100000": f"over: {tokens}"},
        (5_000, 20_000, 45_000),
    ),
    *settings(
        CLEARING,
        "keep_pairs",
        lambda kept: clearing(keep_pairs=kept),
        lambda kept: ALWAYS | {"items: 3": f"items: {kept}"},
        (0, 4, 9),
    ),
    *settings(
        CLEARING,
        "exclude_tools",
        lambda tool: clearing(exclude_tools=frozenset([tool])),
        lambda tool: ALWAYS | {SELECT: f"batches: split}}, except_tools: [{tool}]}}"},
        ("Bash", "Read", "Edit"),
    ),
    *settings(
        CLEARING,
        "min_clear_tokens",
        lambda freed: clearing(min_clear_tokens=freed),
        lambda freed: {"tokens: {over: 100000}": f"frees: {{at_least: {freed}}}"},
        (100, 1_000, 5_000),
    ),
    *settings(
        CLAMP,
        "max_part_chars",
        lambda most: clamp(max_part_chars=most),
        clamped,
        (600, 1_100, 2_000),
    ),
    *settings(
        CLAMP,
        "keep_head_chars",
        lambda head: clamp(keep_head_chars=head),
        lambda head: clamped(head=head),
        (10, 333, 500),
    ),
    *settings(
        CLAMP,
        "keep_tail_chars",
        lambda tail: clamp(keep_tail_chars=tail),
        lambda tail: clamped(tail=tail),
        (10, 333, 500),
    ),
    *settings(
        SUMMARISING,
        "max_messages",
        summarising,
        lambda most: {"over: 60": f"over: {most}", "{messages: 20}": "{messages: 10}"},
        (24, 31, 50),
    ),
    *settings(
        SUMMARISING,
        "keep_messages",
        lambda kept: summarising(kept=kept),
        lambda kept: {"over: 60": "over: 40", "{messages: 20}": f"{{messages: {kept}}}"},
        (4, 7, 16),
    ),
    *settings(
        SUMMARISING,
        "keep_user_messages_max_chars",
        keeping_users,
        # The nearest that a policy has; the message that stays is one of the ten.
        lambda _: {
            "over: 60": "over: 40",
            "keep_first: 1": "keep_newest_user_message: true",
            "{messages: 20}": "{messages: 9}",
        },
        (200, 2_000, 20_000),
    ),
    *settings(
        WINDOW,
        "max_messages",
        window,
        lambda most: {"over: 80": f"over: {most}", "{messages: 40}": "{messages: 10}"},
        (24, 31, 50),
    ),
    *settings(
        WINDOW,
        "keep_messages",
        lambda kept: window(kept=kept),
        lambda kept: {"over: 80": "over: 40", "{messages: 40}": f"{{messages: {kept}}}"},
        (4, 7, 16),
    ),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_setting_is_equal_as_the_page_says(setting: Setting, tmp_path: Path) -> None:
    own: dict[str, Any] = {"shape": PydanticAIShape()}
    if setting.policy == SUMMARISING:
        own["summarizer"] = lambda _: SUMMARY
    assert_equal_as_the_page_says(setting, pydantic_messages, tmp_path, **own)


def test_the_page_has_just_these_options() -> None:
    assert_all_are_compared(SETTINGS)


@pytest.mark.parametrize(
    ("name", "capability", "passages"),
    [
        ("clear-tool-results", lambda: ClearToolResults(max_tokens=1), ALWAYS),
        (
            "clear-tool-results",
            lambda: ClearToolResults(
                max_tokens=1, keep_pairs=1, exclude_tools=frozenset(SHELLS), clear_tool_inputs=True
            ),
            ALWAYS
            | {
                "items: 3": "items: 1",
                SELECT: f"batches: split}}, except_tools: {SHELLS},"
                ' with_input: {tools: "*", leave: empty}}',
            },
        ),
        (
            "clamp",
            lambda: ClampOversizedMessages(
                max_part_chars=1000,
                keep_head_chars=300,
                keep_tail_chars=300,
                clamp_tool_call_args=False,
            ),
            {
                "min_chars: 50001": "min_chars: 1001",
                "head: {chars: 2000}": "head: {chars: 300}",
                "tail: {chars: 2000}": "tail: {chars: 300}",
            },
        ),
    ],
    ids=["keep three", "keep one, exclude tools, clear inputs", "clamp"],
)
def test_what_is_sent_is_equal_at_every_call(
    name: str, capability: Any, passages: dict[str, str], tmp_path: Path
) -> None:
    policy = changed(f"peers/pydantic-ai-{name}", passages)
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(capability()),
        lambda number: Ours(policy, tmp_path / str(number), shape=PydanticAIShape()),
    )
    assert found.edited > 100
    assert (found.different, found.first) == (0, "")


def test_the_trigger_is_a_number_of_tokens_that_the_harness_counts_otherwise(
    tmp_path: Path,
) -> None:
    policy = changed("peers/pydantic-ai-clear-tool-results", {"over: 100000": "over: 20000"})
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(ClearToolResults(max_tokens=20_000)),
        lambda number: Ours(policy, tmp_path / str(number), shape=PydanticAIShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == 69, found.first


@pytest.mark.parametrize(("most", "different"), [(30, 0), (31, 1188)])
def test_a_summary_is_equal_where_the_number_of_messages_is_even(
    most: int, different: int, tmp_path: Path
) -> None:
    # The harness counts the first message and the summary as one, so an odd number differs.
    policy = changed(
        "peers/pydantic-ai-summarizing-compaction",
        {"over: 60": f"over: {most}", "{messages: 20}": "{messages: 10}"},
    )
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(
            SummarizingCompaction(model=SUMMARISER, max_messages=most, keep_messages=10)
        ),
        lambda number: Ours(
            policy,
            tmp_path / str(number),
            shape=PydanticAIShape(),
            summarizer=lambda _: SUMMARY,
        ),
    )
    assert found.edited > found.calls / 2
    assert found.different == different, found.first


def test_pins_hold_each_text_of_the_user_that_the_harness_keeps(tmp_path: Path) -> None:
    policy = changed(
        f"peers/{SUMMARISING}",
        {
            "over: 60": "over: 40",
            "{messages: 20}": "{messages: 10}",
            "compaction:\n": "items: {user_message: {pin: true}}\n\ncompaction:\n"
            "  summary: {must_shrink_to: false, max_words: 100000}\n",
            "keep_first: 1": "keep_first: 0",
        },
    )
    kept = 0
    for number, conversation in enumerate(conversations(("claude-code",))):
        harness = keeping_users(20_000)
        ours = Ours(
            policy,
            tmp_path / str(number),
            shape=PydanticAIShape(),
            summarizer=lambda request: "\n\n".join((SUMMARY, *request.pinned)),
        )
        for start, end in conversation.calls():
            new = pydantic_messages.written(conversation.messages[start:end])
            texts = [text for text in users(harness.sent(list(new))) if SUMMARY not in text]
            held = "\n".join(users(ours.sent(list(new))))
            assert [text for text in texts if text.removesuffix("[...]") not in held] == []
            kept += SUMMARY in held and bool(texts)
    assert kept > 100


def users(messages: list[Any]) -> list[str]:
    plain = pydantic_messages.plain(messages)
    return [part[1] for role, parts in plain if role == "user" for part in parts]


def test_a_tail_that_gives_way_to_messages_of_the_user_is_not_summarised() -> None:
    asked: list[str] = []

    def summarised(messages: list[Any], _: object) -> ModelResponse:
        asked.append(str(messages))
        return ModelResponse([TextPart(SUMMARY)])

    harness = InAgent(
        SummarizingCompaction(
            model=FunctionModel(summarised),
            max_messages=10,
            keep_messages=4,
            keep_user_messages=True,
        )
    )
    said = [
        one
        for number in range(6)
        for one in (
            ModelRequest([UserPromptPart(f"question {number}")]),
            ModelResponse([TextPart(f"answer {number}")]),
        )
    ]
    sent = str(harness.sent(said[:-1]))
    words = [f"{kind} {number}" for number in range(6) for kind in ("question", "answer")]
    lost = [word for word in words[:-1] if word not in asked[0] and word not in sent]
    assert lost == ["answer 3", "question 4", "answer 4"]


def test_a_window_keeps_the_newest_message_of_the_user(tmp_path: Path) -> None:
    policy = changed(
        "peers/pydantic-ai-sliding-window",
        {"{over: 80}": "{over: 30}", "{messages: 40}": "{messages: 10}"},
    )
    found = tally(
        conversations(),
        pydantic_messages,
        lambda: InAgent(SlidingWindowCompaction(max_messages=30, keep_messages=10)),
        lambda number: Ours(policy, tmp_path / str(number), shape=PydanticAIShape()),
    )
    assert found.edited > found.calls / 2
    assert found.different == 795, found.first
