"""Agents that other people wrote, as programs: where they are, and how each takes a base URL.

`scripts/test-clients` installs them in a folder of their own, from the registries of their
languages. Nothing here fetches anything. Each runs with a home folder of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
# `scripts/test-clients` installs there.
CLIENTS = Path(os.environ.get("POLICYCTX_CLIENTS") or Path(_CACHE, "policyctx-clients"))
# The address of the proxy in the documents, which a run replaces by the one that it has.
ADDRESS = "http://127.0.0.1:8377"
KEY = "sk-scripted-0000"
TASK = "Compile all modules."
# The longest that a task may take, in seconds.
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Program:
    """A program: where it is installed, and what it takes to give it a task and a base URL.

    `settings` are the texts of files below the home folder and `variables` are set in the
    environment, both as the documents show them; `quiet` are variables that only a test sets.
    `accepted` names the fields of a request that the program sends and that the rules of the API do
    not know; `path` is the route that it calls. `last_command` ends the task of an agent that does
    not end it by a text. The documents show `shown` words of the command. `prepared` are the
    arguments of a command of the program that has to run before.
    """

    name: str
    installed: Path
    arguments: tuple[str, ...]
    path: str
    settings: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    quiet: Mapping[str, str] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()
    last_command: str | None = None
    shown: int = 1
    prepared: tuple[str, ...] = ()

    def run(self, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the task in `folder / "work"` against a base URL without `/v1`, to its end."""
        home, work = folder / "home", folder / "work"
        home.mkdir(parents=True)
        work.mkdir()
        for name, text in self.settings.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace(ADDRESS, url))
        variables = {name: text.replace(ADDRESS, url) for name, text in self.variables.items()}
        environment = {
            "PATH": f"{_NODE}:{os.environ['PATH']}",
            "HOME": str(home),
            "NO_PROXY": "127.0.0.1",
            "ANTHROPIC_API_KEY": KEY,
            "OPENAI_API_KEY": KEY,
            **variables,
            **self.quiet,
        }
        for arguments in filter(None, (self.prepared, self.arguments)):
            run = subprocess.run(
                [str(self.installed), *(one.replace(ADDRESS, url) for one in arguments)],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_LONGEST,
                check=False,
            )
            if run.returncode:
                break
        return run


_CODEX = """\
model_provider = "policyctx"

[model_providers.policyctx]
name = "policyctx"
base_url = "http://127.0.0.1:8377/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
_CODEX_MCP = """\
[mcp_servers.policyctx]
url = "http://127.0.0.1:8377/_policyctx/mcp"
bearer_token_env_var = "OPENAI_API_KEY"
"""
_PI = """\
{
  "providers": {
    "anthropic": {"baseUrl": "http://127.0.0.1:8377"}
  }
}
"""
_OPENCODE = """\
{
  "provider": {
    "anthropic": {"options": {"baseURL": "http://127.0.0.1:8377/v1"}}
  }
}
"""
_OPENCODE_MCP = """\
{
  "provider": {
    "anthropic": {"options": {"baseURL": "http://127.0.0.1:8377/v1"}}
  },
  "mcp": {
    "policyctx": {
      "type": "remote",
      "url": "http://127.0.0.1:8377/_policyctx/mcp",
      "headers": {"x-api-key": "{env:ANTHROPIC_API_KEY}"},
      "oauth": false
    }
  }
}
"""
_NODE = CLIENTS / "node" / "node_modules" / ".bin"
_LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
CODEX = Program(
    "codex",
    _NODE / "codex",
    (
        *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        *("--model", "gpt-5.1", TASK),
    ),
    "/v1/responses",
    settings={".codex/config.toml": _CODEX},
    accepted=frozenset({"client_metadata"}),
)
CLAUDE = Program(
    "claude-code",
    _NODE / "claude",
    ("-p", "--model", "claude-sonnet-4-5", "--tools", "Bash", "--allowedTools", "Bash", "--", TASK),
    "/v1/messages",
    variables={"ANTHROPIC_BASE_URL": ADDRESS},
    quiet={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
)
PI = Program(
    "pi",
    _NODE / "pi",
    ("--provider", "anthropic", "--print", "--model", "claude-sonnet-4-5", TASK),
    "/v1/messages",
    settings={".pi/agent/models.json": _PI},
    quiet={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
    shown=3,
)
OPENCODE = Program(
    "opencode",
    _NODE / "opencode",
    ("run", "--model", "anthropic/claude-sonnet-4-5", TASK),
    "/v1/messages",
    settings={".config/opencode/opencode.json": _OPENCODE},
    quiet={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    },
)
MINI = Program(
    "mini-swe-agent",
    CLIENTS / "mini-swe-agent" / "bin" / "mini",
    (
        *("--model", "openai/gpt-5.1", "--yolo", "--exit-immediately", "--cost-limit", "0"),
        *("--task", TASK),
    ),
    "/v1/chat/completions",
    variables={"OPENAI_API_BASE": f"{ADDRESS}/v1"},
    quiet={"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", **_LITELLM},
    accepted=frozenset({"provider_specific_fields"}),
    last_command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    shown=3,
)
AIDER = Program(
    "aider",
    CLIENTS / "aider" / "bin" / "aider",
    (
        *("--model", "openai/gpt-4o", "--yes-always", "--no-git", "--no-check-update"),
        *("--no-show-release-notes", "--no-analytics", "--message", TASK),
    ),
    "/v1/chat/completions",
    variables={"OPENAI_API_BASE": f"{ADDRESS}/v1"},
    quiet=_LITELLM,
    shown=3,
)
# The same with the MCP server of the proxy.
CLAUDE_READING = replace(
    CLAUDE,
    prepared=(
        *("mcp", "add", "--transport", "http", "policyctx", f"{ADDRESS}/_policyctx/mcp"),
        *("--header", "x-api-key: ${POLICYCTX_KEY}"),
    ),
    arguments=("--allowedTools", "mcp__policyctx__read_offloaded", *CLAUDE.arguments),
    quiet={**CLAUDE.quiet, "POLICYCTX_KEY": KEY},
)
CODEX_READING = replace(CODEX, settings={".codex/config.toml": f"{_CODEX}\n{_CODEX_MCP}"})
OPENCODE_READING = replace(OPENCODE, settings={".config/opencode/opencode.json": _OPENCODE_MCP})
READING = {"codex": _CODEX_MCP, "opencode": _OPENCODE_MCP}
PROGRAMS = (CLAUDE, CODEX, PI, OPENCODE, MINI, AIDER)
