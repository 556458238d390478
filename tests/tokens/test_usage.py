from __future__ import annotations

import json
from typing import Any

import pytest

from policyctx.errors import UsageError
from policyctx.tokens.usage import BodyUsage, Usage, usage_of


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        (
            {"input_tokens": 4, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300,
             "output_tokens": 7, "service_tier": "standard", "cache_creation": {"x": 1}},
            Usage(4, cache_read=300, cache_write=20, output=7),
        ),
        (
            {"input_tokens": 4, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300,
             "output_tokens": 7, "cache_creation": {
                 "ephemeral_1h_input_tokens": 15, "ephemeral_5m_input_tokens": 5}},
            Usage(4, 300, 20, 7, cache_write_1h=15),
        ),
        (
            {"input_tokens": 4, "cache_creation_input_tokens": 20, "output_tokens": 7,
             "cache_creation": {"ephemeral_5m_input_tokens": 20}},
            Usage(4, 0, 20, 7, cache_write_1h=0),
        ),
        ({"input_tokens": 4, "output_tokens": 7}, Usage(4, output=7)),
        (
            {"input_tokens": 4, "cache_read_input_tokens": None, "output_tokens": 7},
            Usage(4, output=7),
        ),
        (
            {"prompt_tokens": 320, "completion_tokens": 7, "total_tokens": 327,
             "prompt_tokens_details": {"cached_tokens": 300, "audio_tokens": 0}},
            Usage(20, cache_read=300, output=7),
        ),
        ({"prompt_tokens": 320, "completion_tokens": 7}, Usage(320, output=7)),
        (  # DeepSeek
            {"prompt_tokens": 320, "completion_tokens": 7, "total_tokens": 327,
             "prompt_cache_hit_tokens": 300, "prompt_cache_miss_tokens": 20},
            Usage(20, cache_read=300, output=7),
        ),
        (  # DeepSeek, which has both forms
            {"prompt_tokens": 320, "completion_tokens": 7, "prompt_cache_hit_tokens": 300,
             "prompt_cache_miss_tokens": 20, "prompt_tokens_details": {"cached_tokens": 300}},
            Usage(20, cache_read=300, output=7),
        ),
        (  # Moonshot
            {"prompt_tokens": 320, "completion_tokens": 7, "cached_tokens": 300},
            Usage(20, cache_read=300, output=7),
        ),
        (  # Mistral
            {"prompt_tokens": 320, "completion_tokens": 7, "num_cached_tokens": 300},
            Usage(20, cache_read=300, output=7),
        ),
        (  # Qwen
            {"prompt_tokens": 320, "completion_tokens": 7, "prompt_tokens_details": {
                "cached_tokens": 200, "cache_creation_input_tokens": 100,
                "cache_creation": {"ephemeral_5m_input_tokens": 100}}},
            Usage(20, 200, 100, output=7),
        ),
        (  # Bedrock
            {"inputTokens": 20, "outputTokens": 7, "totalTokens": 347,
             "cacheReadInputTokens": 200, "cacheWriteInputTokens": 120},
            Usage(20, 200, 120, output=7),
        ),
        (
            {"inputTokens": 340, "outputTokens": 7, "totalTokens": 347,
             "cacheReadInputTokens": 200, "cacheWriteInputTokens": 120},
            Usage(20, 200, 120, output=7),
        ),
        (  # Google
            {"promptTokenCount": 320, "cachedContentTokenCount": 300, "candidatesTokenCount": 5,
             "thoughtsTokenCount": 2, "totalTokenCount": 327,
             "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 320}]},
            Usage(20, cache_read=300, output=7),
        ),
        (
            {"prompt_token_count": 310, "tool_use_prompt_token_count": 10,
             "cached_content_token_count": 300, "candidates_token_count": 7},
            Usage(20, cache_read=300, output=7),
        ),
        (
            {"prompt_tokens": 320, "completion_tokens": 7, "prompt_tokens_details": None},
            Usage(320, output=7),
        ),
        (
            {"input_tokens": 320, "input_tokens_details": {"cached_tokens": 300},
             "output_tokens": 7},
            Usage(20, cache_read=300, output=7),
        ),
        (
            {"input_tokens": 320, "output_tokens": 7, "total_tokens": 327,
             "input_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 100},
             "output_tokens_details": {"reasoning_tokens": 5}},
            Usage(20, cache_read=200, cache_write=100, output=7),
        ),
        (
            {"input_tokens": 320, "output_tokens": 7,
             "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 100}},
            Usage(0, cache_read=300, cache_write=20, output=7),
        ),
        (
            {"input_tokens": 320, "input_tokens_details": None, "output_tokens": 7},
            Usage(320, output=7),
        ),
    ],
)  # fmt: skip
def test_every_token_of_a_prompt_is_counted_once(fields: dict[str, Any], usage: Usage) -> None:
    assert usage_of(fields) == usage


