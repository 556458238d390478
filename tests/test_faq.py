"""Each error text that the FAQ quotes is in the package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import policyctx
from policyctx import errors
from policyctx.planning.compiled import OffloadPolicy
from tests.conversations import session_of
from tests.policies import policy

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
OFFLOADING = policy(
    "items: {tool_result: {offload: true, keep_recent: 0}}\n"
    "steps: [{name: s, do: offload, select: {types: [tool_result]}}]"
)
QUOTED = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)


def texts_of(module: Path) -> list[str]:
    """Return the strings of a module, with `…` in place of each value."""
    found = []
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "…" for p in node.values)
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


@pytest.fixture(scope="module")
def modules() -> dict[Path, str]:
    folder = Path(policyctx.__file__).parent
    return {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}


@pytest.mark.parametrize("quoted", QUOTED)
def test_each_quoted_error_is_a_text_of_the_package(quoted: str, modules: dict[Path, str]) -> None:
    text = quoted.removesuffix(" …").removesuffix(": …")
    # Only modules that have the beginning of a part are worth parsing.
    parts = [part.strip()[:12] for part in text.split("…") if len(part) > 5]
    likely = [path for path, source in modules.items() if any(part in source for part in parts)]
    assert any(text in found for path in likely for found in texts_of(path))


def test_the_folders_of_the_page_are_those_of_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answer = PAGE.partition("### Where are my files?")[2].partition("###")[0]
    for given, folder, index in (
        (None, "~/.agent/context/SESSION_ID", ".policyctx"),
        ("kept/{session_id}", "kept/SESSION_ID", ".policyctx"),
        ("kept", "kept", ".policyctx/SESSION_ID"),
    ):
        assert f"`{folder if given is None else given}`" in answer
        session = policyctx.Session(OFFLOADING, root=given, session_id="SESSION_ID")
        [file] = session.apply(session_of("word " * 20_000)).files
        root = tmp_path / folder.replace("~", str(tmp_path))
        assert session.store.root == root
        assert Path(file).is_relative_to(root)
        assert not Path(file).is_relative_to(root / ".policyctx")
        assert (root / index / "journal.jsonl").exists()
    assert "`kept/.policyctx/SESSION_ID`" in answer
    hook = OffloadPolicy.load("claude-code").store.root.replace("{session_id}", "SESSION_ID")
    assert f"`{hook}`" in answer


def test_each_exception_of_the_page_exists() -> None:
    named = re.findall(r"`(?:policyctx\.)?(\w+Error)`", PAGE)
    assert len(set(named)) > 10
    assert [name for name in named if not issubclass(getattr(errors, name), Exception)] == []
