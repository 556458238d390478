from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.errors import PolicyError
from policyctx.policy.agents import AgentEntry, AgentsFile, policy_for, read_agents
from policyctx.policy.sources import AGENTS_FILE, PolicySource, agents_source

HEAD = "apiVersion: policyctx/v1\n"


def agents(text: str) -> AgentsFile:
    """Read a `policyctx.yaml` from all but its version."""
    return read_agents(PolicySource(AGENTS_FILE, HEAD + text))


def written(folder: Path, text: str, name: str = AGENTS_FILE) -> AgentsFile:
    """Write a file into the folder, and read the `policyctx.yaml` that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(HEAD + text, encoding="utf-8")
    return read_agents(agents_source(folder))


def refused(text: str, agent: str | None = None) -> list[str]:
    """The mistakes of the file, or of what it says for an agent."""
    with pytest.raises(PolicyError) as raised:
        policy_for(agent or "none", agents(text))
    return [str(d).removeprefix(f"{AGENTS_FILE}:") for d in raised.value.diagnostics]


def test_entries_keep_their_order_and_place() -> None:
    file = agents("agents:\n  coder: coding-agent\n  '*': {min_chars: 5}\n")
    assert file.path == AGENTS_FILE
    assert [entry.pattern for entry in file.entries] == ["coder", "*"]
    assert [str(entry.place) for entry in file.entries] == [f"{AGENTS_FILE}:{n}:3" for n in (3, 4)]
    assert [entry.named for entry in file.entries] == ["coding-agent", None]
    assert all(isinstance(entry, AgentEntry) for entry in file.entries)


def test_an_exact_name_comes_before_globs_and_globs_in_the_order_written() -> None:
    file = agents("""\
agents:
  re*: {description: first glob}
  res*: {description: second glob}
  research: {description: exact}
  "*": {description: any}
