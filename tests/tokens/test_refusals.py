"""Errors of providers about a prompt that is too long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from policyctx.tokens.refusals import Refusal, refusal_of

RECORDED: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "refusals.yaml").read_text(encoding="utf-8")
)
PARAMETERS = pytest.mark.parametrize("one", RECORDED, ids=lambda one: str(one["from"]))


def said_by(one: dict[str, Any]) -> Refusal | None:
    if one.get("other"):
        return None
    return Refusal(one.get("size"), one.get("limit"), is_exact=one.get("exact", True))


@PARAMETERS
def test_a_recorded_error_says_what_it_says(one: dict[str, Any]) -> None:
    expected = said_by(one)
    body = one["body"]
    assert refusal_of(body) == expected
    assert refusal_of(body.encode()) == expected
    assert refusal_of(RuntimeError(body)) == expected
    if body.startswith("{"):
        assert refusal_of(json.loads(body)) == expected
        assert refusal_of([json.loads(body)]) == expected


@PARAMETERS
def test_an_error_is_known_by_what_it_was_raised_from(one: dict[str, Any]) -> None:
    expected = said_by(one)
    error = RuntimeError("the run failed")
    error.__cause__ = ValueError(one["body"])
    assert refusal_of(error) == expected


def test_a_refusal_because_of_the_rate_is_none_of_the_length() -> None:
    error = RuntimeError("prompt is too long: 200251 tokens > 200000 maximum")
    error.status_code = 429  # type: ignore[attr-defined]
    assert refusal_of(error) is None


def test_the_class_of_a_framework_is_enough() -> None:
    class ContextWindowOverflowException(Exception): ...  # noqa: N818 - the name of Strands

    assert refusal_of(ContextWindowOverflowException("too much")) == Refusal()
    assert refusal_of(KeyError("x")) is None
    assert refusal_of(None) is None


def test_a_long_error_is_read_quickly() -> None:
    assert refusal_of("maximum context length is 1 tokens" * 100_000) is not None
    assert refusal_of("(" * 3_000_000) is None
