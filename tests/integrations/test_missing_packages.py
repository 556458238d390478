"""The package of an integration that is missing or too old is reported, with the command for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    "pydantic_ai": "needs pydantic-ai-slim>=2.0, and 1.70.0 is installed",
    "strands": "needs strands-agents>=1.36",
    "agent_framework": "needs agent-framework-core>=1.11, and 0.9 is installed",
    "adk": "needs google-adk>=1.7, and 1.6.0 is installed",
    "smolagents": "needs smolagents>=1.21, and 1.20.0 is installed",
    "litellm": "needs litellm>=1.100",
    "inspect_ai": "needs inspect-ai>=0.3.284, and 0.3.283 is installed",
}


def error_of_import(integration: str, files: dict[str, str], folder: Path) -> str:
    """Import an integration with these files as its package, and return what is on stderr."""
    package = folder / PACKAGES[integration][0].replace(".", "/")
    package.mkdir(parents=True)
    for name, code in files.items():
        (package / name).write_text(code)
    run = subprocess.run(
        [sys.executable, "-c", f"import policyctx.integrations.{integration}"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    return run.stderr


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_too_old_is_reported(tmp_path: Path, integration: str) -> None:
    files = PACKAGES[integration][1]
    assert TOO_OLD[integration] in error_of_import(integration, files, tmp_path)


@pytest.mark.parametrize("integration", PACKAGES)
def test_a_package_that_is_missing_is_reported(tmp_path: Path, integration: str) -> None:
    files = {"__init__.py": "raise ImportError('not there')"}
    command = install_command(EXTRAS.get(integration, integration.replace("_", "-")))
    assert command in error_of_import(integration, files, tmp_path)


@pytest.mark.parametrize("package", [name for name, _ in PACKAGES.values()])
def test_importing_the_integrations_does_not_import_a_package(package: str) -> None:
    script = f"import policyctx.integrations, sys; sys.exit({package!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
