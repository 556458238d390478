"""The code on every page: Python names what the package has, and policies are accepted."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import policyctx
from policyctx import Session
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from tests.conversations import session_of

PACKAGE = Path(policyctx.__file__).parent
PAGES = sorted([*PACKAGE.parent.glob("docs/*.md"), *PACKAGE.rglob("README.md")])


def blocks(page: Path, language: str) -> list[str]:
    pattern = rf"^```{language}\b[^\n]*\n(.*?)^```"
    return re.findall(pattern, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def pages_with(language: str) -> pytest.MarkDecorator:
    pages = [page for page in PAGES if blocks(page, language)]
    return pytest.mark.parametrize(
        "page", pages, ids=lambda page: str(page.relative_to(PACKAGE.parent))
    )


@cache
def names_in(module: str) -> set[str]:
    """Return what a module of the package defines or imports; its own extra need not be there."""
    if module == "policyctx":
        return {*policyctx.__all__}
    place = PACKAGE.joinpath(*module.split(".")[1:])
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    found = {child.stem for child in place.glob("*")}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def parsed(block: str) -> ast.Module:
    """Parse a page's Python, in which `…` and a line of dots stand for what is the reader's."""
    block = block.replace("…", "...")
    try:
        return ast.parse(block)
    except SyntaxError:  # dots behind keyword arguments
        return ast.parse(re.sub(r"^ +\.\.\.\n", "", block, flags=re.MULTILINE))


@pages_with("python")
def test_python_on_a_page_imports_what_the_package_has(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(parsed(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("policyctx"):
                assert node.module
                missing = {alias.name for alias in node.names} - names_in(node.module)
                assert missing == set(), node.module


@pages_with("yaml")
def test_a_policy_on_a_page_is_accepted(page: Path) -> None:
    for block in blocks(page, "yaml"):
        if re.match(r"- |.*^(agents|repos|jobs|on):", block, re.DOTALL | re.MULTILINE):
            continue  # a list of mutants, a policyctx.yaml, and the files of pre-commit and of CI
        version = "" if "apiVersion" in block else "apiVersion: policyctx/v1\n"
        name = "" if re.search(r"^name:", block, re.MULTILINE) else "name: p\n"
        parsed_policy(PolicySource(page.name, version + name + block))


@pages_with("json")
def test_json_on_a_page_can_be_read(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block)


@pages_with("toml")
def test_toml_on_a_page_can_be_read(page: Path) -> None:
    for block in blocks(page, "toml"):
        tomllib.loads(block)


def test_the_loop_on_the_first_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (loop,) = blocks(PAGES[0].parent / "index.md", "python")
    names = {"messages": session_of("word " * 100)}
    exec(loop, {**names, "response": SimpleNamespace(usage={"input_tokens": 9})}, names)  # noqa: S102
    session = names["session"]
    assert isinstance(session, Session)
    assert session.totals().calls == 1
