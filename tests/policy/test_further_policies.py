"""The policies that ship beside the presets, by `FOLDER/NAME`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from policyctx.errors import UnknownPolicyError
from policyctx.policy.findings import findings
from policyctx.policy.loading import load_policy, resolved
from policyctx.policy.models import Policy
from policyctx.policy.sources import (
    PolicySource,
    fragment_names,
    further_names,
    is_shipped,
    policy_source,
    preset_names,
)
from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.peers.options import on_the_page

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
# What the other library clears, though no call of a tool brings it back.
LOSES = "PC306"


def test_a_name_has_its_folder_and_is_neither_preset_nor_fragment() -> None:
    names = set(further_names())
    assert names
    assert all(is_shipped(name) and name.count("/") == 1 for name in names)
    assert not names & {*preset_names(), *fragment_names()}
    assert not is_shipped("fragments/file-readers")


@pytest.mark.parametrize("name", further_names())
def test_each_is_a_policy_without_mistakes(name: str) -> None:
    source = policy_source(name)
    assert source.text.startswith("# yaml-language-server: $schema=../policy.schema.json\n#")
    root = resolved(source)
    found = {one.code for one in findings(root, Policy.model_validate(root.plain()))}
    assert found <= {LOSES}
    assert f"{name.rpartition('/')[0]}/{load_policy(name).name}" == name


def test_the_page_links_each() -> None:
    linked = re.findall(r"^\| \[`(.+)`\]\(\.\./policies/(peers/\1)\.yaml\) \|", PAGE, re.MULTILINE)
    assert sorted(name for _, name in linked) == sorted(further_names())


@pytest.mark.parametrize("name", further_names())
def test_the_page_has_the_equal_calls_of_three_settings_or_more(name: str) -> None:
    assert len(on_the_page(name.removeprefix("peers/"))) >= 3


def test_another_policy_extends_one() -> None:
    name = further_names()[0]
    text = f"apiVersion: policyctx/v1\nname: mine\nextends: {name}\n"
    extended = resolved(PolicySource("mine.yaml", text)).plain()
    assert extended["steps"] == resolved(policy_source(name)).plain()["steps"]


def test_a_name_that_is_nearly_one_is_suggested() -> None:
    name = further_names()[0]
    with pytest.raises(UnknownPolicyError) as raised:
        load_policy(name[:-1])
    assert raised.value.nearest == name


@pytest.mark.slow
def test_diff_says_what_would_change(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "apiVersion: policyctx/v1\nname: mine\nitems: {tool_result: {offload: true}}\n"
        "steps: [{name: old, do: clear, select: {keep_recent: 2}, must_shrink: false}]\n"
    )
    messages = json.dumps(session_of(*["word " * 300] * 6))
    (tmp_path / "session.json").write_text(messages)
    name = "peers/openai-agents-trimmer"
    assert name in further_names()
    files = "mine.yaml", "session.json"
    shown = policyctx("diff", name, *files, "--json", cwd=tmp_path)
    report = json.loads(shown.stdout)
    assert report["policies"] == [name, "mine.yaml"]
    assert report["change"]["tokens_sent"] < 0
    assert {one["second"]["action"] for one in report["differences"]} == {"clear"}
    table = policyctx("diff", name, *files, cwd=tmp_path).stdout
    assert "tokens sent" in table
    assert "items with another fate" in table
