from __future__ import annotations

import json

from policyctx.policy.agents import agents_schema
from policyctx.policy.schema import policy_schema, schema_of
from tests.cli.running import policyctx


def test_without_a_key_the_schema_is_printed() -> None:
    assert json.loads(policyctx("schema").stdout) == policy_schema()


def test_a_key_is_explained_in_plain_text() -> None:
    run = policyctx("schema", "items.keep_recent")
    assert run.stdout.startswith("items.keep_recent\n  The newest stay")
    assert "\x1b" not in run.stdout


def test_json_gives_the_key_s_part_of_the_schema() -> None:
    run = policyctx("schema", "store.on_conflict", "--json")
    assert json.loads(run.stdout) == schema_of("store.on_conflict")


def test_the_end_of_several_paths_lists_all_of_them() -> None:
    run = policyctx("schema", "keep_recent")
    assert run.returncode == 0
    assert "\n  steps.select.keep_recent " in run.stdout


def test_json_of_one_key_needs_a_path_of_one_key() -> None:
    assert json.loads(policyctx("schema", "when", "--json").stdout) == schema_of("steps.when")
    run = policyctx("schema", "keep_recent", "--json")
    assert (run.returncode, run.stdout) == (1, "")
    assert "name it in full: items.keep_recent, tools.keep_recent" in run.stderr


def test_an_unknown_key_is_rejected_with_a_suggestion() -> None:
    run = policyctx("schema", "items.keep_recnt")
    assert run.returncode == 1
    assert run.stdout == ""
    assert "PC101: unknown key 'keep_recnt'; did you mean 'keep_recent'?" in run.stderr


def test_the_schema_of_the_file_of_agents_is_printed() -> None:
    assert json.loads(policyctx("schema", "--agents").stdout) == agents_schema()
    assert policyctx("schema", "items", "--agents").returncode == 2


def test_control_and_hidden_characters_of_a_key_are_shown_as_escapes() -> None:
    run = policyctx("schema", "items.\x1b]0;title\x07\u202ekeep")
    assert not {"\x1b", "\x07", "\u202e"} & {*run.stdout, *run.stderr}