""")
    found = {agent: policy_for(agent, file).description for agent in ("research", "rest", "x")}
    assert found == {"research": "exact", "rest": "first glob", "x": "any"}


def test_a_name_that_is_a_glob_too_is_found_by_its_name() -> None:
    file = agents("agents:\n  '*': {description: any}\n  a[1]: {description: exact}\n")
    assert policy_for("a[1]", file).description == "exact"
    assert policy_for("a1", file).description == "any"


def test_names_are_matched_letter_by_letter() -> None:
    file = agents("agents:\n  Coder: coding-agent\n")
    with pytest.raises(PolicyError, match="PC206"):
        policy_for("coder", file)


def test_an_entry_may_be_the_name_of_a_preset() -> None:
    assert policy_for("a", agents("agents: {a: context-offload}")).name == "context-offload"


def test_an_entry_may_be_a_path_from_the_folder_of_the_file(tmp_path: Path) -> None:
    written(tmp_path, "agents: {}")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/mine.yaml").write_text(f"{HEAD}name: mine\n", encoding="utf-8")
    file = written(tmp_path, "agents: {a: ./deep/mine.yaml}")
    assert policy_for("a", file).name == "mine"


def test_an_entry_may_be_a_policy_that_is_called_after_its_agent() -> None:
    policy = policy_for("web-1", agents("agents: {'web-*': {min_chars: 5}}"))
    assert (policy.name, policy.min_chars, policy.steps) == ("web-1", 5, ())


def test_a_policy_in_an_entry_extends_presets_and_files_beside_the_file(tmp_path: Path) -> None:
    base = "name: base\ndescription: from the base\nmin_chars: 7\n"
    written(tmp_path, "agents: {}")
    (tmp_path / "base.yaml").write_text(HEAD + base, encoding="utf-8")
    file = written(tmp_path, "agents: {a: {extends: [coding-agent, base.yaml], min_tokens: 9}}")
    policy = policy_for("a", file)
    assert (policy.name, policy.description) == ("a", "from the base")
    assert (policy.min_tokens, policy.min_chars) == (9, None)
    assert [step.name for step in policy.steps] == [
        "retire-old-results",
        "make-it-fit",
        "summarise",
    ]


def test_a_variable_may_name_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    file = agents("agents: {a: '${MINE:-coding-agent}'}")
    assert policy_for("a", file).name == "coding-agent"
    monkeypatch.setenv("MINE", "context-offload")
    assert policy_for("a", file).name == "context-offload"


def test_the_name_of_an_agent_is_not_looked_at_for_variables() -> None:
    assert policy_for("${X}", agents("agents: {'*': {}}")).name == "${X}"


def test_the_nearest_file_wins(tmp_path: Path) -> None:
    inner = tmp_path / "a/b"
    written(tmp_path, "agents: {x: coding-agent}")
    assert written(tmp_path / "a", "agents: {y: coding-agent}").entries[0].pattern == "y"
    inner.mkdir()
    assert read_agents(agents_source(inner)).entries[0].pattern == "y"
    assert agents_source(inner).name == str(tmp_path / "a" / AGENTS_FILE)


def test_the_file_of_the_working_directory_has_a_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "agents: {}")
    monkeypatch.chdir(tmp_path)
    assert agents_source().name == AGENTS_FILE


def test_a_missing_file_error_lists_the_searched_folders(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as raised:
        agents_source(tmp_path)
    folders = ", ".join(map(str, (tmp_path, *tmp_path.parents)))
    assert str(raised.value) == (
        f"policyctx.yaml: PC205: no such file in {folders}; `policyctx init` writes one"
    )


def test_a_missing_folder_is_not_searched_upwards(tmp_path: Path) -> None:
    written(tmp_path, "agents: {}")
    with pytest.raises(PolicyError) as raised:
        agents_source(tmp_path / "typo")
    assert str(raised.value) == f"{tmp_path / 'typo'}: PC205: no such folder"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent: {}", ["1:1: PC102: the key 'agents' is missing",
                       "2:1: PC101: unknown key 'agent'; did you mean 'agents'?"]),
        ("agents: {}\nzzz: 1", ["3:1: PC101: unknown key 'zzz'"]),
        ("agents: [a]", ["2:9: PC103: expected a map of agents, got a list"]),
        ("agents:", ["2:8: PC103: expected a map of agents, got nothing"]),
        ("agents: {'': coding-agent}", ["2:10: PC106: expected an agent's name or a glob, got ''"]),
        (
            "agents: {a: b, a: c}",
            [
                "2:16: PC004: the key 'a' stands twice; "
                "the first is at line 2, column 10; keep one of them"
            ],
        ),
        (
            "agents:\n  a: 5\n  b: [x]\n  c: {name: c, apiVersion: policyctx/v1}\nmore: 1",
            [
                "3:6: PC103: expected a preset's name, a file's path or a policy, got 5",
                "4:6: PC103: expected a preset's name, a file's path or a policy, got a list",
                "5:7: PC107: a policy in an entry has no `name`: it is called after its agent",
                "5:16: PC107: `apiVersion` stands once, at the top of the file",
                "6:1: PC101: unknown key 'more'",
            ],
        ),
    ],
)  # fmt: skip
def test_all_errors_in_the_form_of_the_file_are_reported_together(
    text: str, expected: list[str]
) -> None:
    assert refused(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: PC103: policyctx.yaml is a map of keys"),
        ("- a", "1:1: PC103: policyctx.yaml is a map of keys"),
        ("agents: {}", "1:1: PC102: the key 'apiVersion' is missing"),
        ("apiVersion: v2\nagents: {}", "1:13: PC104: expected 'policyctx/v1', got 'v2'"),
        ("apiVersion: {}\nagents: {}", "1:1: PC104: expected 'policyctx/v1', got a map"),
    ],
)
def test_the_version_must_be_there_and_known(text: str, expected: str) -> None:
    with pytest.raises(PolicyError) as raised:
        read_agents(PolicySource(AGENTS_FILE, text))
    assert str(raised.value) == f"{AGENTS_FILE}:{expected}"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("codng-agent", ["3:6: PC001: no policy 'codng-agent': it is neither a file nor a preset;"
                         " did you mean 'coding-agent'?"]),
        ("''", ["3:6: PC001: no policy '': it is neither a file nor a preset;"]),
        ("'${NO_SUCH_VARIABLE}'", ["3:6: PC110: the variable NO_SUCH_VARIABLE is not set;"]),
        ("{stor: {}, min_chars: x}", ["3:7: PC101: unknown key 'stor'; did you mean 'store'?",
                                      "3:28: PC103: expected a whole number, got 'x'"]),
        ("{extends: nope}", ["3:16: PC201: no policy 'nope' to extend"]),
        ("{extends: 5}", ["3:16: PC103: expected the name of a preset or the path of a file"]),
        ("{description: '${NO_SUCH_VARIABLE}'}",
         ["3:20: PC110: the variable NO_SUCH_VARIABLE is not set;"]),
        ("{steps: [{name: a}]}", ["3:15: PC102: the key 'do' is missing"]),
        ("{extends: coding-agent, steps: [{name: b, do: clear}]}",
         ["3:38: PC107: step 'b' would leave this wording"]),
    ],
)  # fmt: skip
def test_an_entry_is_checked_like_a_policy(entry: str, expected: list[str]) -> None:
    found = refused(f"agents:\n  a: {entry}\n  b: coding-agent\n", "a")
    assert [d[: len(e)] for d, e in zip(found, expected, strict=True)] == expected


def test_mistakes_of_a_file_are_placed_in_that_file(tmp_path: Path) -> None:
    written(tmp_path, "agents: {}")
    base = tmp_path / "base.yaml"
    base.write_text(f"{HEAD}name: base\nstor: {{}}\n", encoding="utf-8")
    file = written(tmp_path, "agents: {a: base.yaml, b: {extends: base.yaml}}")
    for agent in ("a", "b"):
        with pytest.raises(PolicyError) as raised:
            policy_for(agent, file)
        expected = f"{base}:3:1: PC101: unknown key 'stor'; did you mean 'store'?"
        assert str(raised.value) == expected


@pytest.mark.parametrize("says", ["./s.yaml", "{extends: ./s.yaml}"])
def test_nothing_of_a_file_that_is_not_a_policy_is_shown(says: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("password: hunter2\n", encoding="utf-8")
    with pytest.raises(PolicyError) as raised:
        policy_for("a", written(tmp_path, f"agents: {{a: {says}}}"))
    [found] = raised.value.diagnostics
    assert (found.code, found.place.line) == ("PC208", 2)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("says", ["../s.yaml", "{extends: ../s.yaml}"])
def test_an_entry_does_not_leave_the_project(says: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"{HEAD}name: s\n", encoding="utf-8")
    (tmp_path / "project" / ".git").mkdir(parents=True)
    with pytest.raises(PolicyError, match=r"PC207: '\.\./s\.yaml' is outside of the project"):
        policy_for("a", written(tmp_path / "project", f"agents: {{a: {says}}}"))


def test_an_entry_that_extends_the_file_of_agents_is_a_cycle(tmp_path: Path) -> None:
    file = written(tmp_path, "agents: {a: {extends: ./policyctx.yaml}}")
    with pytest.raises(PolicyError, match="2:23: PC202: a policy extends itself"):
        policy_for("a", file)


def test_a_wrong_entry_does_not_affect_the_other_agents() -> None:
    file = agents("agents: {a: nope, b: coding-agent}")
    assert policy_for("b", file).name == "coding-agent"


@pytest.mark.parametrize(
    ("text", "agent", "hint"),
    [
        ("{coder: coding-agent, 'web-*': coding-agent}", "codr",
         "did you mean 'coder'? Its entries are coder, web-*"),
        ("{coder: coding-agent}", "zzz", "its entries are coder"),
        ("{}", "coder", "it has no entries"),
        ("{'*': coding-agent}", "", "its entries are *"),
    ],
)  # fmt: skip
def test_an_unknown_agent_error_lists_the_known_and_a_suggestion(
    text: str, agent: str, hint: str
) -> None:
    with pytest.raises(PolicyError) as raised:
        policy_for(agent, agents(f"agents: {text}"))
    expected = f"{AGENTS_FILE}:2:1: PC206: no entry for the agent {agent!r}; {hint}"
    assert str(raised.value) == expected
