from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given

from policyctx.cli.output import Format, shown
from policyctx.errors import PolicyError
from policyctx.policy.loading import load_policy, resolved
from policyctx.policy.models.rules import Placeholder
from policyctx.policy.sources import policy_source
from policyctx.testing.strategies import policy_documents
from tests.counting import functions_called
from tests.policies import HEAD


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class Folder:
    """A folder of policies that extend one another."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        path = self.path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + dedent(text), encoding="utf-8")
        return path

    def resolved(self, text: str) -> dict[str, Any]:
        found: dict[str, Any] = resolved(policy_source(self.write("own", text))).plain()
        return found

    def error(self, text: str) -> str:
        with pytest.raises(PolicyError) as raised:
            load_policy(self.write("own", text))
        return str(raised.value).replace(f"{self.path}/", "")


def test_maps_merge_by_key_and_the_own_file_wins(folder: Folder) -> None:
    folder.write("base", "model: {context_window: 1000, tokenizer: cl100k_base}\ndescription: base")
    found = folder.resolved("extends: base.yaml\nmodel: {context_window: 2000}")
    assert found["model"] == {"context_window": 2000, "tokenizer": "cl100k_base"}
    assert found["description"] == "base"
    assert "extends" not in found


BASE = """
placeholder: 'Path: {path}'
items: {tool_result: {offload: true}}
store: {on_conflict: overwrite}
compaction: {wording: {summary: '{summary}'}}
steps:
  - {name: tidy, do: offload, select: {types: [tool_result]}}
  - {name: summarise, do: compact, when: {tokens: {at_least: 80%}}}
