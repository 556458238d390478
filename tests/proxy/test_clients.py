"""Placeholders for clients on another machine, which does not have the proxy's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.errors import InputError
from policyctx.integrations.tools import ReadBackTools
from policyctx.planning.compiled import OffloadPolicy
from policyctx.proxy.clients import Client, for_elsewhere, is_elsewhere, is_loopback
from policyctx.proxy.policies import Policies
from policyctx.session import Session
from tests.conversations import session_of
from tests.policies import HEAD, policy
from tests.proxy.test_turning import texts_of

OLD = """\
min_tokens: 20
items: {tool_result: {offload: true, keep_recent: 1}}
"""
STEP = "steps: [{name: retire, do: offload}]\n"
WITH_TOOL = OLD + "tools: {read_offloaded: {}}\n"
TEXTS = [f"line {i}\n" * 40 for i in range(3)]


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - a value
        ("::", False),
        ("192.168.1.2", False),
        ("example.org", False),
    ],
)
def test_the_loopback_addresses_are_this_machine(host: str, *, is_own: bool) -> None:
    assert is_loopback(host) is is_own
    assert is_elsewhere(None, host) is not is_own


@pytest.mark.parametrize(("client", "elsewhere"), [("same", False), ("other", True)])
def test_the_setting_comes_before_the_address(client: Client, *, elsewhere: bool) -> None:
    for host in ("127.0.0.1", "192.168.1.2"):
        assert is_elsewhere(client, host) is elsewhere


@pytest.mark.parametrize(
    "wording",
    [
        "",
        "placeholder: 'see {path}'\n",
        "placeholder: 'see {cwd_path}, by read_offloaded'\n",
        "placeholder: {text: 'kept:{head} rest: {path}', head: {lines: 1}}\n",
        "placeholder: 'in {path} . {how_to_read}'\n",
        "placeholder: 'in {path} , {{how_to_read}}'\n",
    ],
)
def test_a_placeholder_for_another_machine_names_the_tool_and_no_folder(
    tmp_path: Path, wording: str
) -> None:
    used = for_elsewhere(policy(WITH_TOOL + wording + STEP))
    session = Session(used, root=tmp_path, session_id="s")
    [placeholder, _, last] = texts_of(list(session.apply(session_of(*TEXTS)).messages))
    assert str(tmp_path) not in placeholder
    assert placeholder.count("read_offloaded") == 1
    assert last == TEXTS[2]
    path = next(word for word in placeholder.split() if word.startswith("./")).strip(",")
    assert TEXTS[0] in ReadBackTools(session).read_offloaded(path)


@pytest.mark.parametrize(
    "text",
    [
        OLD + STEP,
        OLD + "tools: {Read: {placeholder: 'in {path}'}}\n" + STEP,
        OLD + "steps: [{name: retire, do: offload, placeholder: 'see {cwd_path}'}]\n",
        OLD + "placeholder: {text: 'at {relative_path}'}\n" + STEP,
        OLD + "tools: {Read: {reads_file: path}}\n" + STEP,
    ],
)
def test_a_placeholder_with_a_path_and_no_tool_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="policyctx mcp"):
        for_elsewhere(policy(text))


@pytest.mark.parametrize(
    "text",
    [
        OLD + "placeholder: 'gone: {tokens} tokens'\n" + STEP,
        OLD + "placeholder: 'use mcp__ctx__read_offloaded with {item_id}'\n" + STEP,
        OLD + "steps: [{name: forget, do: clear}]\n",
    ],
)
def test_a_policy_that_needs_no_file_of_this_machine_stays_as_it_is(text: str) -> None:
    given = policy(text)
    assert for_elsewhere(given) is given


@pytest.mark.parametrize("name", ["claude-code", "coding-agent"])
def test_a_preset_can_be_read_over_mcp_as_it_is(name: str) -> None:
    wording = for_elsewhere(OffloadPolicy.load(name), over_mcp=True).policy.placeholder.text
    assert wording.count("read_offloaded") == 1
    assert "{session_id}/{store_path}" in wording


def test_the_sentence_of_the_proxy_takes_the_place_of_the_field() -> None:
    wording = for_elsewhere(OffloadPolicy.load("coding-agent"), over_mcp=True).policy.placeholder
    [_, path, sentence] = wording.text.splitlines()
    assert path == "Path: {session_id}/{store_path}"
    assert sentence == "Use read_offloaded tool with this path to view it."


def test_a_policy_without_state_cannot_be_read_over_mcp() -> None:
    with pytest.raises(InputError, match="state: none"):
        for_elsewhere(OffloadPolicy.load("context-offload"), over_mcp=True)


def test_policies_for_another_machine_are_refused_and_reworded(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(HEAD + OLD + STEP)
    with pytest.raises(InputError):
        Policies(path, elsewhere=True)
    agents = tmp_path / "policyctx.yaml"
    agents.write_text("apiVersion: policyctx/v1\nagents: {codex: ./p.yaml}\n")
    fine = tmp_path / "fine.yaml"
    fine.write_text(HEAD + WITH_TOOL + STEP)
    with pytest.raises(InputError):
        Policies(fine, agents, elsewhere=True)
    policies = Policies(fine, elsewhere=True)
    before = policies.policy_of("")
    assert "{relative_path}" in before.policy.placeholder.text
    assert policies.policy_of("") is before
    fine.write_text(HEAD + OLD + STEP)
    policies.reload()
    assert policies.policy_of("") is before


@pytest.mark.parametrize("name", ["claude-code", "coding-agent", "context-offload"])
def test_a_preset_is_refused_for_another_machine_until_it_is_extended_by_the_tool(
    name: str,
) -> None:
    with pytest.raises(InputError, match=name):
        for_elsewhere(OffloadPolicy.load(name))
    extended = policy(f"extends: {name}\n" + "tools: {read_offloaded: {}}\n")
    wording = for_elsewhere(extended).policy.placeholder.text
    assert "read_offloaded" in wording
    assert "{path}" not in wording
