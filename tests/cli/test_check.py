from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from policyctx.policy.sources import preset_names
from tests.cli.running import policyctx

HEAD = "apiVersion: policyctx/v1\nname: mine\n"


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.yaml"
    path.write_text(f"{HEAD}stor: 1\nmin_chars: x\n", encoding="utf-8")
    return path


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """Legal, but the overwriting store gives every item one file."""
    path = tmp_path / "doubtful.yaml"
    text = """\
        store: {path: results.md, on_conflict: overwrite}
        items: {tool_result: {offload: true}}
        steps: [{name: all, do: offload}]
        """
    path.write_text(HEAD + dedent(text), encoding="utf-8")
    return path


def test_the_presets_are_clean() -> None:
    asked = {*preset_names()} - {"context-filesystem"}
    run = policyctx("check", "--strict", *asked)
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr == f"{len(asked)} policies, nothing found\n"


@pytest.mark.parametrize("form", ["text", "github"])
def test_a_step_without_a_gate_is_advice_that_strict_lets_pass(form: str) -> None:
    run = policyctx("check", "--strict", "context-filesystem", "--format", form)
    assert run.returncode == 0
    [line] = [line for line in run.stdout.splitlines() if "PC334" in line]
    assert "step 'retire' has no gate" in line
    assert line.startswith("::notice ") or run.stderr == "1 notice\n"


def test_every_error_is_shown_with_its_line(wrong: Path) -> None:
    run = policyctx("check", wrong)
    assert run.returncode == 1
    assert run.stdout == (
        f"{wrong}:3:1: PC101: unknown key 'stor'; did you mean 'store'?\n"
        "    3 | stor: 1\n"
        "      | ^^^^\n"
        f"{wrong}:4:12: PC103: expected a whole number, got 'x'\n"
        "    4 | min_chars: x\n"
        "      |            ^\n"
    )
    assert run.stderr == "2 errors\n"