"""


@pytest.mark.parametrize(
    ("own", "at", "said"),
    [
        ("steps:\n- {name: tidy, do: clear}", "5:3", "PC107: step 'tidy' would leave this wording"),
        ("steps:\n- {name: new, do: clear}", "5:3", "PC107: step 'new' would leave this wording"),
        ("steps:\n- {name: new, do: compact}", "5:3", "PC107: `compact` must be the last step"),
        ("compaction:\n  summary:\n    by: none", "6:9", "PC107: `by: none` makes no summary"),
        ("store:\n  root: 's3://b/x'", "5:9", "PC107: `overwrite` is for folders"),
    ],
)
@pytest.mark.parametrize("levels", [1, 2])
def test_a_mistake_of_an_inherited_key_is_reported_at_the_line_that_makes_it_one(
    folder: Folder, own: str, at: str, said: str, levels: int
) -> None:
    folder.write("base", BASE)
    text, name = f"extends: base.yaml\n{own}", "own"
    if levels == 2:
        folder.write("middle", text)
        text, name = "extends: middle.yaml\nmin_tokens: 9", "middle"
    [told] = folder.error(text).splitlines()
    assert told.startswith(f"{name}.yaml:{at}: {said}")
    assert "; the inherited line is base.yaml:" in told


@pytest.mark.parametrize("place", [0, 20, 59])
def test_the_line_of_a_mistake_is_found_in_a_long_list_of_steps(folder: Folder, place: int) -> None:
    """Each step tried by itself would load the policy 60 times."""
    folder.write("base", BASE)
    steps = [f"- {{name: s{i}, do: offload, select: {{keep_recent: {i}}}}}" for i in range(60)]
    own = folder.write("own", "\n".join(["extends: base.yaml", "steps:", *steps]))
    load_policy(own)
    loading = functions_called(lambda: load_policy(own))
    steps[place] = "- {name: tidy, do: clear}"
    own = folder.write("own", "\n".join(["extends: base.yaml", "steps:", *steps]))

    def fail() -> None:
        with pytest.raises(PolicyError):
            load_policy(own)

    called = functions_called(fail)
    assert called < 20 * loading
    told = folder.error("\n".join(["extends: base.yaml", "steps:", *steps]))
    assert told.startswith(f"own.yaml:{place + 5}:3: PC107: step 'tidy' would leave this wording")


def test_a_mistake_of_a_base_by_itself_is_reported_there(folder: Folder) -> None:
    folder.write("base", f"{BASE}  - {{name: last, do: clear}}")
    text = "extends: base.yaml\nsteps: [{name: tidy, do: clear}]"
    assert folder.error(text) == "base.yaml:10:27: PC107: `compact` must be the last step"


def test_an_overridden_inherited_placeholder_is_accepted(folder: Folder) -> None:
    folder.write("base", "placeholder: 'Path: {path}'\nitems: {tool_result: {offload: true}}")
    items = "items: {tool_result: {placeholder: gone}}"
    text = f"extends: base.yaml\n{items}\nsteps: [{{name: tidy, do: clear}}]"
    policy = load_policy(folder.write("own", text))
    assert policy.items["tool_result"].placeholder == Placeholder(text="gone")


def test_a_gate_that_weighs_prices_needs_none_in_the_policy(folder: Folder) -> None:
    prices = "{input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}"
    folder.write("base", f"model: {{price: {prices}}}")
    gate = "{pays_back: {at_most: 25%}}"
    step = f"{{name: a, do: drop, select: {{types: ['*']}}, when: {gate}}}"
    load_policy(folder.write("own", f"extends: base.yaml\nsteps: [{step}]"))
    load_policy(folder.write("alone", f"steps: [{step}]"))


def test_the_later_of_several_bases_wins(folder: Folder) -> None:
    folder.write("one", "description: one\nmin_chars: 1")
    folder.write("two", "description: two")
    found = folder.resolved("extends: [one.yaml, two.yaml]")
    assert (found["description"], found["min_chars"]) == ("two", 1)


def test_a_preset_is_extended_by_its_name(folder: Folder) -> None:
    policy = load_policy(folder.write("own", "extends: coding-agent\nmin_tokens: 9"))
    assert (policy.name, policy.min_tokens) == ("test", 9)
    assert [step.name for step in policy.steps] == [
        "retire-old-results",
        "make-it-fit",
        "summarise",
    ]


def test_paths_are_below_the_file_that_names_them(folder: Folder) -> None:
    folder.write("sub/middle", "extends: ../base.yaml")
    folder.write("base", "min_chars: 7")
    assert folder.resolved("extends: sub/middle.yaml")["min_chars"] == 7


def test_a_threshold_replaces_the_other_unit(folder: Folder) -> None:
    folder.write("base", "min_chars: 7\ntools: {a: {min_tokens: 1, pin: true}}")
    found = folder.resolved("extends: base.yaml\nmin_tokens: 8\ntools: {a: {min_chars: 2}}")
    assert "min_chars" not in found
    assert found["tools"] == {"a": {"pin": True, "min_chars": 2}}


def test_conditions_and_shapes_are_replaced_whole(folder: Folder) -> None:
    base = """\
        items:
          web: {match: {type: tool_result, tool: a}, keep_recent: {items: 1, per: all}}
        placeholder: {text: base, line_numbers: true}
        """
    own = """\
        extends: base.yaml
        items:
          web: {match: {type: tool_call}, keep_recent: {items: 2}}
        placeholder: {text: own}
        """
    folder.write("base", base)
    found = folder.resolved(own)
    assert found["items"] == {"web": {"match": {"type": "tool_call"}, "keep_recent": {"items": 2}}}
    assert found["placeholder"] == {"text": "own"}


def test_own_types_and_globs_are_tried_before_those_of_the_bases(folder: Folder) -> None:
    folder.write("base", "tools: {'a*': {}, 'b*': {}}\nitems: {tool_result: {}, image: {}}")
    found = folder.resolved("extends: base.yaml\ntools: {'c*': {}, 'b*': {}}\nitems: {image: {}}")
    assert list(found["tools"]) == ["c*", "b*", "a*"]
    assert list(found["items"]) == ["image", "tool_result"]


STEPS = "steps: [{name: a, do: offload}, {name: b, do: offload, on: arrival}]"


@pytest.mark.parametrize(
    ("own", "names"),
    [
        ("{name: c, do: offload}", ["a", "b", "c"]),
        ("{name: c, do: offload, before: b}", ["a", "c", "b"]),
        ("{name: a, remove: true}", ["b"]),
        ("{name: b, do: offload}", ["a", "b"]),
        ("{name: c, do: offload, before: a}, {name: d, do: offload, before: c}",
         ["d", "c", "a", "b"]),
    ],
)  # fmt: skip
def test_steps_merge_by_name(folder: Folder, own: str, names: list[str]) -> None:
    folder.write("base", STEPS)
    steps = folder.resolved(f"extends: base.yaml\nsteps: [{own}]")["steps"]
    assert [step["name"] for step in steps] == names
    assert all({"before", "remove"}.isdisjoint(step) for step in steps)


def test_a_step_of_a_known_name_is_replaced_in_place_and_whole(folder: Folder) -> None:
    folder.write("base", STEPS)
    found = folder.resolved("extends: base.yaml\nsteps: [{name: b, do: offload}]")
    assert found["steps"][1] == {"name": "b", "do": "offload"}


def test_a_chain_is_the_same_as_its_links_in_order(folder: Folder) -> None:
    folder.write("a", f"min_chars: 1\ntools: {{x: {{pin: true}}}}\n{STEPS}")
    middle = "tools: {y: {pin: true}, x: {offload: true}}\nsteps: [{name: a, do: offload}]"
    folder.write("b", middle)
    folder.write("ab", f"extends: a.yaml\n{middle}")
    own = "min_tokens: 5\nsteps: [{name: c, do: offload, before: b}]"
    chained = folder.resolved(f"extends: ab.yaml\n{own}")
    assert chained == folder.resolved(f"extends: [a.yaml, b.yaml]\n{own}")


@pytest.mark.slow
@given(policy_documents(), policy_documents(), policy_documents())
def test_extending_is_associative(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    with TemporaryDirectory() as name:

        def write(file: str, value: dict[str, Any], *bases: str) -> Path:
            path = Path(name) / file
            text = json.dumps({**value, "extends": [*bases]}, ensure_ascii=False)
            path.write_text(text, encoding="utf-8")
            return path

        write("a", first)
        write("b", second)
        write("ab", second, "a")
        chained = resolved(policy_source(write("c", third, "ab"))).plain()
        listed = resolved(policy_source(write("d", third, "a", "b"))).plain()
        assert chained == listed
        # The order of tools and types is the order in which they are tried.
        assert list(chained.get("tools", {})) == list(listed.get("tools", {}))
        assert list(chained.get("items", {})) == list(listed.get("items", {}))


def test_a_cycle_is_refused_with_the_chain(folder: Folder) -> None:
    folder.write("a", "extends: b.yaml")
    folder.write("b", "extends: own.yaml")
    assert folder.error("extends: a.yaml") == (
        "b.yaml:3:10: PC202: a policy extends itself: own.yaml -> a.yaml -> b.yaml -> own.yaml"
    )


def test_eight_levels_are_read_and_nine_are_not(folder: Folder) -> None:
    folder.write("p0", "min_chars: 1")
    for level in range(1, 9):
        folder.write(f"p{level}", f"extends: p{level - 1}.yaml")
    assert folder.resolved("extends: p7.yaml")["min_chars"] == 1
    error = folder.error("extends: p8.yaml")
    assert error.startswith(
        "p1.yaml:3:10: PC203: more than 8 policies extend one another: own.yaml"
    )


def test_a_missing_base_is_reported_where_it_is_named(folder: Folder) -> None:
    assert folder.error("extends: [coding-agnet]").startswith(
        "own.yaml:3:11: PC201: no policy 'coding-agnet' to extend: it is neither a file nor a"
        " preset; did you mean 'coding-agent'?"
    )


def test_a_mistake_in_a_base_is_placed_in_the_base(folder: Folder) -> None:
    folder.write("base", "min_chars: x\nplaceholder: '{pth}'")
    assert [line.split(": ")[0] for line in folder.error("extends: base.yaml").splitlines()] == [
        "base.yaml:3:12",
        "base.yaml:4:15",
    ]


def test_name_and_version_are_not_inherited(folder: Folder) -> None:
    folder.write("base", "")
    own = folder.path / "bare.yaml"
    own.write_text("extends: base.yaml\n", encoding="utf-8")
    with pytest.raises(PolicyError) as raised:
        load_policy(own)
    assert [(d.sentence, d.hint) for d in raised.value.diagnostics] == [
        ("the key 'apiVersion' is missing", "write `apiVersion: policyctx/v1`"),
        ("the key 'name' is missing", "write `name: coding-agent`"),
    ]


def test_remove_must_be_true_or_false(folder: Folder) -> None:
    folder.write("base", STEPS)
    error = folder.error("extends: base.yaml\nsteps: [{name: a, do: offload, remove: yes}]")
    assert "own.yaml:4:40: PC103: expected true or false, got 'yes'" in error


def test_a_wrong_base_does_not_hide_other_errors(folder: Folder) -> None:
    own = """\
        extends: [no-such, 5, coding-agent]
        min_token: 1
        items: {mine: {offload: true}}
        steps: [{name: retire, remove: true}, {name: x, do: offlod}]
        """
    lines = folder.error(own).splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["own.yaml:3:11", "PC201"],
        ["own.yaml:3:20", "PC103"],
        ["own.yaml:4:1", "PC101"],
        ["own.yaml:6:16", "PC204"],
    ]


def test_only_the_steps_of_a_base_are_suggested(folder: Folder) -> None:
    own = """\
        extends: coding-agent
        steps:
          - {name: retire-old-result, do: offload}
          - {name: x, do: offload, before: retire-old}
        """
    error = folder.error(own)
    assert error.endswith("has no step 'retire-old'; did you mean 'retire-old-results'?")


def test_an_unset_variable_does_not_hide_other_errors(folder: Folder) -> None:
    error = folder.error("min_chars: ${POLICYCTX_NOT_SET}\nstor: 1")
    assert [line.split(": ")[1] for line in error.splitlines()] == ["PC110", "PC101"]


def test_a_base_may_come_from_a_variable(folder: Folder) -> None:
    assert folder.resolved("extends: ${POLICYCTX_NO_BASE:-coding-agent}")["min_tokens"] == 200


def test_a_variable_of_a_base_that_is_written_over_need_not_be_set(folder: Folder) -> None:
    folder.write("base", "min_chars: ${POLICYCTX_NOT_SET}")
    assert folder.resolved("extends: base.yaml\nmin_chars: 5")["min_chars"] == 5


def test_a_duplicate_step_is_reported_even_if_a_base_has_it(folder: Folder) -> None:
    folder.write("base", STEPS)
    own = "extends: base.yaml\nsteps: [{name: a, do: offload}, {name: a, do: offload}]"
    assert "two steps are called 'a'" in folder.error(own)


def test_a_name_that_is_no_text_is_refused_and_no_traceback(folder: Folder) -> None:
    folder.write("base", BASE)
    for name in ("{a: b}", "[a]"):
        said = folder.error(f"extends: base.yaml\nsteps:\n- {{name: {name}, do: offload}}")
        assert said.startswith("own.yaml:5:4: PC103: expected a string, got a ")


def test_a_base_is_a_policy_of_its_own(folder: Folder) -> None:
    base = folder.path / "base.yaml"
    base.write_text("apiVersion: policyctx/v99\nmin_chars: 1\n", encoding="utf-8")
    assert [line.split(": ")[:2] for line in folder.error("extends: base.yaml").splitlines()] == [
        ["base.yaml:1:1", "PC103"],
        ["base.yaml:1:13", "PC104"],
    ]


def test_bases_that_extend_one_another_over_and_over_are_read_once(folder: Folder) -> None:
    # Read anew each time, these would be six to the power of eight.
    for level in range(8):
        bases = ", ".join([f"p{level - 1}.yaml"] * 6)
        folder.write(f"p{level}", f"extends: [{bases}]" if level else "min_chars: 1")
    assert folder.resolved("extends: p7.yaml")["min_chars"] == 1
    many = ", ".join(["p0.yaml"] * 33)
    assert "PC203: more than 32 policies are extended at once" in folder.error(f"extends: [{many}]")


def test_a_known_step_stays_in_its_place(folder: Folder) -> None:
    folder.write("base", STEPS)
    own = "extends: base.yaml\nsteps: [{name: b, do: offload, before: a}]"
    assert folder.error(own) == (
        "own.yaml:4:32: PC107: 'b' is replaced in place; `before` is for a new step"
    )


def test_a_new_step_goes_before_a_compaction_that_it_inherits(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "apiVersion: policyctx/v1\nname: own\nextends: coding-agent\n"
        "steps: [{name: more, do: drop, select: {types: [tool_result]}}]\n",
        encoding="utf-8",
    )
    names = [step.name for step in load_policy(path).steps]
    assert names == ["retire-old-results", "make-it-fit", "more", "summarise"]


FOREIGN = {
    "yaml": "password: hunter2\nport: 5432\n",
    "json": '{"password": "hunter2"}',
    "list": "- hunter2\n",
    "text": "root:x:0:0:hunter2\ndaemon:x: 1: hunter2\n",
    "tags": "!vault |\n  hunter2\n",
    "duplicates": "hunter2: 1\nhunter2: 2\n",
    "kubernetes": "apiVersion: v1\nkind: Secret\ndata: {password: hunter2}\n",
    "other name": "apiVersion: hunter2\n",
    "forbidden": "hunter2: \x07\n",
    "documents": "a: hunter2\n---\nb: hunter2\n",
    "mention": "# apiVersion: policyctx/v1 is not here\nhunter2: [\n",
}


def told(error: PolicyError) -> str:
    return shown(error.diagnostics, Format.TEXT) + shown(error.diagnostics, Format.JSON)


@pytest.mark.parametrize("kind", FOREIGN)
def test_nothing_of_a_base_that_is_not_a_policy_is_shown(kind: str, folder: Folder) -> None:
    (folder.path / "s.yaml").write_text(FOREIGN[kind], encoding="utf-8")
    own = folder.write("own", "extends: ./s.yaml\nstor: 1")
    with pytest.raises(PolicyError) as raised:
        load_policy(own)
    assert "hunter2" not in told(raised.value)
    first, second = raised.value.diagnostics
    assert (first.place.line, first.place.column, first.code) == (3, 10, "PC208")
    assert first.sentence.startswith("'./s.yaml' is not a policy: it ")
    assert second.code == "PC101"


@pytest.mark.parametrize("kind", FOREIGN)
def test_nothing_of_a_foreign_file_behind_a_link_is_shown(kind: str, folder: Folder) -> None:
    (folder.path / "s.yaml").write_text(FOREIGN[kind], encoding="utf-8")
    link = folder.path / "x.policy.yaml"
    link.symlink_to(folder.path / "s.yaml")
    with pytest.raises(PolicyError, match="is not a policy") as raised:
        load_policy(link)
    assert "hunter2" not in told(raised.value)


def test_the_lines_of_a_file_that_the_user_names_are_shown(folder: Folder) -> None:
    mine = folder.path / "mine.yaml"
    mine.write_text("min_chars: x\n", encoding="utf-8")
    with pytest.raises(PolicyError) as raised:
        load_policy(mine)
    assert "    1 | min_chars: x\n" in told(raised.value)


def test_the_lines_of_a_base_that_is_a_broken_policy_are_shown(folder: Folder) -> None:
    folder.write("base", "description: a: b")
    with pytest.raises(PolicyError) as raised:
        load_policy(folder.write("own", "extends: base.yaml"))
    assert "    3 | description: a: b\n" in told(raised.value)


@pytest.fixture
def project(tmp_path: Path) -> Folder:
    """A project beside a folder with a policy that is not part of it."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    outside = Folder(tmp_path / "outside")
    outside.write("base", "min_chars: 7")
    outside.write("over", "extends: base.yaml")
    return Folder(tmp_path / "project")


