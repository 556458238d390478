"""Placeholders are known by their text where no ledger knows them."""

from __future__ import annotations

import pytest

from tests.conversations import results, user
from tests.planning.plans import planned

POLICY = """\
    min_chars: 10
    items: {tool_result: {offload: true}}
    placeholder: %s
    store: {path: "r-{tool_use_id}.md"}
    steps: [{name: s, do: offload, must_shrink: false}]
    """


def reason(wording: str, text: str) -> str:
    """Return the code of the decision on a result `a` with this text."""
    found = planned(POLICY % wording, [user("t"), results(("a", text))])
    [decision] = [d for d in found.decisions if d.item.tool_use_id == "a"]
    return decision.reason.code


@pytest.mark.parametrize("text", ["[at ./r-a.md]", "[at ./r-a-1.md]", "[at ./r-a-12.md]"])
def test_a_wording_that_names_the_items_own_file_is_a_placeholder(text: str) -> None:
    assert reason("'[at {relative_path}]'", text) == "placeholder"


@pytest.mark.parametrize(
    "text",
    [
        "[at ./r-b.md]",
        "[at ./r-a-b.md]",
        "[at ./r-a.md] and more",
        "see [at ./r-a.md]",
        "[at ./r-a.md]\n",
        "[at ../r-a.md]",
        "[at ./r-aXmd]",
    ],
)
def test_another_text_is_not_a_placeholder(text: str) -> None:
    assert reason("'[at {relative_path}]'", text) == "large"


def test_the_path_may_be_absolute() -> None:
    assert reason("'[at {path}]'", "[at /store/r-a.md]") == "placeholder"
    assert reason("'[at {path}]'", "[at /other/r-a.md]") == "large"


def test_placeholder_fields_about_the_content_may_have_any_value() -> None:
    wording = "'[{chars} characters, {sha256}, {tool_use_id}: {path}]'"
    assert reason(wording, "[812 characters, 0f, a: /store/r-a.md]") == "placeholder"
    assert reason(wording, "[812 characters, 0f, b: /store/r-a.md]") == "large"


def test_an_excerpt_before_the_path_may_be_anything() -> None:
    wording = '{text: "{head}\\n{path}", head: {lines: 2}}'
    assert reason(wording, "one\ntwo\n/store/r-a.md") == "placeholder"
    assert reason(wording, "one\ntwo\nthree") == "large"


def test_a_placeholder_without_a_file_is_not_recognised() -> None:
    assert reason("'[offloaded {tool_use_id}]'", "[offloaded a]") == "large"