@pytest.mark.parametrize("field", ["{pth}", "{left out}", "{path:>3}", "{tail}"])
def test_the_carets_are_under_the_whole_field_of_a_text(field: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    begins = 'placeholder: {text: "gone to {path} '
    text = f'apiVersion: policyctx/v1\nname: mine\n{begins}{field}"}}\n'
    path.write_text(text, encoding="utf-8")
    carets = " " * len(begins) + "^" * len(field)
    assert policyctx("check", path).stdout.splitlines()[2] == f"      | {carets}"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("database: {password: hunter2}\ntoken: hunter2\n", "PC208"),
        ("name: prod\npassword: hunter2\n", "'password' is not a key of one"),
        ("apiVersion: v1\nkind: Secret\ndata: {key: hunter2}\n", "PC208"),
        ("- hunter2\n", "PC208"),
        ("hunter2\n", "PC208"),
        ("key: [hunter2\ntoken: hunter2\n", "PC002"),
    ],
)
def test_no_value_of_a_file_that_is_not_a_policy_is_shown(
    text: str, said: str, form: str, tmp_path: Path
) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_text(text, encoding="utf-8")
    run = policyctx("check", path, "--format", form)
    assert run.returncode == 1
    assert str(path) in run.stdout
    assert said in run.stdout
    assert "hunter2" not in run.stdout + run.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_policy_that_lacks_its_version_has_a_misspelt_key_named(
    form: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n\nstep: [{name: hunter2}]\n", encoding="utf-8")
    run = policyctx("check", path, "--format", form)
    assert run.returncode == 1
    assert "'step' is not a key of one" in run.stdout
    assert "did you mean 'steps'?" in run.stdout
    assert f"{path}:3:1: PC208" in run.stdout if form == "text" else '"line": 3' in run.stdout
    assert "hunter2" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    "text", ["name: p\nmin_chars: x\n", "apiversion: policyctx/v1\nname: p\nmin_chars: x\n"]
)
def test_a_policy_that_lacks_its_version_is_shown_with_its_lines(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    assert " | min_chars: x\n" in policyctx("check", path).stdout


@pytest.mark.parametrize(
    ("own", "at", "code"),
    [
        ("items: {tool_result: {offload: false}}", "4:32", "PC301"),
        ("items: {tool_result: {pin: true}}", "4:28", "PC301"),
        ("model: {context_window: 29000}", "4:25", "PC304"),
    ],
)
def test_a_warning_about_an_inherited_key_is_shown_at_the_line_that_causes_it(
    own: str, at: str, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(f"{HEAD}extends: few-re-reads\n{own}\n", encoding="utf-8")
    shown = [line for line in policyctx("check", path).stdout.splitlines() if ": PC" in line]
    assert shown[0].startswith(f"{path}:{at}: {code}: ")
    assert all("; the inherited line is " in line for line in shown)
    assert not [line for line in shown if not line.startswith(f"{path}:4:")]


@pytest.mark.parametrize(
    ("second", "codes"),
    [
        ("min_tokens: 3000000", {"4:25": {"PC304", "PC308"}, "5:1": {"PC323"}}),
        (
            "compaction: {keep_recent: {tokens: 90%}}",
            {"4:25": {"PC308"}, "5:14": {"PC304"}},
        ),
    ],
)
def test_a_second_mistake_leaves_the_first_at_the_line_that_causes_it(
    second: str, codes: dict[str, set[str]], tmp_path: Path
) -> None:
    path = tmp_path / "own.yaml"
    own = f"{HEAD}extends: coding-agent\nmodel: {{context_window: 20000}}\n{second}\n"
    path.write_text(own, encoding="utf-8")
    shown: dict[str, set[str]] = {}
    for found in json.loads(policyctx("check", path, "--json").stdout):
        at = f"{found['line']}:{found['column']}"
        shown.setdefault(at, set()).add(found["code"])
    assert shown == codes


def test_a_finding_is_a_warning_and_an_error_with_strict(doubtful: Path) -> None:
    run = policyctx("check", doubtful)
    assert (run.returncode, run.stderr) == (0, "1 warning\n")
    assert run.stdout.startswith(f"{doubtful}:3:")
    assert policyctx("check", "--strict", doubtful).returncode == 1


def test_findings_of_several_policies_are_all_reported(wrong: Path, doubtful: Path) -> None:
    run = policyctx("check", doubtful, wrong, "no-such")
    assert run.returncode == 1
    assert run.stderr == "3 errors, 1 warning\n"


@pytest.mark.parametrize("option", [("--format", "json"), ("--json",)])
def test_the_json_option_prints_json(wrong: Path, option: tuple[str, ...]) -> None:
    run = policyctx("check", wrong, *option)
    assert run.returncode == 1
    assert [found["code"] for found in json.loads(run.stdout)] == ["PC101", "PC103"]
    assert json.loads(policyctx("check", "coding-agent", *option).stdout) == []


def test_github_gets_annotations(wrong: Path) -> None:
    lines = policyctx("check", wrong, "--format", "github").stdout.splitlines()
    assert lines[0] == (
        f"::error file={wrong},title=PC101,line=3,col=1::unknown key 'stor'; did you mean 'store'?"
    )


SECRET_POLICIES = (
    'min_chars: "${SECRET}"\nplaceholder: "{${SECRET}}"\n',
    'store: {mode: "${SECRET}", path: "../${SECRET}", format: "${SECRET}"}\n',
    'extends: "${SECRET}"\n',
    'steps: [{name: "${SECRET}", do: drop, select: {types: ["${SECRET}"]}}]\n',
    'description: "${SECRET}"\nsteps:\n'
    '- {name: a, do: drop, select: {types: [image], tools: [b], except_tools: "${SECRET}"}}\n',
)


@pytest.mark.slow
@pytest.mark.parametrize("text", SECRET_POLICIES)
def test_the_value_of_a_variable_is_in_no_output(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "MARKER{MARKER}")
    policy, messages = tmp_path / "p.yaml", tmp_path / "m.json"
    policy.write_text(HEAD + text, encoding="utf-8")
    messages.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    commands: list[tuple[str | Path, ...]] = [
        ("check", policy),
        ("check", policy, "--json"),
        ("check", policy, "--format", "github"),
        ("show", policy),
        ("show", policy, "--json"),
        ("show", policy, "--origins"),
        ("show", policy, "--origins", "--json"),
        ("plan", policy, messages),
        ("plan", policy, messages, "--json"),
        ("explain", policy, messages, "--json"),
    ]
    for command in commands:
        run = policyctx(*command)
        assert "MARKER" not in run.stdout + run.stderr
    assert "SECRET" in policyctx("check", policy, "--json").stdout
