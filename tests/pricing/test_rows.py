"""The rows of language models: complete, dated, with sources, and found as recordings name them."""

from __future__ import annotations

import re
import socket
from datetime import UTC, datetime
from itertools import pairwise
from typing import NoReturn

import pytest

from policyctx.pricing.dollars import Rates
from policyctx.pricing.rows import ModelRow, _models, prices_source, row_of, rows

ROWS = rows()


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


def found(name: str, day: str | None = None) -> ModelRow:
    row = row_of(name, at=None if day is None else at(day))
    assert row is not None, name
    return row


def test_the_source_of_the_prices_has_a_version() -> None:
    assert re.fullmatch(r"genai-prices \d+\.\d+\.\d+", prices_source())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} {row.since}")
def test_a_row_is_complete(row: ModelRow) -> None:
    assert row.sources
    assert all(source.startswith("https://") for source in row.sources)
    assert row.context_window >= 8_000
    for rates in (row.prices.base, *(rates for _, rates in row.prices.above)):
        assert 0 < rates.read <= rates.input <= rates.write_5m <= rates.write_1h
        assert rates.output >= rates.input
        if row.cache is None:
            assert rates.read == rates.input
        elif not row.cache.bills_writes:
            assert rates.write_5m == rates.write_1h == rates.input
        if row.cache is not None:
            assert rates.read < rates.input
    if row.provider in {"anthropic", "aws"}:
        assert row.cache is not None
        assert row.cache.kind == "anthropic"
        assert row.cache.min_tokens in {512, 1024, 2048, 4096}


def test_rows_are_sorted_and_their_periods_follow_one_another() -> None:
    order = [(row.provider, row.name) for row in ROWS]
    assert order == sorted(order)
    for before, after in pairwise(ROWS):
        if before.name == after.name:
            assert before.until == after.since > before.since
        else:
            assert (before.until, after.since) == ("", "")


def test_larger_prompts_cost_more_and_the_sizes_ascend() -> None:
    tiered = [row.prices for row in ROWS if row.prices.above]
    assert tiered
    for prices in tiered:
        sizes = [tokens for tokens, _ in prices.above]
        assert sizes == sorted(set(sizes))
        assert all(rates.input > prices.base.input for _, rates in prices.above)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("openrouter/anthropic/claude-sonnet-4", "claude-sonnet-4-0"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4-0"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "regional.anthropic.claude-sonnet-4-5"),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-0"),
        ("bedrock/us.anthropic.claude-opus-4-6-v1", "regional.anthropic.claude-opus-4-6"),
        ("google/gemini-3-pro-preview", "gemini-3-pro-preview"),
        ("gemini/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("openai/gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-codex", "gpt-5"),
        ("xai/grok-3-mini", "grok-3-mini"),
        ("meta-llama/llama-4-maverick", "llama-4-maverick"),
        ("zai/glm-5.2", "glm-5.2"),
        ("GLM-5.2", "glm-5.2"),
    ],
)
def test_a_model_is_found_as_recordings_spell_it(name: str, row: str) -> None:
    assert found(name).name == row


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "claude",
        "claude-sonnet-9",
        "openai/gpt-5-ca",
        "groq/llama-4-maverick",
        "fireworks_ai/accounts/fireworks/models/glm-5.2",
        "gpt-4o:free",
        "gpt-5.3-codex-spark",
        "gpt-6.2-sol",
        "<synthetic>",
        "haiku",
        "/",
    ],
)
def test_an_unknown_model_has_no_row(name: str | None) -> None:
    assert row_of(name) is None


def test_a_recording_has_the_prices_of_its_own_day() -> None:
    before, after = found("o3", "2025-06-09"), found("o3", "2025-06-10")
    assert (before.prices.base.input, after.prices.base.input) == (10, 2)
    assert found("o3") == after
    assert found("o3", "2031-01-01") == after


def test_a_long_window_counts_from_the_day_on_which_it_was_sold_to_all() -> None:
    beta, sold = found("claude-opus-4-6", "2026-02-12"), found("claude-opus-4-6", "2026-03-13")
    assert (beta.context_window, sold.context_window) == (200_000, 1_000_000)
    assert (len(beta.prices.above), len(sold.prices.above)) == (1, 0)


def test_a_price_that_is_announced_counts_from_its_day_on() -> None:
    before, after = found("gemini-3.6-flash", "2026-12-31"), found("gemini-3.6-flash", "2027-01-01")
    assert (before.prices.base.input, after.prices.base.input) == (0.75, 1.5)


def test_a_long_window_may_be_asked_for_in_the_name() -> None:
    assert found("claude-sonnet-4-5-20250929").context_window == 200_000
    assert found("claude-sonnet-4-5-20250929[1m]").context_window == 1_000_000


def test_no_row_needs_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> NoReturn:
        raise OSError

    monkeypatch.setattr(socket.socket, "connect", refused)
    _models.cache_clear()
    assert rows() == ROWS


def test_prices_are_absolute() -> None:
    assert found("claude-opus-4-8").prices.base == Rates(5, 6.25, 10, 0.5, 25)
    assert found("claude-fable-5-1").prices.base.read == 0.25


def test_openai_bills_writes_from_gpt_5_6_on() -> None:
    old, new = found("gpt-5.5").cache, found("gpt-5.6-sol").cache
    assert old is not None
    assert new is not None
    assert (old.kind, old.step, old.min_tokens, old.bills_writes) == ("prefix", 128, 1024, False)
    assert (new.kind, new.bills_writes) == ("breakpoints", True)


def test_the_prices_of_a_service_tier_are_those_that_its_provider_publishes() -> None:
    row = found("gpt-5.5", "2026-11-01")
    now = at("2026-11-01")
    for tier, factor in (("priority", 2.5), ("flex", 0.5), ("batch", 0.5)):
        prices = row.at_tier(tier, at=now)
        assert prices is not None, tier
        assert prices.base.input == pytest.approx(factor * row.prices.base.input)
        assert prices.base.read == pytest.approx(factor * row.prices.base.read)
        assert prices.base.output == pytest.approx(factor * row.prices.base.output)
    fast = found("claude-opus-4-8").at_tier("fast", at=None)
    assert fast is not None
    assert fast.base.write_1h == 20


@pytest.mark.parametrize(
    ("model", "tier", "day"),
    [
        ("claude-opus-4-8", "priority", "2026-11-01"),
        ("gpt-5.5", "unheard-of", "2026-11-01"),
        ("gpt-5.5", "priority", "2026-07-01"),
        ("glm-4.6", "batch", "2026-11-01"),
    ],
)
def test_a_service_tier_that_nobody_publishes_for_that_day_has_no_prices(
    model: str, tier: str, day: str
) -> None:
    assert found(model, day).at_tier(tier, at=at(day)) is None


def test_what_a_tier_does_not_price_costs_what_it_costs_at_the_standard_tier() -> None:
    row = found("gpt-4.1", "2026-11-01")
    batch = row.at_tier("batch", at=at("2026-11-01"))
    assert batch is not None
    assert batch.base.input == row.prices.base.input / 2
    assert batch.base.read == row.prices.base.read
