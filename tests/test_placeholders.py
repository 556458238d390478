"""Placeholders that show the beginning and the end of what they stand for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import FileLines
from policyctx.turns.result import Result
from tests.conversations import calls, results, session_of
from tests.policies import policy

LOG = "".join(f"line {i}\n" for i in range(1, 101))


def applied(placeholder: str, content: object, root: Path, *, more: str = "") -> Result:
    text = (
        f"placeholder: {placeholder}\n"
        "model: {tokenizer: approximate}\n"
        "items: {tool_result: {offload: true}}\n"
        f"steps: [{{name: s, do: offload{more}}}]\n"
    )
    return Session(policy(text), root=root, session_id="s").apply(session_of(content))


def placeholder_in(result: Result) -> str:
    found: str = result.messages[2]["content"][0]["content"]
    return found


BOTH_ENDS = """
  text: |-
    [{tool_name}: {lines} lines]
    {head}
    [… {omitted_lines} lines, {omitted_chars} characters …]
    {tail}
    [all in {relative_path}]
  head: {lines: 2}
  tail: {lines: 1}
  line_numbers: true"""


def test_a_placeholder_shows_both_ends_of_the_saved_text(tmp_path: Path) -> None:
    result = applied(BOTH_ENDS, LOG, tmp_path)
    assert placeholder_in(result).split("\n") == [
        "[Bash: 100 lines]",
        "  1\tline 1",
        "  2\tline 2",
        f"[… 97 lines, {len(LOG) - 23} characters …]",
        "100\tline 100",
        "[all in ./tool_result/Bash/c0.md]",
    ]
    assert (tmp_path / "tool_result/Bash/c0.md").read_text(encoding="utf-8") == LOG


def test_the_excerpt_stands_beside_the_name_that_the_file_really_got(tmp_path: Path) -> None:
    taken = tmp_path / "tool_result/Bash/c0.md"
    taken.parent.mkdir(parents=True)
    taken.write_text("another's", encoding="utf-8")
    lines = placeholder_in(applied(BOTH_ENDS, LOG, tmp_path)).split("\n")
    assert (lines[1], lines[-1]) == ("  1\tline 1", "[all in ./tool_result/Bash/c0-1.md]")


@pytest.mark.parametrize("content", ["a\nb", "a\nb\n", "a\r\nb\r\n"])
def test_the_newline_at_the_end_is_left_to_the_wording(content: str, tmp_path: Path) -> None:
    wording = '{text: "<{head}|{tail}|{omitted_chars}>", head: {lines: 1}, tail: {lines: 1}}'
    result = applied(wording, content, tmp_path, more=", must_shrink: false")
    assert placeholder_in(result) == "<a|b|0>"


@pytest.mark.parametrize(
    ("extents", "shown"),
    [
        ("head: {chars: 2}, tail: {chars: 3}", "<a\n|\nc\n|2>"),
        ("head: {chars: 2}, tail: {lines: 1}", "<a\n|c|3>"),
        ("head: {lines: 1}, tail: {chars: 9}", "<a|bb\nc\n|0>"),
        ("head: {tokens: 99}, tail: {lines: 1}", "<a\nbb\nc\n||0>"),
    ],
)
def test_characters_and_tokens_keep_a_newline_at_the_end(
    extents: str, shown: str, tmp_path: Path
) -> None:
    wording = f'{{text: "<{{head}}|{{tail}}|{{omitted_chars}}>", {extents}}}'
    result = applied(wording, "a\nbb\nc\n", tmp_path, more=", must_shrink: false")
    assert placeholder_in(result) == shown


GAP = 'text: "{head}{gap}{tail}", gap: "\\n[{omitted_lines} of {lines}, {omitted_chars}]\\n"'


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("a\nb\nc\nd\ne\n", "a\nb\n[2 of 5, 4]\ne"),
        ("a\r\nb\r\nc\r\n", "a\r\nb\r\nc"),
        ("a\nb\nc", "a\nb\nc"),
        ("a\nb\n", "a\nb"),
        ("a", "a"),
    ],
)
def test_a_gap_is_shown_only_where_something_is_left_out(
    content: str, shown: str, tmp_path: Path
) -> None:
    wording = f"{{{GAP}, head: {{lines: 2}}, tail: {{lines: 1}}}}"
    result = applied(wording, content, tmp_path, more=", must_shrink: false")
    assert placeholder_in(result) == shown


def test_a_gap_stands_for_all_after_the_head_where_there_is_no_tail(tmp_path: Path) -> None:
    wording = '{text: "{head}{gap}", gap: "… {omitted_chars} more", head: {chars: 2}}'
    for content, shown in (("abcdef", "ab… 4 more"), ("ab", "ab")):
        result = applied(wording, content, tmp_path, more=", must_shrink: false")
        assert placeholder_in(result) == shown


def test_the_path_in_the_store_has_no_dot(tmp_path: Path) -> None:
    result = applied('"[{store_path}]"', LOG, tmp_path)
    assert placeholder_in(result) == "[tool_result/Bash/c0.md]"


def test_tokens_are_those_of_the_policys_tokenizer(tmp_path: Path) -> None:
    result = applied('{text: "{head}", head: {tokens: 5}}', "读" * 100, tmp_path)
    assert placeholder_in(result) == "读" * 20


def test_a_list_of_blocks_is_shown_by_its_texts(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "写" * 100}]
    result = applied(
        '{text: "{head}…{tail}", head: {chars: 8}, tail: {chars: 4}}', content, tmp_path
    )
    assert placeholder_in(result) == f"{'写' * 8}…{'写' * 4}"


def test_a_text_that_would_be_shown_whole_is_kept(tmp_path: Path) -> None:
    result = applied("{text: '{head} in {path}', head: {lines: 500}}", LOG, tmp_path)
    assert placeholder_in(result) == LOG


SOURCE = '"[{source_path}: {source_first_line}-{source_last_line} | {relative_path}]"'


def of_arrival(root: Path) -> Session:
    text = (
        f"placeholder: {SOURCE}\n"
        "items: {tool_result: {offload: true}}\n"
        "steps: [{name: s, on: arrival, do: offload, select: {min_chars: 0}}]\n"
    )
    return Session(policy(text), root=root, session_id="s")


def test_a_placeholder_names_the_file_that_was_read_and_its_lines(tmp_path: Path) -> None:
    sources = {"c0": FileLines("/src/big.py", 500, 799)}
    call, message = calls(("c0", "Read")), results(("c0", LOG))
    result = of_arrival(tmp_path).on_tool_result(message, call=call, sources=sources)
    [content] = result.messages[1]["content"]
    assert content["content"] == "[/src/big.py: 500-799 | ./tool_result/Read/c0.md]"
    assert (tmp_path / "tool_result/Read/c0.md").read_text(encoding="utf-8") == LOG


def test_without_a_reported_source_a_placeholder_names_the_saved_file(tmp_path: Path) -> None:
    call, message = calls(("c0", "Bash")), results(("c0", LOG))
    result = of_arrival(tmp_path).on_tool_result(message, call=call)
    [content] = result.messages[1]["content"]
    saved = tmp_path / "tool_result/Bash/c0.md"
    assert content["content"] == f"[{saved}: 1-100 | ./tool_result/Bash/c0.md]"


OUTLINED = '{text: "{outline}\\nWhole: {path}", outline: {tokens: 60}}'
BUILD = "\n".join([*(f"compiling part {i}" for i in range(90)), "error: no disk", "1 error"])


@pytest.mark.parametrize("again", [False, True])
def test_an_outline_stays_the_same_in_later_turns_and_restarted_sessions(
    tmp_path: Path, again: bool
) -> None:
    result = applied(OUTLINED, BUILD, tmp_path)
    shown = placeholder_in(result)
    assert shown.split("\n")[-3:-1] == ["91 error: no disk", "92 1 error"]
    path = tmp_path / "tool_result/Bash/c0.md"
    assert shown.endswith(f"\nWhole: {path}")
    assert path.read_text(encoding="utf-8") == BUILD
    changed = '{text: "{outline}\\nWhole: {path}", outline: {tokens: 20}}' if again else OUTLINED
    assert placeholder_in(applied(changed, BUILD, tmp_path)) == shown


@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_an_outline_stands_in_the_messages_of_other_apis(tmp_path: Path, shape: str) -> None:
    call: list[dict[str, object]]
    if shape == "chat":
        asked = {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        call = [{"role": "assistant", "tool_calls": [asked]}]
        call += [{"role": "tool", "tool_call_id": "a", "content": BUILD}]
    else:
        call = [{"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"}]
        call += [{"type": "function_call_output", "call_id": "a", "output": BUILD}]
    under = policy(
        f"placeholder: {OUTLINED}\nitems: {{tool_result: {{offload: true}}}}\n"
        "steps: [{name: s, do: offload}]\n"
    )
    messages = [{"role": "user", "content": "go"}, *call]
    result = Session(under, root=tmp_path).apply(messages)
    assert "91 error: no disk" in str(result.messages[-1])
    asked_later = asyncio.run(Session(under, root=tmp_path / "b").apply_async(messages))
    assert "91 error: no disk" in str(asked_later.messages[-1])