@pytest.mark.parametrize("named", ["../outside/base.yaml", "../outside/none.yaml", "{}/base.yaml"])
def test_extends_does_not_leave_the_project(named: str, project: Folder) -> None:
    named = named.format(project.path.parent / "outside")
    error = project.error(f"extends: {named}")
    assert error.startswith(f"own.yaml:3:10: PC207: '{named}' is outside of the project, which ")
    assert f"which is {project.path}; " in error


def test_extends_does_not_leave_the_project_through_a_link(project: Folder) -> None:
    (project.path / "link.yaml").symlink_to("../outside/base.yaml")
    (project.path / "folder").symlink_to("../outside")
    for named in ("link.yaml", "folder/base.yaml"):
        assert "PC207" in project.error(f"extends: {named}")


def test_a_base_does_not_leave_the_project_of_the_first_policy(project: Folder) -> None:
    project.write("sub/base", "extends: ../../outside/base.yaml")
    assert project.error("extends: sub/base.yaml").startswith("sub/base.yaml:3:10: PC207")


def test_a_policy_deep_in_a_project_extends_all_of_it(project: Folder) -> None:
    project.write("base", "min_chars: 5")
    assert load_policy(project.write("sub/own", "extends: ../base.yaml")).min_chars == 5


def test_a_folder_outside_of_the_project_can_be_allowed(
    project: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = project.write("own", "extends: ../outside/over.yaml")
    outside = project.path.parent / "outside"
    assert load_policy(own, extends_from=[outside]).min_chars == 7
    monkeypatch.setenv("POLICYCTX_EXTENDS_FROM", f"/nowhere{os.pathsep}{outside}")
    assert load_policy(own).min_chars == 7


def test_without_git_the_project_is_the_working_directory_or_the_own_folder(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("base", "min_chars: 7")
    own = folder.write("sub/own", "extends: ../base.yaml")
    with pytest.raises(PolicyError, match="PC207"):
        load_policy(own)
    monkeypatch.chdir(folder.path)
    assert load_policy(own).min_chars == 7
    monkeypatch.chdir(folder.path.anchor)
    with pytest.raises(PolicyError, match="PC207"):
        load_policy(own)


def test_the_error_names_a_way_that_every_command_has(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("apiVersion: policyctx/v1\nname: base\n", encoding="utf-8")
    (tmp_path / "team").mkdir()
    policy = tmp_path / "team/policy.yaml"
    text = "apiVersion: policyctx/v1\nname: ours\nextends: ../base.yaml\n"
    policy.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load_policy(policy)
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "PC207"
    assert str(diagnostic).endswith(
        f"'../base.yaml' is outside of the project, which is {policy.parent}; copy it there, or"
        " allow its folder by the variable POLICYCTX_EXTENDS_FROM"
    )
    assert diagnostic.hint is not None
    assert "the variable POLICYCTX_EXTENDS_FROM" in diagnostic.hint
    # An option of `check` alone.
    assert "--" not in diagnostic.hint


def test_a_step_that_is_removed_twice_is_told_with_its_first_place(folder: Folder) -> None:
    own = "extends: coding-agent\nsteps:\n- {name: make-it-fit, remove: true}\n"
    wrong = folder.error(own + "- {name: make-it-fit, remove: true}\n")
    assert "PC107: two steps are called 'make-it-fit'; the first is at line " in wrong
