"""Each error text that the FAQ quotes is in the package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import policyctx
from policyctx import errors

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
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


def test_each_exception_of_the_page_exists() -> None:
    named = re.findall(r"`(?:policyctx\.)?(\w+Error)`", PAGE)
    assert len(set(named)) > 10
    assert [name for name in named if not issubclass(getattr(errors, name), Exception)] == []
