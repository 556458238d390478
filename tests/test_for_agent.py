from __future__ import annotations

import re
from pathlib import Path

import pytest

import policyctx
from policyctx import PolicyError
from tests.conversations import session_of

FILE = """\
apiVersion: policyctx/v1
agents:
  coder: context-offload
  "web-*": {extends: context-offload, min_chars: 10}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policyctx.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "src").mkdir()
    return tmp_path


def test_an_agents_session_runs_under_its_policy(folder: Path) -> None:
    messages = session_of("x" * 50)
    for agent, count in (("coder", 0), ("web-search", 1)):
        session = policyctx.for_agent(agent, root=folder / agent, directory=folder)
        assert session.apply(messages).offloaded_count == count
    assert (folder / "web-search/tool-result-c0.md").is_file()


def test_root_and_session_id_are_those_of_the_session(folder: Path) -> None:
    session = policyctx.for_agent("coder", root=folder / "r", session_id="s", directory=folder)
    assert (session.store.root, session.session_id) == (folder / "r", "s")


def test_the_counter_is_that_of_the_session_and_of_its_children(folder: Path) -> None:
    session = policyctx.for_agent("web-1", directory=folder, root=folder / "r", counter=len)
    message = [{"role": "user", "content": "x" * 50}]
    for one in (session, session.child("helper"), session.child("other", "coding-agent")):
        assert one.plan(message).tokens_before == 50
    of_its_own = session.child("third", counter=lambda _text: 7)
    assert of_its_own.plan(message).tokens_before == 7


def test_the_file_is_found_from_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "src")
    assert policyctx.for_agent("web-1").policy.policy.name == "web-1"
    assert policyctx.for_agent("coder", directory="..").policy.policy.name == "context-offload"


def test_no_file_is_a_policy_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="PC205: no such file in"):
        policyctx.for_agent("coder", directory=tmp_path)


def test_no_entry_is_a_policy_error(folder: Path) -> None:
    with pytest.raises(PolicyError, match="PC206: no entry for the agent 'codr'; did you mean"):
        policyctx.for_agent("codr", directory=folder)


def test_the_example_in_the_docs_loads_as_described(tmp_path: Path) -> None:
    docs = (Path(__file__).parents[1] / "docs/agents.md").read_text(encoding="utf-8")
    example = re.search(r"^```yaml\n(.*?)^```", docs, re.DOTALL | re.MULTILINE)
    assert example
    (tmp_path / "policyctx.yaml").write_text(example.group(1), encoding="utf-8")
    (tmp_path / "policies").mkdir()
    reviewer = "apiVersion: policyctx/v1\nname: careful\ndescription: Reviews.\n"
    (tmp_path / "policies/reviewer.yaml").write_text(reviewer, encoding="utf-8")
    agents = ("coder", "reviewer", "research-web", "any")
    found = [policyctx.for_agent(agent, directory=tmp_path).policy.policy for agent in agents]
    names = ["coding-agent", "careful", "research-web", "context-offload"]
    assert [policy.name for policy in found] == names
    assert (found[2].description, found[2].model.context_window) == ("Reviews.", 1_000_000)
