from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from tests.conversations import picture, session_of, user
from tests.planning.plans import placeholders, planned
from tests.policies import policy

LARGE = "x" * 400


def clearing(more: str = "", *, of_step: str = "", items: str = "{offload: true}") -> str:
    return f"""\
        {more}
        items: {{tool_result: {items}}}
        steps: [{{name: s, do: clear, select: {{types: [tool_result]}}{of_step}}}]
        """


def test_the_default_placeholder_says_that_the_call_can_be_repeated() -> None:
    [text] = placeholders(planned(clearing(), session_of(LARGE)))
    assert text == "[Old tool result cleared; make the call again if you need it]"


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        (clearing("placeholder: of the top"), "of the top"),
        (clearing(items="{offload: true, placeholder: of the type}"), "of the type"),
        (clearing("tools: {Bash: {placeholder: of the tool}}"), "of the tool"),
        (clearing(of_step=", placeholder: 'of the step, {chars}'"), "of the step, 400"),
        (
            clearing("placeholder: of the top", of_step=", placeholder: of the step"),
            "of the step",
        ),
    ],
)
def test_a_given_placeholder_is_used(text: str, wording: str) -> None:
    assert placeholders(planned(text, session_of(LARGE))) == [wording]


def test_nothing_is_saved(tmp_path: Path) -> None:
    compiled = policy(clearing())
    session = Session(compiled, root=tmp_path / "root", session_id="s")
    result = session.apply(session_of(LARGE))
    [decision] = result.plan.new
    assert (decision.action, decision.file, decision.saves) == ("clear", None, False)
    assert (result.files, result.offloaded_count, result.freed_chars) == ((), 0, 0)
    assert [path.name for path in (tmp_path / "root").iterdir()] == [".policyctx"]
    assert result.messages[2]["content"][0]["content"].startswith("[Old tool result cleared")


def test_an_item_with_offload_off_is_not_cleared() -> None:
    [decision] = planned(clearing(items="{offload: false}"), session_of(LARGE)).decisions
    assert (decision.action, decision.reason.code) == ("keep", "offload_off")


def test_an_already_replaced_item_is_skipped() -> None:
    text = """\
        items: {tool_result: {offload: true}}
        placeholder: gone
        steps:
          - {name: first, do: offload, select: {types: [tool_result]}}
          - {name: second, do: clear, select: {types: [tool_result]}}
          - {name: third, do: offload, select: {types: [tool_result]}}
        """
    found = planned(text, session_of(LARGE))
    assert [(d.step, d.action) for d in found.new] == [("first", "offload")]
    assert [v.reason.code for v in found.verdicts(2)] == ["selected", "decided", "decided"]


def test_a_cleared_item_stays_cleared(tmp_path: Path) -> None:
    session = Session(policy(clearing()), root=tmp_path, session_id="s")
    messages = session_of(LARGE)
    first = session.apply(messages)
    assert session.apply(first.messages).messages is first.messages
    again = session.apply([*messages, user()])
    assert again.messages == [*first.messages, user()]
    assert again.plan.new == ()


def test_an_image_is_cleared_out_of_its_result(tmp_path: Path) -> None:
    text = """\
        items: {image: {offload: true}}
        placeholder: an image was here
        steps: [{name: s, do: clear, select: {types: [image]}}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    words = {"type": "text", "text": "seen"}
    result = session.apply(session_of([words, picture(LARGE)]))
    assert result.messages[2]["content"][0]["content"] == [
        words,
        {"type": "text", "text": "an image was here"},
    ]
