from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from policyctx.policy.loading import load_policy
from policyctx.policy.sources import preset_names
from tests.cli.running import policyctx
from tests.conversations import session_of

NAMES = ["policy.schema.json", "policy.yaml", "policyctx.yaml"]


def uncommented(text: str) -> str:
    """A starter file with all of its settings taken in; prose has two #, the schema one."""
    return re.sub(r"^( *)#(?!.*schema=)(?: |$)", r"\1", text, flags=re.MULTILINE)


def settings(text: str) -> list[str]:
    """The text with one block of settings taken in, for each such block."""
    blocks = re.split(r"\n\n", text)
    taken = [i for i, block in enumerate(blocks) if uncommented(block) != block]
    return ["\n\n".join([*blocks[:i], uncommented(blocks[i]), *blocks[i + 1 :]]) for i in taken]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_init_writes_three_files_and_suggests_next_steps(tmp_path: Path) -> None:
    run = policyctx("init", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert names_in(tmp_path) == NAMES
    assert run.stdout == (
        "wrote policy.schema.json, policyctx.yaml and policy.yaml\n"
        "\n"
        "Try next:\n"
        "  policyctx check policy.yaml\n"
        "  policyctx plan policy.yaml MESSAGES\n"
    )


def test_the_first_line_names_the_schema_beside_the_policy(tmp_path: Path) -> None:
    policyctx("init", cwd=tmp_path)
    [first, *_] = (tmp_path / "policy.yaml").read_text(encoding="utf-8").splitlines()
    name = first.removeprefix("# yaml-language-server: $schema=")
    schema = (tmp_path / name).read_text(encoding="utf-8")
    assert schema == policyctx("schema").stdout


def test_the_written_files_can_be_used(tmp_path: Path) -> None:
    policyctx("init", cwd=tmp_path)
    messages = json.dumps(session_of("word " * 3000)).encode()
    assert policyctx("plan", "policy.yaml", "-", stdin=messages, cwd=tmp_path).returncode == 0
    agents = json.loads(policyctx("agents", "--json", cwd=tmp_path).stdout)["agents"]
    assert [(a["agent"], a["policy"], a["errors"]) for a in agents] == [("*", "./policy.yaml", [])]


@pytest.mark.parametrize("preset", preset_names())
def test_a_starter_equals_its_preset_with_and_without_its_settings(
    preset: str, tmp_path: Path
) -> None:
    assert policyctx("init", preset, "--directory", tmp_path).returncode == 0
    path = tmp_path / "policy.yaml"
    text = path.read_text(encoding="utf-8")
    expected = load_policy(preset).model_copy(update={"name": "policy"})
    assert load_policy(path) == expected
    path.write_text(uncommented(text), encoding="utf-8")
    taken = load_policy(path)
    assert taken.tools
    same = {"min_tokens": expected.min_tokens, "tools": expected.tools}
    assert taken.min_tokens in {expected.min_tokens, 0}
    assert taken.model_copy(update=same) == expected


@pytest.mark.parametrize("preset", preset_names())
def test_each_setting_can_be_uncommented_alone(preset: str, tmp_path: Path) -> None:
    policyctx("init", preset, "--directory", tmp_path)
    path = tmp_path / "policy.yaml"
    variants = settings(path.read_text(encoding="utf-8"))
    assert len(variants) >= 5
    for variant in variants:
        path.write_text(variant, encoding="utf-8")
        load_policy(path)


def test_the_agents_that_are_shown_as_examples_load(tmp_path: Path) -> None:
    policyctx("init", cwd=tmp_path)
    path = tmp_path / "policyctx.yaml"
    path.write_text(uncommented(path.read_text(encoding="utf-8")), encoding="utf-8")
    report = json.loads(policyctx("agents", "--json", cwd=tmp_path).stdout)["agents"]
    assert [agent["agent"] for agent in report] == ["coder", "research-*", "*"]
    assert [agent["errors"] for agent in report] == [[], [], []]


@pytest.mark.parametrize("name", ["researcher", "1", "null", "0x1f", "coding-agent"])
def test_the_policy_may_have_another_name(name: str, tmp_path: Path) -> None:
    run = policyctx("init", "--name", name, cwd=tmp_path)
    assert run.stdout.startswith(f"wrote policy.schema.json, policyctx.yaml and {name}.yaml\n")
    assert load_policy(tmp_path / f"{name}.yaml").name == name
    assert policyctx("agents", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["", "../x", "a b", "a/b", "-x", "policyctx", "PolicyCtx"])
def test_an_invalid_file_name_is_a_usage_error(name: str, tmp_path: Path) -> None:
    assert policyctx("init", f"--name={name}", cwd=tmp_path).returncode == 2
    assert names_in(tmp_path) == []


def test_an_unknown_preset_error_lists_the_known_and_a_suggestion(tmp_path: Path) -> None:
    run = policyctx("init", "codng-agent", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == (
        "codng-agent: PC001: no such preset; did you mean 'coding-agent'?"
        f" The presets are {', '.join(preset_names())}\n"
    )
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("taken", [["policy.yaml"], NAMES])
def test_existing_files_are_not_changed(taken: list[str], tmp_path: Path) -> None:
    for name in taken:
        (tmp_path / name).write_text("mine", encoding="utf-8")
    run = policyctx("init", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "error: policy.yaml exists already; --force replaces what exists\n"
    assert names_in(tmp_path) == taken
    assert all((tmp_path / name).read_text(encoding="utf-8") == "mine" for name in taken)


def test_a_second_policy_is_added_beside_the_agents(tmp_path: Path) -> None:
    policyctx("init", cwd=tmp_path)
    before = (tmp_path / "policyctx.yaml").read_bytes()
    run = policyctx("init", "--name", "second", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert names_in(tmp_path) == sorted([*NAMES, "second.yaml"])
    assert (tmp_path / "policyctx.yaml").read_bytes() == before
    assert run.stdout.startswith("wrote second.yaml\n")
    assert run.stdout.endswith(
        "\npolicyctx.yaml is left as it is. To run an agent under the policy, add to it:\n"
        "  agents:\n"
        '    "second": ./second.yaml\n'
    )


def test_the_lines_that_are_shown_add_the_policy(tmp_path: Path) -> None:
    policyctx("init", cwd=tmp_path)
    shown = policyctx("init", "--name", "1", cwd=tmp_path).stdout.splitlines()[-1]
    path = tmp_path / "policyctx.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("agents:\n", f"agents:\n{shown[2:]}\n"), encoding="utf-8")
    agents = json.loads(policyctx("agents", "--json", cwd=tmp_path).stdout)["agents"]
    assert [(a["agent"], a["policy"], a["errors"]) for a in agents] == [
        ("1", "./1.yaml", []),
        ("*", "./policy.yaml", []),
    ]


def test_a_dangling_symlink_counts_as_existing(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").symlink_to(tmp_path / "elsewhere")
    assert policyctx("init", cwd=tmp_path).returncode == 1
    assert names_in(tmp_path) == ["policy.yaml"]


def test_force_replaces_files_and_lists_them(tmp_path: Path) -> None:
    (tmp_path / "policyctx.yaml").write_text("mine", encoding="utf-8")
    run = policyctx("init", "--force", cwd=tmp_path)
    assert run.stdout.startswith(
        "wrote policy.schema.json and policy.yaml\nreplaced policyctx.yaml\n"
    )
    assert names_in(tmp_path) == NAMES
    assert "agents:" in (tmp_path / "policyctx.yaml").read_text(encoding="utf-8")


def test_force_does_not_replace_a_folder(tmp_path: Path) -> None:
    (tmp_path / "policyctx.yaml").write_text("mine", encoding="utf-8")
    (tmp_path / "policy.yaml").mkdir()
    run = policyctx("init", "--force", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == "error: policy.yaml cannot be replaced: it is a folder\n"
    assert names_in(tmp_path) == ["policy.yaml", "policyctx.yaml"]
    assert (tmp_path / "policyctx.yaml").read_text(encoding="utf-8") == "mine"


def test_a_failed_second_write_removes_the_first_file(tmp_path: Path) -> None:
    run = policyctx("init", "--name", "x" * 300, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith("error: xxx")
    assert run.stderr.endswith("x.yaml cannot be written: File name too long\n")
    assert names_in(tmp_path) == []


def test_a_failed_second_write_restores_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "policyctx.yaml").write_text("mine", encoding="utf-8")
    assert policyctx("init", "--force", "--name", "x" * 300, cwd=tmp_path).returncode == 1
    assert names_in(tmp_path) == ["policyctx.yaml"]
    assert (tmp_path / "policyctx.yaml").read_text(encoding="utf-8") == "mine"


def test_a_missing_folder_is_a_usage_error(tmp_path: Path) -> None:
    assert policyctx("init", "--directory", tmp_path / "typo").returncode == 2
