from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from policyctx.errors import PolicyError, UnknownPolicyError
from policyctx.policy.loading import load_policy, parsed_policy
from policyctx.policy.sources import MAX_BYTES, Source, preset_names
from tests.policies import HEAD

if TYPE_CHECKING:
    from pathlib import Path

TYPES = (
    "system_prompt, user_message, assistant_message, thinking, tool_call, tool_result, image,"
    " document"
)


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        parsed_policy(Source("p.yaml", HEAD + dedent(text)))
    return list(raised.value.problems)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stor: {}", "3:1: unknown key 'stor'; did you mean 'store'?"),
        ("xyzzy: 1", "3:1: unknown key 'xyzzy'"),
        ("min_tokens: many",
         "3:13: expected a whole number of tokens, 0 or more, or a share such as 10%, got 'many'"),
        ("min_tokens: 120%",
         "3:13: expected a whole number of tokens, 0 or more, or a share such as 10%, got '120%'"),
        ("min_tokens: 1.5",
         "3:13: expected a whole number of tokens, 0 or more, or a share such as 10%, got 1.5"),
        ("min_tokens: true",
         "3:13: expected a whole number of tokens, 0 or more, or a share such as 10%, got true"),
        ("min_chars: -1", "3:12: input should be greater than or equal to 0, got -1"),
        ("min_chars: '5'", "3:12: expected a whole number, got '5'"),
        ("items: {tool_reslt: {offload: true}}",
         f"3:9: 'tool_reslt' is none of {TYPES}; did you mean 'tool_result'?"),
        ("items: {tool_result: {offlod: true}}",
         "3:23: unknown key 'offlod'; did you mean 'offload'?"),
        ("items: {tool_result: {offload: yes}}", "3:32: expected true or false, got 'yes'"),
        ("items: [tool_result]", "3:8: expected a map, got a list"),
        ("tools: {Bash: {keep_recent: x}}", "3:29: expected a number of items or a map, got 'x'"),
        ("tools: {Bash: {keep_recent: {items: 1, per: al}}}",
         "3:45: 'al' is none of tool, type, all; did you mean 'all'?"),
        ("tools: {Bash: {keep_recent: -1}}",
         "3:29: input should be greater than or equal to 0, got -1"),
        ("tools: {'mcp__*': {pinn: true}}", "3:20: unknown key 'pinn'; did you mean 'pin'?"),
        ("placeholder: 'Path: {pth}'",
         "3:14: unknown field '{pth}'; the fields are chars, item_id, item_type, lines, path,"
         " relative_path, session_id, sha256, tokens, tool_name, tool_use_id"),
        ("placeholder: '{path.__class__}'", "3:14: unknown field '{path.__class__}'; the"),
        ("placeholder: 'a } b'", "3:14: a lone '}': write it twice for a literal brace"),
        ("store: {path: '../{item_id}'}",
         "3:15: expected a path below the root, without empty parts or dots,"
         " got '../{item_id}'"),
        ("store: {path: '/etc/{item_id}'}", "3:15: expected a path below the root"),
        ("store: {path: '{path}.md'}", "3:15: unknown field '{path}'"),
        ("store: {on_conflict: sufix}",
         "3:22: 'sufix' is none of suffix, overwrite, error; did you mean 'suffix'?"),
        ("store: {mode: '0444'}", '3:15: expected a quoted octal mode such as "0600"'),
        ("store: {root: '{session}'}", "3:15: unknown field '{session}'"),
        ("model: {tokenizer: gpt}", "3:20: 'gpt' is none of o200k_base, cl100k_base, approximate"),
        ("model: {context_window: 0}", "3:25: input should be greater than 0, got 0"),
        ("steps: [{name: a}]", "3:9: the key 'do' is missing"),
        ("steps: [{do: offload}]", "3:9: the key 'name' is missing"),
        ("steps: [{name: a, do: offlaod}]",
         "3:23: 'offlaod' is none of offload; did you mean 'offload'?"),
        ("steps: [{name: A b, do: offload}]",
         "3:16: string should match pattern '^[a-z0-9-]+$', got 'A b'"),
        ("steps: [{name: a, do: offload, select: {types: [tool_resul]}}]",
         f"3:49: 'tool_resul' is none of {TYPES}, *; did you mean 'tool_result'?"),
        ("steps: [{name: a, do: offload, select: {tools: Bash}}]",
         "3:48: expected a list, got 'Bash'"),
        ("steps: [{name: a, do: offload, on: arrival, select: {keep_recent: 2}}]",
         "3:9: keep_recent has no meaning on arrival"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_the_nearest_right_word(
    text: str, expected: str
) -> None:
    found = problems(text)
    assert len(found) == 1
    assert found[0].startswith(f"p.yaml:{expected}")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
        steps:
          - name: a
            do: oflload
            select: {tols: [x]}
        stor: 1
        min_chars: x
        """
    places = [problem.split(": ", maxsplit=1)[0] for problem in problems(text)]
    assert places == ["p.yaml:5:9", "p.yaml:6:14", "p.yaml:7:1", "p.yaml:8:12"]


def test_min_tokens_and_min_chars_exclude_each_other() -> None:
    assert "min_tokens and min_chars exclude each other" in problems(
        "min_tokens: 1\nmin_chars: 1"
    )[0]  # fmt: skip


def test_two_steps_of_one_name_are_refused() -> None:
    found = problems("steps: [{name: a, do: offload}, {name: a, do: offload}]")
    assert found == ["p.yaml:1:1: two steps are called 'a'"]


@pytest.mark.parametrize("text", ["", "- a", "just words", "null"])
def test_what_is_no_map_is_no_policy(text: str) -> None:
    with pytest.raises(PolicyError, match=r"p\.yaml:1:1: a policy is a map of keys"):
        parsed_policy(Source("p.yaml", text))


def test_name_and_version_alone_are_a_policy_that_does_nothing() -> None:
    policy = parsed_policy(Source("p.yaml", HEAD))
    assert policy.steps == ()


def test_an_unknown_policy_names_the_presets_and_the_nearest() -> None:
    with pytest.raises(UnknownPolicyError) as raised:
        load_policy("coding-agnet")
    assert raised.value.nearest == "coding-agent"
    assert raised.value.presets == preset_names()
    assert "Did you mean 'coding-agent'? The presets are coding-agent, context-offload" in str(
        raised.value
    )


def test_nothing_likely_is_suggested_for_what_is_like_nothing() -> None:
    with pytest.raises(UnknownPolicyError) as raised:
        load_policy("zzz")
    assert raised.value.nearest is None


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_is_no_path_is_an_unknown_policy(name: str) -> None:
    with pytest.raises(UnknownPolicyError):
        load_policy(name)


def test_a_policy_is_read_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD, encoding="utf-8-sig")
    assert load_policy(path).name == "test"


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path)


def test_a_policy_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("#" * (MAX_BYTES + 1), encoding="utf-8")
    with pytest.raises(PolicyError, match="larger than 64 KiB"):
        load_policy(path)


def test_a_policy_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: caf\xe9")
    with pytest.raises(PolicyError, match="not UTF-8: byte 9"):
        load_policy(path)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_named_as_its_file_and_says_what_it_is_for(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert policy.description
