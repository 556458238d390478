"""Which context window the shares of a policy are measured against."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import OffloadPolicy
from policyctx.planning.facts import window_of
from policyctx.policy.loading import load_policy
from policyctx.policy.models import Model
from tests.policies import HEAD
from tests.pricing.test_rows import at

WRITTEN = {"context_window": 50_000}


@pytest.mark.parametrize(
    ("says", "called", "window"),
    [
        ({}, None, 200_000),
        ({}, "gpt-4o", 128_000),
        ({}, "openai/gpt-4o-2024-08-06", 128_000),
        ({}, "claude-opus-4-8", 1_000_000),
        ({}, "a-model-of-ours", 200_000),
        ({"name": "gpt-4o"}, None, 128_000),
        ({"name": "gpt-4o"}, "claude-opus-4-8", 1_000_000),
        (WRITTEN, "gpt-4o", 50_000),
        ({"name": "gpt-4o", **WRITTEN}, None, 50_000),
        ({"context_window": 200_000}, "gpt-4o", 200_000),
    ],
)
def test_the_window_is_written_or_that_of_the_called_model(
    says: dict[str, object], called: str | None, window: int
) -> None:
    assert window_of(Model.model_validate(says), called) == window


def test_a_window_that_another_policy_gives_is_written(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(f"{HEAD}model: {{context_window: 50000}}\n")
    own = tmp_path / "own.yaml"
    own.write_text(f"{HEAD}extends: ./base.yaml\nmodel: {{name: gpt-4o}}\n")
    assert window_of(load_policy(own).model, "gpt-4o") == 50_000


def test_a_preset_has_the_window_of_the_called_model() -> None:
    assert window_of(OffloadPolicy.load("coding-agent").model, "gpt-4o") == 128_000


def test_the_window_of_a_row_is_that_of_the_day() -> None:
    name, first_day = "claude-sonnet-4-6", at("2026-02-20")
    windows = window_of(Model(), name, at=first_day), window_of(Model(), name)
    assert windows == (200_000, 1_000_000)
