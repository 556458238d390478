"""`policyctx proxy`: what it refuses before it listens."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from policyctx.errors import PolicyError
from policyctx.proxy.command import Seldom
from policyctx.proxy.conversations import Identity
from policyctx.proxy.policies import Policies
from tests.cli.running import policyctx


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "--token-file"),  # noqa: S104 - it is refused
        (["--policy", "coding-agnet"], "did you mean 'coding-agent'"),
        (["--upstream", "google=http://a"], "--upstream takes"),
        (["--upstream", "openai=ftp://a"], "--upstream takes"),
        (["--agents", "nothing.yaml"], "nothing.yaml"),
        (["--token-file", "nothing"], "cannot read the token file"),
        (["--record", "calls.jsonl", "--dry-run"], "a dry run sends them unchanged"),
        (["--read-back", "tool"], "--read-back mcp"),
        (["--client", "other"], "--read-back mcp"),
    ],
)
def test_a_wrong_option_is_refused_with_a_reason(
    tmp_path: Path, options: list[str], said: str
) -> None:
    policy = [] if "--policy" in options else ["--policy", "coding-agent"]
    run = policyctx("proxy", *policy, *options, "--root", tmp_path / "root", cwd=tmp_path)
    assert run.returncode == 1
    assert said in " ".join(run.stderr.split())
    assert "listens" not in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("field", ["{session_id}", "{session_id:>3}"])
def test_a_root_with_a_session_id_is_refused(tmp_path: Path, field: str) -> None:
    run = policyctx("proxy", "--policy", "coding-agent", "--root", tmp_path / field, cwd=tmp_path)
    assert run.returncode == 1
    assert "--root is the folder of all sessions" in " ".join(run.stderr.split())
    assert not list(tmp_path.iterdir())


AGENTS = """\
apiVersion: policyctx/v1
agents:
  codex: small-context
  "my-*": coding-agent
"""


def policy_name(policies: Policies, client: str | None, **headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    identity = None if client is None else Identity(client, ("s",))
    return policies.policy_of(policies.agent_of(named, identity)).policy.name


def test_each_agent_has_the_policy_of_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "policyctx.yaml"
    path.write_text(AGENTS)
    policies = Policies("few-re-reads", path)
    assert policy_name(policies, "codex") == "small-context"
    assert policy_name(policies, "claude-code") == "few-re-reads"
    assert policy_name(policies, None, user_agent="My-Agent/1.0 (linux)") == "coding-agent"
    assert policy_name(policies, "codex", x_policyctx_agent="my-one") == "coding-agent"
    assert policy_name(policies, None) == "few-re-reads"


def test_a_wrong_file_of_agents_is_refused_and_later_ignored(tmp_path: Path) -> None:
    path = tmp_path / "policyctx.yaml"
    path.write_text(AGENTS.replace("small-context", "small-contxet"))
    with pytest.raises(PolicyError):
        Policies("few-re-reads", path)
    path.write_text(AGENTS)
    policies = Policies("few-re-reads", path)
    before = policies.policy_of("codex")
    path.write_text("agents: 7")
    policies.reload()
    assert policies.policy_of("codex") is before
    path.write_text(AGENTS.replace("codex: small-context", "codex: claude-code"))
    policies.reload()
    assert policies.policy_of("codex").policy.name == "claude-code"
    assert policies.reloads == 2


def test_a_line_of_the_log_is_repeated_a_few_times_in_a_minute() -> None:
    now = 0.0
    seldom = Seldom(lambda: now)

    def logged(text: str) -> str | None:
        record = logging.LogRecord("n", logging.ERROR, "p", 1, "%s", (text,), None)
        return record.getMessage() if seldom.filter(record) else None

    assert [logged("a") for _ in range(5)] == ["a"] * 3 + [None] * 2
    assert logged("b") == "b"
    now = 61.0
    assert logged("b") == "b"
    assert logged("a") == "a (2 more of these were not logged)"
    assert [logged("a") for _ in range(3)] == ["a", "a", None]
    assert all(logged(f"one of many {i}") for i in range(5000))
    now = 122.0
    stopped = "session {0}: offloading has stopped: /kept/{0} cannot be read: Too many open files"
    unknown = "session {0}: the context window of the model 'm-{0}' is not known: 8,000 tokens"
    for line in (stopped, unknown):
        passed = [line.format(i) for i in range(5000) if logged(line.format(i))]
        assert passed == [line.format(i) for i in range(3)]
        assert logged(line.format(0) + ", for another reason")
    now = 183.0
    again = stopped.format("x")
    assert logged(again) == f"{again} (4,997 more of these were not logged)"
    # a client chooses the name of a model, up to the size of a body
    assert logged("the model " + "m" * 1_000_000) == ("the model " + "m" * 2000)[:2000] + "…"
