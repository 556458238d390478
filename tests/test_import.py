from __future__ import annotations

import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import get_type_hints

import pytest

import policyctx

HEAVY = ("pydantic", "tiktoken", "toktok", "yaml", "anthropic", "rich", "typer", "pytest")


PLUGIN = "policyctx.testing.plugin"


def modules_after(statement: str, **environment: str) -> set[str]:
    script = f"{statement}\nimport sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return set(run.stdout.splitlines()[-1].split())


def test_importing_the_package_brings_in_nothing_heavy() -> None:
    assert modules_after("import policyctx").isdisjoint(HEAVY)


@pytest.mark.slow
def test_a_policy_in_characters_needs_no_tokenizer() -> None:
    statement = (
        "import policyctx, tempfile\n"
        "folder = tempfile.TemporaryDirectory()\n"
        "session = policyctx.Session('context-offload', root=folder.name)\n"
        "block = {'type': 'tool_result', 'tool_use_id': 'a', 'content': 'x' * 100}\n"
        "assert session.apply([{'role': 'user', 'content': [block]}]).offloaded_count == 1"
    )
    assert modules_after(statement).isdisjoint({"tiktoken", "rich", "typer"})


def test_a_run_of_pytest_without_features_imports_nothing_heavy() -> None:
    statement = "import pytest\npytest.main(['--markers', '-c', '/dev/null'])"
    imported = modules_after(statement, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_PLUGINS=PLUGIN)
    assert imported.isdisjoint({"pydantic", "pytest_bdd", "yaml"})


def test_every_public_name_is_there_and_listed_in_order() -> None:
    assert list(policyctx.__all__) == sorted(policyctx.__all__)
    for name in policyctx.__all__:
        assert getattr(policyctx, name).__name__ == name
    assert set(policyctx.__all__) <= set(dir(policyctx))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        importlib.import_module("policyctx").nope  # noqa: B018 - the access is what is tested


def test_a_session_imports_nothing_that_only_some_placeholders_show() -> None:
    modules_after(
        "from policyctx import Session; import sys; assert Session.apply; "
        "assert 'policyctx.outlines' not in sys.modules"
    )


FIRST_TURN = (
    "import policyctx, tempfile\n"
    "folder = tempfile.TemporaryDirectory()\n"
    "session = policyctx.Session('context-offload', root=folder.name)\n"
    "assert session.apply([{'role': 'user', 'content': 'List.'}]).messages"
)


def test_a_turn_that_is_not_awaited_imports_no_event_loop() -> None:
    slow = {"asyncio", "concurrent", "logging", "ssl", "subprocess", "tarfile"}
    assert modules_after(FIRST_TURN).isdisjoint(slow)


def test_a_first_turn_imports_nothing_that_compacts_records_searches_or_prices() -> None:
    rooms = {"compaction.prompt", "compaction.restoration", "turns.compacting", "turns.recorder"}
    rooms |= {"store.collector", "store.excerpts", "store.remote.backend", "pricing.rows"}
    modules = {f"policyctx.{room}" for room in rooms}
    assert all(map(find_spec, modules))
    assert modules_after(FIRST_TURN).isdisjoint(modules)


def test_a_proxy_has_loaded_what_a_later_turn_needs_before_the_first_one() -> None:
    late = {"turns.compacting", "turns.recorder", "compaction.restoration", "pricing.rows"}
    loaded = modules_after("import policyctx.proxy.turning")
    assert {f"policyctx.{room}" for room in late} <= loaded


@pytest.mark.parametrize("name", policyctx.__all__)
def test_the_types_of_what_is_public_can_be_looked_up(name: str) -> None:
    public = getattr(policyctx, name)
    for member in (public, *vars(public).values()) if isinstance(public, type) else (public,):
        if not getattr(member, "__name__", "_").startswith("_") and callable(member):
            get_type_hints(member)