def test_a_prompt_is_all_of_its_input() -> None:
    assert Usage(4, cache_read=300, cache_write=20, output=7).prompt == 324


def test_the_objects_of_an_sdk_are_read() -> None:
    anthropic_types = pytest.importorskip("anthropic.types")
    fields = {"input_tokens": 4, "cache_read_input_tokens": 300, "output_tokens": 7}
    assert usage_of(anthropic_types.Usage(**fields)) == Usage(4, cache_read=300, output=7)


def test_the_usage_object_of_a_responses_response_is_read() -> None:
    responses = pytest.importorskip("openai.types.responses.response_usage")
    fields = {
        "input_tokens": 320,
        "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 327,
    }
    usage = responses.ResponseUsage.model_validate(fields)
    known = Usage(20, cache_read=300, output=7, cache_write_1h=0)
    assert usage_of(usage) == usage_of(fields) == known


@pytest.mark.parametrize("name", ["prompt_tokens", "input_tokens"])
@pytest.mark.parametrize(("written", "hour"), [({}, None), ({"cache_write_tokens": 0}, 0)])
def test_a_usage_without_writes_is_told_from_one_that_does_not_speak_of_them(
    name: str, written: dict[str, int], hour: int | None
) -> None:
    fields = {name: 320, f"{name}_details": {"cached_tokens": 300} | written}
    assert usage_of(fields) == Usage(20, cache_read=300, cache_write_1h=hour)


@pytest.mark.parametrize(
    ("one", "other", "hour"),
    [
        (Usage(1), Usage(1), None),
        (Usage(1, cache_write_1h=0), Usage(1), 0),
        (Usage(1, cache_write_1h=0), Usage(1, cache_write=8), None),
        (Usage(1), Usage(1, cache_write=8, cache_write_1h=8), 8),
        (Usage(1, cache_write=8, cache_write_1h=0), Usage(1, cache_write=8, cache_write_1h=8), 8),
    ],
)
def test_a_sum_tells_the_time_of_its_writes_where_the_bills_of_them_do(
    one: Usage, other: Usage, hour: int | None
) -> None:
    assert (one + other).cache_write_1h == (other + one).cache_write_1h == hour


def test_a_usage_is_one_already() -> None:
    usage = Usage(1)
    assert usage_of(usage) is usage


@pytest.mark.parametrize(
    "wrong",
    [None, 5, "usage", {}, {"tokens": 5}, {"input_tokens": "5"}, {"input_tokens": -1},
     {"prompt_tokens": True}, {"input_tokens": 1.5}],
)  # fmt: skip
def test_anything_else_is_rejected(wrong: object) -> None:
    with pytest.raises(UsageError):
        usage_of(wrong)


def test_a_rejected_usage_error_lists_its_keys() -> None:
    with pytest.raises(UsageError, match="got the keys 'total', 'cost'"):
        usage_of({"total": 5, "cost": 1})


@pytest.mark.parametrize(
    ("more", "tier"),
    [
        ({"service_tier": "priority"}, "priority"),
        ({"service_tier": "batch", "speed": "standard"}, "batch"),
        ({"service_tier": "standard", "speed": "fast"}, "fast"),
        ({"serviceTier": {"type": "flex"}}, ""),
        ({"service_tier": None}, ""),
    ],
)
def test_a_service_tier_with_prices_of_its_own_is_read(more: dict[str, Any], tier: str) -> None:
    assert usage_of({"input_tokens": 4, "output_tokens": 7, **more}).tier == tier
    body = BodyUsage("application/json")
    body.after(json.dumps({"usage": {"prompt_tokens": 4}, **more}))
    assert (found := body.at_end()) is not None
    assert found.tier == (
        tier if "speed" not in more else more["service_tier"].replace("standard", "")
    )
