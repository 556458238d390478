"""The package of an integration that is missing or too old is reported, with the command for it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from policyctx.errors import install_command

# Each integration, the package that it imports, and files of a version that is too old.
PACKAGES = {
    "anthropic": ("anthropic", {"__init__.py": "__version__ = '0.105.0'"}),
    "openai": ("openai", {"__init__.py": "__version__ = '1.99.0'"}),
    "openai_agents": ("agents", {"__init__.py": "", "run.py": ""}),
    "langchain": ("langchain", {"__init__.py": ""}),
    "pydantic_ai": ("pydantic_ai", {"__init__.py": "__version__ = '1.70.0'"}),
    "strands": ("strands", {"__init__.py": ""}),
    "agent_framework": ("agent_framework", {"__init__.py": "__version__ = '0.9'"}),
    "adk": ("google.adk", {"__init__.py": "__version__ = '1.6.0'"}),
    "smolagents": ("smolagents", {"__init__.py": "__version__ = '1.20.0'"}),
    "litellm": ("litellm", {"__init__.py": ""}),
    "inspect_ai": ("inspect_ai", {"__init__.py": "__version__ = '0.3.283'"}),
}
# The extras that have another name than the integration.
EXTRAS = {"inspect_ai": "inspect"}
TOO_OLD = {
    "anthropic": "needs anthropic>=0.110, and 0.105.0 is installed",
    "openai": "needs openai>=2.2, and 1.99.0 is installed",
    "openai_agents": "needs openai-agents>=0.4",
    "langchain": "needs langchain>=1.0",
    "pydantic_ai": "needs pydantic-ai-slim>=2.17, and 1.70.0 is installed",
    "strands": "needs strands-agents>=1.36",
    "agent_framework": "needs agent-framework-core>=1.11, and 0.9 is installed",
    "adk": "needs google-adk>=1.7, and 1.6.0 is installed",
    "smolagents": "needs smolagents>=1.21, and 1.20.0 is installed",
    "litellm": "needs litellm>=1.100",
    "inspect_ai": "needs inspect-ai>=0.3.284, and 0.3.283 is installed",
}


# Each import has a fork of one interpreter that has imported what the integrations share.
IMPORTING = """
import importlib, json, os, sys
import policyctx.session
for integration, folder in json.load(sys.stdin):
    if os.fork() == 0:
        os.dup2(os.open(folder + "/stderr", os.O_WRONLY | os.O_CREAT), 2)
        sys.path.insert(0, folder)
        importlib.import_module("policyctx.integrations." + integration)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Import each integration with its package too old or missing; return what is on stderr."""
    asked = {}
    for integration, (package, files) in PACKAGES.items():
        missing = {"__init__.py": "raise ImportError('not there')"}
        for case, written in (("old", files), ("missing", missing)):
            folder = asked[integration, case] = tmp_path_factory.mktemp(case)
            place = folder / package.replace(".", "/")
            place.mkdir(parents=True)
            for name, code in written.items():
                (place / name).write_text(code)
    run = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        input=json.dumps(
            [(integration, str(asked[integration, case])) for integration, case in asked]
        ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["1"] * len(asked)
    return {key: (folder / "stderr").read_text() for key, folder in asked.items()}


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_too_old_is_reported(
    errors: dict[tuple[str, str], str], integration: str
) -> None:
    assert TOO_OLD[integration] in errors[integration, "old"]


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_missing_is_reported(
    errors: dict[tuple[str, str], str], integration: str
) -> None:
    command = install_command(EXTRAS.get(integration, integration.replace("_", "-")))
    assert command in errors[integration, "missing"]


def test_importing_the_integrations_imports_no_package() -> None:
    packages = [name for name, _ in PACKAGES.values()]
    script = (
        f"import policyctx.integrations, sys; print(sorted(set({packages}) & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
