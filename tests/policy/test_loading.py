from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.errors import PolicyError, UnknownPolicyError
from policyctx.policy.loading import load_policy, parsed_policy, resolved
from policyctx.policy.sources import MAX_BYTES, PolicySource, preset_names
from policyctx.policy.writing import resolved_yaml
from tests.policies import HEAD


@pytest.mark.parametrize("text", ["", "- a", "just words", "null"])
def test_a_document_that_is_not_a_map_is_rejected(text: str) -> None:
    with pytest.raises(PolicyError, match=r"p\.yaml:1:1: PC103: a policy is a map of keys"):
        parsed_policy(PolicySource("p.yaml", text))


def test_name_and_version_alone_are_a_policy_that_does_nothing() -> None:
    policy = parsed_policy(PolicySource("p.yaml", HEAD))
    assert policy.steps == ()


def test_an_unknown_policy_error_lists_the_presets_and_a_suggestion() -> None:
    with pytest.raises(UnknownPolicyError) as raised:
        load_policy("coding-agnet")
    assert raised.value.nearest == "coding-agent"
    assert raised.value.presets == preset_names()
    assert str(raised.value) == (
        "coding-agnet: PC001: no such policy: it is neither a file nor a preset;"
        f" did you mean 'coding-agent'? The presets are {', '.join(preset_names())}"
    )


def test_a_name_unlike_all_others_gets_no_suggestion() -> None:
    with pytest.raises(UnknownPolicyError) as raised:
        load_policy("zzz")
    assert raised.value.nearest is None


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_is_not_a_path_is_an_unknown_policy(name: str) -> None:
    with pytest.raises(UnknownPolicyError):
        load_policy(name)


def test_a_policy_is_read_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD, encoding="utf-8-sig")
    assert load_policy(path).name == "test"


def test_a_folder_is_rejected_as_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="PC001: is a folder"):
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
def test_every_preset_has_the_name_of_its_file_and_a_description(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert policy.description


@pytest.mark.parametrize("blanks", [" ", "\t", "\r\n", "\u00a0"])
def test_blanks_around_a_variable_do_not_count(blanks: str) -> None:
    text = f"""{HEAD}
min_tokens: "${{COUNT}}"
description: "${{TEXT}}"
items: {{tool_result: {{offload: "${{FLAG}}"}}}}
model: {{token_scale: "${{SCALE}}"}}
store: {{retention: {{max_age: "${{AGE}}", max_bytes: "${{SIZE}}"}}, mode: "${{MODE}}"}}
steps: [{{name: s, do: offload, when: {{tokens: {{at_least: "${{SHARE}}"}}}}}}]
"""
    held = {
        "COUNT": "12", "TEXT": "a note", "FLAG": "true", "SCALE": "1.5", "AGE": "30d",
        "SIZE": "5GB", "MODE": "0640", "SHARE": "80%",
    }  # fmt: skip
    padded = {name: f"{blanks}{value}{blanks}" for name, value in held.items()}
    source = PolicySource("p.yaml", text)
    found = parsed_policy(source, variables=padded)
    assert found == parsed_policy(source, variables=held)
    assert (found.min_tokens, found.description, found.model.token_scale) == (12, "a note", 1.5)


def test_a_variable_of_blanks_counts_as_unset() -> None:
    source = PolicySource("p.yaml", f'{HEAD}description: "${{WHAT:-nothing}}"\n')
    assert parsed_policy(source, variables={"WHAT": " \t "}).description == "nothing"


def test_a_variable_is_read_from_the_environment_and_typed() -> None:
    text = f'{HEAD}min_chars: ${{SIZE}}\nstore: {{root: "${{ROOT:-/tmp/x}}"}}\n'
    policy = parsed_policy(PolicySource("p.yaml", text), variables={"SIZE": "12"})
    assert (policy.min_chars, policy.store.root) == (12, "/tmp/x")  # noqa: S108 - only a text


def test_an_empty_variable_counts_as_unset() -> None:
    source = PolicySource("p.yaml", HEAD + 'description: "${WHAT:-nothing}"')
    assert parsed_policy(source, variables={"WHAT": ""}).description == "nothing"


def test_a_number_in_a_variable_is_a_text_where_a_text_is_wanted() -> None:
    source = PolicySource("p.yaml", HEAD + 'description: "${WHAT}"')
    assert parsed_policy(source, variables={"WHAT": "123"}).description == "123"


def test_a_variable_inside_a_longer_scalar_is_not_replaced() -> None:
    source = PolicySource("p.yaml", HEAD + "description: a ${WHAT}")
    assert parsed_policy(source, variables={"WHAT": "x"}).description == "a ${WHAT}"


def test_a_word_in_a_variable_is_a_text_wherever_a_text_is_wanted() -> None:
    text = 'store: {mode: "${M:-0600}"}\nplaceholder: "${P:-5}"\ndescription: "${D:-true}"\n'
    source = PolicySource("p.yaml", HEAD + text)
    policy = parsed_policy(source, variables={})
    found = (policy.store.mode, policy.placeholder.text, policy.description)
    assert found == ("0600", "5", "true")
    shown = PolicySource("shown.yaml", resolved_yaml(resolved(source, variables={})))
    assert parsed_policy(shown, variables={}) == policy


def test_tools_may_have_the_names_of_keys_that_are_still_to_come() -> None:
    text = "tools: {fs.reads_file: {pin: true}, placeholder.tail: {pin: true}}"
    assert len(parsed_policy(PolicySource("p.yaml", HEAD + text)).tools) == 2


@pytest.mark.parametrize("name", ["~no-such-user/x", "x" * 300, "\ud800"])
def test_a_name_that_no_file_can_have_is_an_unknown_policy(name: str) -> None:
    with pytest.raises(UnknownPolicyError):
        load_policy(name)
