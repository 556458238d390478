"""Feature files in a folder of their own, run by pytest."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

INI = "[pytest]\npolicyctx_features = .\n"
POLICY = """\
apiVersion: policyctx/v1
name: mine
min_chars: 100
items: {tool_result: {offload: true}}
placeholder: "[{relative_path}]"
steps: [{name: leave, do: offload}]
"""
HOLDS = """\
Given the policy "mine.yaml"
And a result of 300 characters
When the policy is applied
Then 1 result is offloaded
"""


def write(
    pytester: pytest.Pytester, *scenarios: str, head: str = "Feature: Mine", **files: str
) -> None:
    """Write `mine.feature` with these scenarios, and what it needs; files by name and suffix."""
    text = feature(*scenarios, head=head)
    given = {"pytest_ini": INI, "mine_yaml": POLICY, "mine_feature": text, **files}
    for name, content in given.items():
        stem, _, suffix = name.rpartition("_")
        path = pytester.path / f"{stem}.{suffix}"
        path.write_text(dedent(content) + "\n", encoding="utf-8")


def only_the_plugins_for_xdist(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the processes of pytest load no other plugin, which takes longer than the scenarios."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist -p pytest-bdd -p policyctx")


def feature(*scenarios: str, head: str = "Feature: Mine") -> str:
    """A feature of these scenarios."""
    body = "\n\n".join(indent(dedent(text), "  ") for text in scenarios)
    return f"{head}\n{body}"


def scenario(name: str = "One", steps: str = HOLDS, keyword: str = "Scenario") -> str:
    """A scenario with these steps."""
    return f"{keyword}: {name}\n{indent(dedent(steps), '  ')}"
