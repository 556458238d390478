"""A YAML file alone adds an item type, and everything treats it like a built-in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.messages.reading import items_of
from policyctx.planning.decisions import Reason
from tests.conversations import Message, calls, results, user
from tests.policies import policy

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}


def types(items: str, messages: list[Message]) -> list[str]:
    compiled = policy(f"items: {items}")
    return [compiled.typed(item).type for item in items_of(messages)]


@pytest.mark.parametrize(
    ("match", "kinds"),
    [
        ("{type: tool_result}", ["mine", "mine"]),
        ("{type: tool_result, tool: 'web_*'}", ["mine", "tool_result"]),
        ("{type: tool_result, tool: [Bash, x]}", ["tool_result", "mine"]),
        ("{type: tool_result, error: true}", ["tool_result", "mine"]),
        ("{type: tool_result, error: false}", ["mine", "tool_result"]),
        ("{type: tool_result, text: {startswith: on}}", ["mine", "tool_result"]),
        ("{type: tool_result, text: {endswith: [x, wo]}}", ["tool_result", "mine"]),
        ("{type: tool_result, text: {contains: w}}", ["tool_result", "mine"]),
        ("{type: tool_result, text: {contains: w, startswith: x}}", ["tool_result", "tool_result"]),
        ("{type: tool_result, tool: Bash, error: true}", ["tool_result", "mine"]),
        ("{type: tool_call}", ["tool_result", "tool_result"]),
        ("{type: tool_result, role: tool}", ["tool_result", "tool_result"]),
    ],
)
def test_a_type_requires_all_conditions_of_its_match(match: str, kinds: list[str]) -> None:
    messages = [
        calls(("a", "web_get"), ("b", "Bash")),
        results(("a", "one")),
        results(("b", "two"), error=True),
    ]
    assert types(f"{{mine: {{match: {match}}}}}", messages)[2:] == kinds


def test_the_media_type_is_a_glob() -> None:
    items = "{picture: {match: {type: image, media_type: 'image/*'}}}"
    assert types(items, [{"role": "user", "content": [PICTURE]}]) == ["picture"]
    assert types(items.replace("image/*", "video/*"), [{"role": "user", "content": [PICTURE]}]) == [
        "image"
    ]


def test_types_are_tried_in_the_order_written() -> None:
    first = "{a: {match: {type: user_message}}, b: {match: {type: user_message, text: "
    assert types(f"{first}{{contains: x}}}}}}}}", [user("x")]) == ["a"]


WEB = """\
    min_chars: 1000
    items:
      tool_result: {offload: true, keep_recent: 9}
      web_page:
        match: {type: tool_result, tool: ["web_*", fetch]}
        min_chars: 50
        keep_recent: 1
        placeholder: "[{item_type} at {path}]"
    store: {sync: never}
    steps: [{name: s, do: offload, select: {types: [SELECTED]}}]
    """


def conversation() -> list[Message]:
    messages = [user()]
    for i, tool in enumerate(["web_get", "fetch", "Bash", "web_get"]):
        messages += [calls((f"c{i}", tool)), results((f"c{i}", "x" * 999))]
    return messages


@pytest.mark.parametrize("selected", ["web_page", "tool_result"])
def test_it_has_its_own_rules_and_is_selected_where_its_parent_is(
    selected: str, tmp_path: Path
) -> None:
    session = Session(policy(WEB.replace("SELECTED", selected)), root=tmp_path, session_id="s")
    result = session.apply(conversation())
    path = tmp_path / "web_page" / "web_get" / "c0.md"
    assert result.files == (str(path),)
    assert result.messages[2]["content"][0]["content"] == f"[web_page at {path}]"
    assert path.read_text(encoding="utf-8") == "x" * 999


def test_it_inherits_unset_keys() -> None:
    text = """\
        items:
          tool_result: {offload: true, min_chars: 5}
          mine: {match: {type: tool_result}, keep_recent: 0}
        steps: [{name: s, do: offload}]
        """
    compiled = policy(text)
    [step] = compiled.steps("model_call")
    found = compiled.treatment(step, "mine", None)
    assert found is not None
    assert found.refusal is None
    assert found.threshold == (5, "chars", ("items", "tool_result", "min_chars"))
    assert found.keep_recent_rule == ("items", "mine", "keep_recent")


def test_its_own_offload_setting_overrides_its_parents() -> None:
    text = """\
        items:
          tool_result: {offload: false}
          mine: {match: {type: tool_result}, offload: true}
        steps: [{name: s, do: offload, select: {types: ["*"]}}, {name: t, do: offload}]
        """
    compiled = policy(text)
    every, default = compiled.steps("model_call")
    mine, parent = (compiled.treatment(every, each, None) for each in ("mine", "tool_result"))
    assert mine is not None
    assert mine.refusal is None
    assert parent is not None
    assert parent.refusal == (Reason("offload_off"), ("items", "tool_result", "offload"))
    assert compiled.selects(default, "mine")
    assert not compiled.selects(default, "tool_result")
