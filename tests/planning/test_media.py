"""What images and documents take in a plan: by their size and their pages."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from policyctx import Session
from tests.conversations import Message, calls, results, session_of, user
from tests.planning.plans import FACTS, planned
from tests.policies import policy
from tests.tokens.test_image_sizes import png

LARGE = 'items: {image: {offload: true, min_tokens: 500}}\nplaceholder: "[]"\n'
OFFLOAD = f"{LARGE}steps: [{{name: s, do: offload, select: {{types: [image]}}}}]"


def screenshot(width: int, height: int) -> dict[str, Any]:
    data = base64.b64encode(png(width, height)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def shown(*blocks: dict[str, Any]) -> list[Message]:
    return [user("look"), calls(("a", "Shot")), results(("a", list(blocks))), user("go on")]


def test_an_image_is_as_large_as_its_pixels_say() -> None:
    plan = planned(OFFLOAD, shown(screenshot(1000, 1000), screenshot(28, 28)))
    assert [FACTS.tokens(item) for item in plan.items if item.type == "image"] == [1296, 1]
    assert [d.item.path[-1] for d in plan.new] == [0]


def test_the_size_of_a_list_holds_that_of_its_images() -> None:
    small, large = (planned(OFFLOAD, shown(screenshot(n, n))) for n in (28, 1000))
    assert large.tokens_before - small.tokens_before == 1296 - 1


def test_only_text_is_scaled() -> None:
    twice = replace(FACTS, token_scale=2.0)
    words, image = session_of("x" * 400)[-1:], shown(screenshot(1000, 1000))
    [result] = planned(OFFLOAD, words, facts=twice).items
    assert twice.tokens(result) == 2 * FACTS.tokens(result) == 200
    [image_item] = [i for i in planned(OFFLOAD, image).items if i.type == "image"]
    assert twice.tokens(image_item) == FACTS.tokens(image_item)


@pytest.mark.parametrize(
    ("name", "tokens"), [("claude-sonnet-4-5", 1521), ("claude-opus-4-8", 4761), ("gpt-4o", 765)]
)
def test_the_language_model_selects_the_counting_rules(name: str, tokens: int) -> None:
    session = Session(policy(f"{OFFLOAD}\nmodel: {{name: {name}}}"), root="unused")
    plan = session.plan(shown(screenshot(2000, 2000)))
    assert [plan.facts.tokens(item) for item in plan.items if item.type == "image"] == [tokens]
