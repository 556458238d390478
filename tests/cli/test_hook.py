"""`policyctx hook claude-code --install` and `--uninstall`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import policyctx

HOOK = ("hook", "claude-code")


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path / ".claude/settings.json"


def test_the_hook_is_installed_once_and_uninstalled(settings: Path) -> None:
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}\n', encoding="utf-8")
    first = policyctx(*HOOK, "--install", "--yes")
    assert first.returncode == 0, first.stderr
    assert '+      {"' not in first.stdout
    assert '+        "matcher": "Bash|Read|mcp__.*",' in first.stdout
    [group] = json.loads(settings.read_text(encoding="utf-8"))["hooks"]["PostToolUse"]
    program, host = shlex.split(group["hooks"][0]["command"])
    assert (Path(program).name, host) == ("policyctx-hook", "claude-code")
    again = policyctx(*HOOK, "--install", "--yes")
    assert again.stdout == f"nothing to change in {settings}\n"
    gone = policyctx(*HOOK, "--uninstall", "-y")
    assert gone.returncode == 0
    assert settings.read_text(encoding="utf-8") == '{"model": "opus"}\n'


def test_it_asks_before_it_writes(settings: Path) -> None:
    refused = policyctx(*HOOK, "--install", stdin=b"n\n")
    assert refused.returncode == 1
    assert not settings.exists()
    unasked = policyctx(*HOOK, "--install", stdin=b"")
    assert unasked.returncode == 1
    assert unasked.stderr.endswith("error: nothing is written; --yes writes without a question\n")
    assert not settings.exists()
    assert policyctx(*HOOK, "--install", stdin=b"y\n").returncode == 0
    assert settings.exists()


def test_the_project_has_settings_of_its_own(tmp_path: Path, settings: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    run = policyctx(*HOOK, "--install", "--project", "--yes", "--root", ".results", cwd=folder)
    assert run.returncode == 0, run.stderr
    text = (folder / ".claude/settings.json").read_text(encoding="utf-8")
    assert '"policyctx-hook claude-code --root .results"' in text
    assert not settings.exists()


def test_settings_that_are_not_json_are_not_touched(settings: Path) -> None:
    settings.parent.mkdir()
    settings.write_text('{"model": "opus",}', encoding="utf-8")
    for option in ("--install", "--uninstall"):
        run = policyctx(*HOOK, option, "--yes")
        assert run.returncode == 1
        assert run.stderr.startswith(f"error: {settings} cannot be edited: it is not valid JSON")
    assert settings.read_text(encoding="utf-8") == '{"model": "opus",}'


def test_a_policy_that_cannot_be_read_is_not_installed(settings: Path) -> None:
    run = policyctx(*HOOK, "--install", "--yes", "--policy", "no-such")
    assert run.returncode == 1
    assert not settings.exists()


def test_a_policy_file_is_named_by_its_whole_path(tmp_path: Path, settings: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text("apiVersion: policyctx/v1\nname: mine\nextends: claude-code\n")
    run = policyctx(*HOOK, "--install", "--yes", "--policy", "mine.yaml", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert f"--policy {policy}" in settings.read_text(encoding="utf-8")


HEAD = "apiVersion: policyctx/v1\nname: mine\n"
NOTHING = "{policy}: the hook does nothing with this policy, which has no step with `on: arrival`"


@pytest.mark.parametrize(
    ("policy", "options", "lacks"),
    [
        ("coding-agent", (), " and no `carry`"),
        ("extends: coding-agent\n", (), " and no `carry`"),
        ("extends: coding-agent\ncarry: {files: 5}\n", ("--without", "compaction"), ""),
    ],
)
def test_a_policy_with_which_the_hook_does_nothing_causes_a_warning(
    tmp_path: Path, settings: Path, policy: str, options: tuple[str, ...], lacks: str
) -> None:
    if "\n" in policy:
        (tmp_path / "mine.yaml").write_text(HEAD + policy)
        policy = "mine.yaml"
    run = policyctx(*HOOK, "--install", "--yes", "--policy", policy, *options, cwd=tmp_path)
    assert (run.returncode, settings.exists()) == (0, True)
    said = NOTHING.format(policy=policy) + lacks
    assert run.stderr == f"warning: {said}; the preset claude-code has such steps\n"


@pytest.mark.parametrize(
    "policy",
    [
        "extends: claude-code\n",
        "extends: coding-agent\ncarry: {files: 5}\n",
        "steps: []\nredact: {key: 'sk-[a-z]{9}'}\n",
    ],
)
def test_a_policy_with_which_the_hook_does_something_causes_no_warning(
    tmp_path: Path, policy: str
) -> None:
    (tmp_path / "mine.yaml").write_text(HEAD + policy)
    run = policyctx(*HOOK, "--install", "--yes", "--policy", "mine.yaml", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("text", ["{}\n", "{}", "{ }\n", ""])
def test_the_user_keeps_a_file_without_settings(settings: Path, text: str) -> None:
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(text)
    settings.chmod(0o600)
    assert "nothing to change" in policyctx(*HOOK, "--uninstall", "--yes").stdout
    assert settings.read_text() == text
    assert policyctx(*HOOK, "--install", "--yes").returncode == 0
    assert policyctx(*HOOK, "--uninstall", "--yes").returncode == 0
    assert json.loads(settings.read_text()) == {}


def test_a_file_that_only_the_hook_made_is_removed_with_it(settings: Path) -> None:
    assert policyctx(*HOOK, "--install", "--yes").returncode == 0
    gone = policyctx(*HOOK, "--uninstall", "--yes")
    assert gone.stdout.endswith(f"\nremoved {settings}\n")
    assert not settings.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text('{"model": "opus",' + path.read_text()[1:]),
        lambda path: path.chmod(0o644),
        lambda path: path.symlink_to(path.rename(path.with_name("dotfiles.json"))),
    ],
    ids=["with more", "of another", "link"],
)
def test_another_file_stays_when_the_hook_leaves(
    settings: Path, change: Callable[[Path], None]
) -> None:
    assert policyctx(*HOOK, "--install", "--yes").returncode == 0
    change(settings)
    gone = policyctx(*HOOK, "--uninstall", "--yes")
    assert gone.stdout.endswith(f"\nwrote {settings}\n")
    assert json.loads(settings.read_text(encoding="utf-8")) in ({}, {"model": "opus"})


def test_one_of_the_two_is_chosen(settings: Path) -> None:
    assert policyctx(*HOOK, "--install", "--uninstall").returncode == 2
    assert not settings.exists()


@pytest.mark.parametrize("link", [".claude", ".claude/settings.json"])
def test_the_settings_of_a_project_are_not_edited_through_a_link_out_of_it(
    tmp_path: Path, link: str
) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (outside / "settings.json").write_text("{}", encoding="utf-8")
    planted = folder / link
    planted.parent.mkdir(parents=True)
    planted.symlink_to(outside if link == ".claude" else outside / "settings.json")
    run = policyctx(*HOOK, "--install", "--project", "--yes", cwd=folder)
    assert run.returncode != 0
    assert "leads out of the project" in run.stderr
    assert (outside / "settings.json").read_text(encoding="utf-8") == "{}"
