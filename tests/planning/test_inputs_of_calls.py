"""The inputs of calls: offloaded by themselves, or along with the results."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from policyctx import OffloadPolicy, Session
from policyctx.turns.result import Result
from tests.conversations import Message, call, chat_calls, chat_result, results, user
from tests.planning.plans import outcomes, planned
from tests.policies import policy

LARGE = "x" * 400
ITEMS = """\
items: {tool_result: {offload: true}, tool_call: {offload: true}}
placeholder: '[the input is gone]'"""
CALLS = f"{ITEMS}\nsteps: [{{name: s, do: offload, select: {{types: [tool_call]}}}}]"


def along(with_input: str, *, do: str = "offload", more: str = "", items: str = "") -> str:
    return f"""\
        items: {{tool_result: {{offload: true}}{items}}}
        {more}
        steps: [{{name: s, do: {do}, select: {{types: [tool_result], with_input: {with_input}}}}}]
        """


def applied(text: str, messages: list[Message], root: Path) -> Result:
    read = policy(text).policy
    store = read.store.model_copy(update={"sync": "never"})
    compiled = OffloadPolicy(read.model_copy(update={"store": store}))
    return Session(compiled, root=root, session_id="s").apply(messages)


def input_of(result: Result, message: int = 1) -> Any:
    found = result.messages[message]
    if "tool_calls" in found:
        return json.loads(found["tool_calls"][0]["function"]["arguments"])
    return found["content"][0]["input"]


def pair(arguments: Any, content: str = LARGE, *, tool: str = "Write") -> list[Message]:
    return [user(), call("a", tool, arguments), results(("a", content))]


def test_the_long_strings_of_an_input_are_replaced_and_it_stays_an_object(tmp_path: Path) -> None:
    arguments = {"path": "a.py", "content": LARGE, "mode": 7, "force": True, "none": None}
    result = applied(CALLS, pair(arguments, "ok"), tmp_path)
    assert input_of(result) == {**arguments, "content": "[the input is gone]"}
    [path] = result.files
    assert json.loads((tmp_path / path).read_text(encoding="utf-8")) == arguments


def test_strings_at_any_depth_are_replaced_and_keys_stay(tmp_path: Path) -> None:
    arguments = {"edits": [{"old": LARGE, LARGE: "new"}, [LARGE, 1]], "读": "写" * 99}
    result = applied(CALLS, pair(arguments, "ok"), tmp_path)
    assert input_of(result) == {
        "edits": [{"old": "[the input is gone]", LARGE: "new"}, ["[the input is gone]", 1]],
        "读": "[the input is gone]",
    }


def test_strings_not_longer_than_the_placeholder_are_kept() -> None:
    assert outcomes(CALLS, pair({"path": "a.py"}))["a"] == "keep nothing_long"
    assert outcomes(CALLS, pair({}))["a"] == "keep nothing_long"
    assert outcomes(CALLS, pair({"list": [1, 2, 3] * 99}))["a"] == "keep nothing_long"


def test_arguments_that_are_a_text_stay_one(tmp_path: Path) -> None:
    arguments = '{ "path" : "a.py", "content": "' + LARGE + '"}'
    messages = [user(), chat_calls(("a", "Write", arguments)), chat_result("a", "ok")]
    result = applied(CALLS, messages, tmp_path)
    assert result.messages[1] == chat_calls(
        ("a", "Write", '{ "path" : "a.py", "content": "[the input is gone]"}')
    )
    assert (tmp_path / result.files[0]).read_text(encoding="utf-8") == arguments


@pytest.mark.parametrize("arguments", ['{"content": "' + LARGE, LARGE, f'["{LARGE}"]', ""])
def test_arguments_that_are_not_an_object_are_kept(arguments: str) -> None:
    messages = [user(), chat_calls(("a", "Write", arguments)), chat_result("a", "ok")]
    assert outcomes(CALLS, messages)["a"] == "keep nothing_long"


def test_a_call_is_measured_by_the_json_of_its_input() -> None:
    text = f"min_chars: 409\n{CALLS}"
    assert outcomes(text, pair({"x": LARGE}))["a"] == "keep below_threshold"
    assert outcomes(text, pair({"xy": LARGE}))["a"] == "offload large"


def test_a_call_without_an_answer_keeps_its_input() -> None:
    assert outcomes(CALLS, pair({"x": LARGE})[:2])["a"] == "keep answer_pending"


def test_an_input_shares_the_fate_of_its_result(tmp_path: Path) -> None:
    messages = pair({"path": "a.py", "content": LARGE})
    result = applied(along("true"), messages, tmp_path)
    placeholder = input_of(result)["content"]
    assert placeholder == f"[Content offloaded]\nPath: {tmp_path}/tool_call/Write/a.md"
    found = planned(along("true"), messages)
    assert [(d.item.kind, d.action, d.reason.code, d.rule) for d in found.new] == [
        ("tool_call", "offload", "with_result", "steps.s.select.with_input"),
        ("tool_result", "offload", "selected", "steps.s.select"),
    ]


def test_an_input_stays_where_its_result_does() -> None:
    text = along("true", more="min_chars: 100")
    assert planned(text, pair({"content": LARGE}, "small")).new == ()


@pytest.mark.parametrize(
    ("with_input", "tool", "goes"),
    [("false", "Write", False), ("[Wr*]", "Write", True), ("[Wr*]", "Edit", False),
     ("Edit", "Edit", True), ("[]", "Edit", False)],
)  # fmt: skip
def test_globs_select_the_tools(with_input: str, tool: str, goes: bool) -> None:
    found = planned(along(with_input), pair({"content": LARGE}, tool=tool))
    assert ("tool_call" in {d.item.kind for d in found.new}) == goes


def test_arguments_of_a_chat_call_share_its_fate(tmp_path: Path) -> None:
    arguments = json.dumps({"content": LARGE})
    messages = [user(), chat_calls(("a", "Write", arguments)), chat_result("a", LARGE)]
    result = applied(along("true", more="placeholder: gone"), messages, tmp_path)
    assert input_of(result) == {"content": "gone"}
    assert result.messages[2]["content"] == "gone"


def test_a_short_input_stays_when_its_result_goes() -> None:
    found = planned(along("true"), pair({"path": "a.py"}))
    assert [d.item.kind for d in found.new] == ["tool_result"]


def test_a_pinned_call_keeps_its_input() -> None:
    text = along("true", items=", tool_call: {pin: true}")
    assert [d.item.kind for d in planned(text, pair({"content": LARGE})).new] == ["tool_result"]


def test_a_call_that_may_not_be_offloaded_keeps_its_input() -> None:
    text = along("true", items=", tool_call: {offload: false}")
    assert [d.item.kind for d in planned(text, pair({"content": LARGE})).new] == ["tool_result"]


def test_a_cleared_result_takes_its_input_along_unsaved(tmp_path: Path) -> None:
    result = applied(along("true", do="clear"), pair({"content": LARGE}), tmp_path)
    assert input_of(result)["content"].startswith("[Old tool result cleared")
    assert result.files == ()
    assert [path.name for path in tmp_path.iterdir()] == [".policyctx"]


def test_an_input_that_is_out_already_stays_as_it_is() -> None:
    text = f"""\
        {ITEMS.replace(chr(10), chr(10) + "        ")}
        steps:
          - {{name: first, do: offload, select: {{types: [tool_call]}}}}
          - {{name: second, do: offload, select: {{types: [tool_result], with_input: true}}}}
        """
    found = planned(text, pair({"content": LARGE}))
    assert [(d.item.kind, d.step) for d in found.new] == [
        ("tool_call", "first"),
        ("tool_result", "second"),
    ]


def test_a_shortened_input_stays_shortened(tmp_path: Path) -> None:
    read = policy(along("true", more="store: {sync: never}"))
    session = Session(read, root=tmp_path, session_id="s")
    messages = pair({"content": LARGE})
    first = session.apply(messages)
    assert session.apply(first.messages).messages is first.messages
    assert session.apply([*messages, user()]).messages == [*first.messages, user()]
    again = session.apply([*messages, user()], changed=True)
    assert again.messages == [*first.messages, user()]
    assert again.plan.new == ()


@pytest.mark.parametrize(("longer_by", "goes"), [(1, False), (2, False), (3, True)])
def test_an_input_that_a_longer_name_of_its_file_would_not_shorten_stays(
    longer_by: int, goes: bool
) -> None:
    measured = 'min_chars: 0\n        placeholder: "[{relative_path}]"'
    size = len("[./tool_call/Write/a.md]") + longer_by
    messages = [*pair({"content": LARGE}), *pair({"content": "y" * size})]
    found = planned(along("true", more=measured), messages)
    kinds = ["tool_call", "tool_result", *["tool_call"] * goes, "tool_result"]
    assert [d.item.kind for d in found.new] == kinds
    assert all(d.placeholder is not None for d in found.new)


EMPTIED = '{tools: "*", leave: empty}'


@pytest.mark.parametrize("arguments", [{"path": "a.py"}, {"n": 1}, {"content": LARGE}])
def test_an_input_is_emptied_whatever_its_size(tmp_path: Path, arguments: Any) -> None:
    result = applied(along(EMPTIED), pair(arguments), tmp_path)
    assert input_of(result) == {}
    assert json.loads((tmp_path / result.files[0]).read_text(encoding="utf-8")) == arguments
    [decision, _] = planned(along(EMPTIED), pair(arguments)).new
    assert str(decision.reason) == "emptied_with_result: its input is emptied with its result"
    assert decision.rule == "steps.s.select.with_input"


@pytest.mark.parametrize("arguments", ["{}", "{ }", "", "[1]", "free text", '{"cut'])
def test_an_input_that_is_empty_or_no_object_stays(arguments: str) -> None:
    messages = [user(), chat_calls(("a", "Write", arguments)), chat_result("a", LARGE)]
    assert [d.item.kind for d in planned(along(EMPTIED), messages).new] == ["tool_result"]


def test_only_inputs_of_the_tools_named_are_emptied() -> None:
    text = along("{tools: [Wr*], leave: empty}")
    for tool, goes in (("Write", True), ("Edit", False)):
        found = planned(text, pair({"path": "a.py"}, tool=tool)).new
        assert ("tool_call" in {d.item.kind for d in found}) == goes


@pytest.mark.parametrize("more", [", tool_call: {pin: true}", ", tool_call: {offload: false}"])
def test_a_call_that_may_not_go_is_not_emptied(more: str) -> None:
    found = planned(along(EMPTIED, items=more), pair({"content": LARGE})).new
    assert [d.item.kind for d in found] == ["tool_result"]


def test_an_input_emptied_by_clear_is_not_saved_and_stays_empty(tmp_path: Path) -> None:
    read = policy(along(EMPTIED, do="clear", more="store: {sync: never}"))
    messages = pair({"path": "a.py"})
    first = Session(read, root=tmp_path, session_id="s").apply(messages)
    assert (input_of(first), first.files) == ({}, ())
    again = Session(read, root=tmp_path, session_id="s").apply([*messages, user()])
    assert again.messages == [*first.messages, user()]
    assert again.plan.new == ()


def test_a_placeholder_in_an_input_tells_of_the_string_that_it_replaces(tmp_path: Path) -> None:
    text = CALLS.replace(
        "'[the input is gone]'",
        '{text: "{head}…{tail} {chars}/{lines}/{omitted_chars}", head: {chars: 3}, '
        "tail: {chars: 2}}",
    )
    arguments = {"old": "abc" + LARGE, "new": "1\n2\n" + LARGE + "xyz", "path": "a.py"}
    result = applied(text, pair(arguments, "ok"), tmp_path)
    assert input_of(result) == {
        "old": "abc…xx 403/1/398",
        "new": "1\n2…yz 407/3/402",
        "path": "a.py",
    }


def test_the_hash_in_an_input_is_that_of_its_file(tmp_path: Path) -> None:
    text = CALLS.replace("'[the input is gone]'", "'[{sha256} {chars}]'")
    result = applied(text, pair({"content": LARGE}, "ok"), tmp_path)
    saved = (tmp_path / result.files[0]).read_bytes()
    assert input_of(result)["content"] == f"[{hashlib.sha256(saved).hexdigest()} 400]"


def test_a_placeholder_that_tells_of_its_string_is_known_again_without_a_ledger() -> None:
    text = CALLS.replace("'[the input is gone]'", "'[{chars} characters in {path}]'")
    messages = pair({"content": LARGE}, "ok")
    [decision] = planned(text, messages).new
    assert decision.placeholder is not None
    # Once more, 400 would become a shorter number.
    assert outcomes(text, pair(json.loads(decision.placeholder), "ok"))["a"] == "keep nothing_long"
