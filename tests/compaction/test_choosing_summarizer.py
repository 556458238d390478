"""Which summarizer a session uses, and when a wrong choice is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from policyctx import (
    MissingExtraError,
    Session,
    UnknownSummarizerError,
    compact_messages,
    register_summarizer,
)
from policyctx.compaction import summarizers
from policyctx.planning.compiled import OffloadPolicy
from policyctx.testing.faults import passing_time
from tests.cli.running import policyctx
from tests.compaction.compacting import SUMMARY, conversation
from tests.policies import policy


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarizers, "_registered", {})


@pytest.fixture
def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Python find no package `anthropic`."""
    monkeypatch.setitem(sys.modules, "anthropic", None)


def by(name: str, *, in_step: bool = False) -> OffloadPolicy:
    settings = f"compaction: {{summary: {{by: {name}}}}}"
    own = f", {settings}" if in_step else ""
    whole = "" if in_step else settings
    return policy(
        f"model: {{tokenizer: approximate}}\nstore: {{sync: never}}\n{whole}\n"
        f"steps: [{{name: summarise, do: compact{own}}}]\n"
    )


@pytest.mark.parametrize("in_step", [False, True])
def test_an_unknown_summarizer_is_an_error_when_the_session_is_made(
    in_step: bool, tmp_path: Path
) -> None:
    with pytest.raises(UnknownSummarizerError, match="no summarizer is named 'mistral'"):
        Session(by("mistral", in_step=in_step), root=tmp_path)


@pytest.mark.usefixtures("no_sdk")
@pytest.mark.parametrize("chosen", [by("anthropic"), "context-compact"])
def test_a_missing_extra_is_an_error_when_the_session_is_made(
    chosen: OffloadPolicy | str, tmp_path: Path
) -> None:
    with pytest.raises(MissingExtraError) as caught:
        Session(chosen, root=tmp_path)
    assert caught.value.extra == "anthropic"


@pytest.mark.usefixtures("no_sdk")
@pytest.mark.parametrize("name", ["coding-agent", "context-filesystem", "context-offload"])
def test_presets_that_ask_no_model_need_no_extra(name: str, tmp_path: Path) -> None:
    assert Session(name, root=tmp_path).policy.policy.name == name


@pytest.mark.usefixtures("no_sdk")
@pytest.mark.parametrize("name", ["mistral", "anthropic"])
def test_a_summarizer_argument_overrides_the_policys_summarizer(name: str, tmp_path: Path) -> None:
    used = Session(by(name), root=tmp_path, summarizer=lambda _: "mine")
    assert used.apply(conversation()).messages[1]["content"] == f"{SUMMARY}mine"


def test_a_policy_without_a_compact_step_needs_no_summarizer(tmp_path: Path) -> None:
    messages = conversation()
    used = Session(policy("compaction: {summary: {by: mistral}}"), root=tmp_path)
    assert used.apply(messages).messages is messages


def test_a_step_may_name_a_summarizer_if_the_policys_is_unknown(tmp_path: Path) -> None:
    text = (
        "compaction: {summary: {by: mistral}}\n"
        "steps: [{name: a, do: compact, compaction: {summary: {by: extractive}}}]"
    )
    assert Session(policy(text), root=tmp_path).apply(conversation()).compacted


def test_a_registered_summarizer_is_found_by_its_name(tmp_path: Path) -> None:
    register_summarizer("mistral", lambda _: "registered")
    used = Session(by("mistral"), root=tmp_path)
    assert used.apply(conversation()).messages[1]["content"] == f"{SUMMARY}registered"


@pytest.mark.slow
def test_making_a_session_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from policyctx import Session\n"
        "Session('context-compact')\n"
        "sys.exit('anthropic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("no_sdk")
def test_compact_messages_without_a_client_needs_no_extra(tmp_path: Path) -> None:
    assert compact_messages(conversation(), threshold=1, output_dir=tmp_path).compacted


def test_an_sdk_that_cannot_be_imported_is_a_failed_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "anthropic.py").write_text("raise RuntimeError('a broken package')\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "anthropic"]:
        monkeypatch.delitem(sys.modules, name)
    messages, pauses = conversation(), list[float]()
    with passing_time(pauses.append):
        result = Session(by("anthropic"), root=tmp_path / "store").apply(messages)
    assert len(pauses) == 2
    assert result.messages is messages
    assert "a broken package" in result.warnings[0]


class TestCommandLine:
    @pytest.fixture
    def files(self, tmp_path: Path) -> tuple[Path, Path]:
        chosen, messages = tmp_path / "p.yaml", tmp_path / "m.json"
        chosen.write_text(
            "apiVersion: policyctx/v1\nname: p\ncompaction: {summary: {by: mistral}}\n"
            "steps: [{name: summarise, do: compact}]\n",
            encoding="utf-8",
        )
        messages.write_text('[{"role": "user", "content": "hello"}]', encoding="utf-8")
        return chosen, messages

    def test_check_warns_about_a_name_that_is_not_built_in(self, files: tuple[Path, Path]) -> None:
        run = policyctx("check", files[0])
        assert run.returncode == 0
        assert "PC330" in run.stdout
        assert "register_summarizer" in run.stdout

    def test_apply_rejects_it(self, files: tuple[Path, Path], tmp_path: Path) -> None:
        run = policyctx("apply", *files, "--root", tmp_path / "store")
        assert run.returncode != 0
        assert "no summarizer is named 'mistral'" in run.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["plan", "explain"])
    def test_a_dry_run_asks_no_summarizer(self, command: str, files: tuple[Path, Path]) -> None:
        assert policyctx(command, *files).returncode == 0
