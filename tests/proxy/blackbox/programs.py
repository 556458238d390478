"""Agents that other people wrote, as programs: where they are, and how each takes a base URL.

`scripts/test-clients` installs them in a folder of their own, from the registries of their
languages. Nothing here fetches anything. Each runs with a home folder of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
# `scripts/test-clients` installs there.
CLIENTS = Path(os.environ.get("POLICYCTX_CLIENTS") or Path(_CACHE, "policyctx-clients"))
# The longest that a task may take, in seconds.
_LONGEST = 60
KEY = "sk-scripted-0000"
TASK = "Compile all modules."


@dataclass(frozen=True, slots=True)
class Program:
    """A program: where it is installed, and what it takes to give it a task and a base URL.

    `configure` writes its settings below the home folder and returns further variables of the
    environment. `accepted` names the fields of a request that the program sends and that the rules
    of the API do not know; `path` is the route that it calls.
    """

    name: str
    installed: Path
    arguments: tuple[str, ...]
    configure: Callable[[Path, str], Mapping[str, str]]
    path: str
    accepted: frozenset[str] = frozenset()
    last_command: str | None = None
    """The command by which the agent ends its task, None if it ends by a text."""

    @property
    def is_installed(self) -> bool:
        """Whether the program is there."""
        return self.installed.exists()

    def run(self, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the task in `folder / "work"` against a base URL without `/v1`, to its end."""
        home, work = folder / "home", folder / "work"
        home.mkdir(parents=True)
        work.mkdir()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "NO_PROXY": "127.0.0.1",
            **self.configure(home, url),
        }
        return subprocess.run(
            [str(self.installed), *self.arguments],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )


def _codex(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".codex"
    folder.mkdir()
    settings = f"""\
model = "gpt-5.1"
model_provider = "policyctx"

[model_providers.policyctx]
name = "policyctx"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
    (folder / "config.toml").write_text(settings)
    return {"CODEX_HOME": str(folder), "OPENAI_API_KEY": KEY}


def _pi(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".pi" / "agent"
    folder.mkdir(parents=True)
    settings = {"providers": {"anthropic": {"baseUrl": url}}}
    (folder / "models.json").write_text(json.dumps(settings))
    return {"ANTHROPIC_API_KEY": KEY, "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}


def _mini(home: Path, url: str) -> Mapping[str, str]:
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_API_BASE": f"{url}/v1",
        "MSWEA_GLOBAL_CONFIG_DIR": str(home),
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def _opencode(home: Path, url: str) -> Mapping[str, str]:
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    provider = {"options": {"baseURL": f"{url}/v1"}}
    settings = {"provider": {"anthropic": provider}, "autoupdate": False, "share": "disabled"}
    (folder / "opencode.json").write_text(json.dumps(settings))
    return {
        "ANTHROPIC_API_KEY": KEY,
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def _aider(_: Path, url: str) -> Mapping[str, str]:
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_API_BASE": f"{url}/v1",
        "AIDER_ANALYTICS": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


_NODE = CLIENTS / "node" / "node_modules" / ".bin"
CODEX = Program(
    "codex",
    _NODE / "codex",
    ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK),
    _codex,
    "/v1/responses",
    accepted=frozenset({"client_metadata"}),
)
PI = Program(
    "pi",
    _NODE / "pi",
    ("--print", "--provider", "anthropic", "--model", "claude-sonnet-4-5", TASK),
    _pi,
    "/v1/messages",
)
OPENCODE = Program(
    "opencode",
    _NODE / "opencode",
    ("run", "--model", "anthropic/claude-sonnet-4-5", TASK),
    _opencode,
    "/v1/messages",
)
MINI = Program(
    "mini-swe-agent",
    CLIENTS / "mini-swe-agent" / "bin" / "mini",
    (
        *("--yolo", "--exit-immediately", "--cost-limit", "0", "--model", "openai/gpt-5.1"),
        *("--task", TASK),
    ),
    _mini,
    "/v1/chat/completions",
    accepted=frozenset({"provider_specific_fields"}),
    last_command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)
AIDER = Program(
    "aider",
    CLIENTS / "aider" / "bin" / "aider",
    (
        *("--model", "openai/gpt-4o", "--yes-always", "--no-git", "--no-check-update"),
        *("--no-show-release-notes", "--no-analytics", "--message", TASK),
    ),
    _aider,
    "/v1/chat/completions",
)
PROGRAMS = (CODEX, PI, MINI, OPENCODE, AIDER)
