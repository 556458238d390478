"""The entry of the hook in the settings of Claude Code: the text around it stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.errors import SettingsError
from policyctx.integrations.claude_code_settings import (
    entry,
    installed,
    is_own,
    read_settings,
    settings_path,
    uninstalled,
    write_settings,
)

COMMAND = "/opt/venv/bin/policyctx-hook claude-code"
OTHER = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./log.sh"}]}


def groups(text: str) -> Any:
    return json.loads(text)["hooks"]["PostToolUse"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{}\n",
        '{"model": "opus"}',
        '{\n    "model":   "opus",\n    "env": {"A": "\\u00e9é"}\n}\n',
        '{\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}',
        '{\r\n  "a": [1, 2.50, 1e3],\r\n  "hooks": {"Stop": [], "PreToolUse": []}\r\n}\r\n',
        json.dumps({"hooks": {"PostToolUse": [OTHER]}}),
        json.dumps({"hooks": {"PostToolUse": [OTHER, OTHER], "Stop": []}, "z": 1}, indent=4),
        '{"hooks": {"PostToolUse": [{"matcher": "}]", "hooks": []}]}, "a": "[{\\""}',
        '{"hooks": {}, "a": 1, "hooks": {"Stop": []}}',
    ],
)
def test_what_is_installed_and_uninstalled_leaves_the_same_bytes(text: str) -> None:
    with_hook = installed(text, COMMAND)
    assert entry(COMMAND) in groups(with_hook)
    assert installed(with_hook, COMMAND) == with_hook
    same = uninstalled(with_hook)
    assert same == text
    assert uninstalled(same) == same


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
JSON = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=4), SCALARS)


@st.composite
def settings_of_all_forms(draw: st.DrawFn) -> dict[str, Any]:
    settings: dict[str, Any] = draw(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
    if found := draw(st.lists(JSON, max_size=3)):
        more = draw(st.dictionaries(st.sampled_from(["Stop", "PreToolUse"]), JSON))
        settings["hooks"] = {"PostToolUse": found, **more}
    return settings


@given(settings_of_all_forms(), st.sampled_from([None, 0, 2, 3, "\t"]), st.booleans())
def test_any_settings_stay_byte_for_byte(
    settings: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only)
    with_hook = installed(text, COMMAND)
    assert groups(with_hook)[-1] == entry(COMMAND)
    assert uninstalled(with_hook) == text


def test_another_command_of_the_hook_is_replaced_in_its_place() -> None:
    text = installed(json.dumps({"hooks": {"PostToolUse": [OTHER]}}, indent=2), COMMAND)
    new = f"{COMMAND} --policy mine.yaml"
    assert groups(installed(text, new)) == [OTHER, entry(new)]


def test_only_its_own_entry_is_removed() -> None:
    shared = {"matcher": "Bash", "hooks": [*OTHER["hooks"], *entry(COMMAND)["hooks"]]}
    assert groups(uninstalled(json.dumps({"hooks": {"PostToolUse": [shared]}}))) == [OTHER]


def test_every_entry_of_its_own_is_removed() -> None:
    found = [entry(COMMAND), OTHER, entry("policyctx hook claude-code --root x")]
    assert groups(uninstalled(json.dumps({"hooks": {"PostToolUse": found}}))) == [OTHER]


@pytest.mark.parametrize(
    ("command", "is_its_own"),
    [
        ("policyctx-hook claude-code", True),
        ("'/a b/policyctx-hook' claude-code --policy x", True),
        ("/x/policyctx hook claude-code", True),
        ("policyctx-hook other", False),
        ("echo policyctx-hook claude-code", False),
        ("policyctx hook", False),
        ("'", False),
        ("", False),
        (None, False),
        (["policyctx-hook", "claude-code"], False),
    ],
)
def test_its_own_commands_are_recognised(command: object, is_its_own: bool) -> None:
    assert is_own(command) == is_its_own


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not valid JSON"),
        ('{"a": 1,}', "it is not valid JSON"),
        ('// a comment\n{"a": 1}', "it is not valid JSON"),
        ("", "it is not valid JSON"),
        ("[]", "it is not a JSON object"),
        ('{"hooks": []}', "its hooks.PostToolUse is not a list"),
        ('{"hooks": null}', "its hooks.PostToolUse is not a list"),
        ('{"hooks": {"PostToolUse": {}}}', "its hooks.PostToolUse is not a list"),
    ],
)
def test_settings_of_another_form_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        installed(text, COMMAND)
    with pytest.raises(ValueError, match=reason):
        uninstalled(text)


def test_a_file_keeps_its_permissions_and_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles.json", tmp_path / "settings.json"
    target.write_text("{}", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    write_settings(link, '{"a": 1}', before="{}")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == '{"a": 1}'
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dotfiles.json", "settings.json"]


def test_a_new_file_gets_its_folder(tmp_path: Path) -> None:
    path = tmp_path / ".claude/settings.json"
    assert read_settings(path) is None
    write_settings(path, "{}\n", before=None)
    assert read_settings(path) == "{}\n"


def test_a_read_only_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o444)
    with pytest.raises(SettingsError, match="is read-only"):
        write_settings(path, '{"a": 1}', before="{}")
    assert [p.read_text(encoding="utf-8") for p in tmp_path.iterdir()] == ["{}"]


def test_a_file_that_changed_meanwhile_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"new": 1}', encoding="utf-8")
    with pytest.raises(SettingsError, match="was changed meanwhile"):
        write_settings(path, '{"a": 1}', before="{}")
    assert path.read_text(encoding="utf-8") == '{"new": 1}'


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"cannot be written|cannot be read"):
        write_settings(tmp_path / "file/settings.json", "{}", before=None)


def test_settings_that_are_not_utf_8_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"it is not UTF-8"):
        read_settings(tmp_path / "s.json")


def test_the_users_settings_are_where_claude_code_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_path(project=False) == tmp_path / "home/.claude/settings.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "c"))
    assert settings_path(project=False) == tmp_path / "c/settings.json"
