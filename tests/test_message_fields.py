"""Only `messages` knows the fields of a message; what is above or beside it reads items."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import policyctx

PACKAGE = Path(policyctx.__file__).parent
# Folders and modules of the package that read no message.
WITHOUT_MESSAGES = ("tokens", "planning", "store", "compaction", "turns", "recipes.py")
FIELDS = frozenset({"role", "content", "tool_calls"})
# Functions and methods that read the field whose name is their first argument.
READERS = frozenset({"get", "pop", "setdefault", "itemgetter"})


def reads(source: str) -> list[int]:
    """Return the lines that read a field of a message; a dict that builds one is allowed."""
    keys = [key for node in ast.walk(ast.parse(source)) for key in _keys_read_by(node)]
    return sorted(key.lineno for key in keys if _is_field(key))


def _keys_read_by(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Store):
        yield node.slice
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in READERS:
            yield from node.args if name == "itemgetter" else node.args[:1]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield node.left
    elif isinstance(node, ast.MatchMapping):
        yield from node.keys


def _is_field(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value in FIELDS


def modules() -> list[str]:
    roots = [PACKAGE / name for name in WITHOUT_MESSAGES]
    found = [path for root in roots for path in ([root] if root.is_file() else root.rglob("*.py"))]
    return sorted(str(path.relative_to(PACKAGE)) for path in found)


@pytest.mark.parametrize("module", modules())
def test_a_module_outside_messages_reads_no_field_of_a_message(module: str) -> None:
    assert reads((PACKAGE / module).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", WITHOUT_MESSAGES)
def test_every_listed_folder_exists(name: str) -> None:
    assert any(module.startswith(name) for module in modules())


@pytest.mark.parametrize(
    "source",
    [
        'message["role"]',
        'del message["content"]',
        'message.get("content", ())',
        'message.pop("tool_calls", None)',
        'if "tool_calls" in message: pass',
        'if "role" not in message: pass',
        'sorted(messages, key=itemgetter("role"))',
        'match message:\n case {"role": "user"}: pass',
    ],
)
def test_a_read_of_a_field_is_found(source: str) -> None:
    assert len(reads(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '{"role": "user", "content": text}',
        'request["content"] = text',
        'schema.get("properties")',
        'item.role == "user"',
    ],
)
def test_a_request_that_is_built_is_no_read(source: str) -> None:
    assert reads(source) == []
