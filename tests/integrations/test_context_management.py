"""Policies and the edits of Anthropic's server: what each says in the other's words."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from anthropic.types import beta
from hypothesis import given
from hypothesis import strategies as st

from policyctx.errors import Location, PolicyError
from policyctx.integrations.context_edits import (
    ClearThinking,
    ClearToolUses,
    Compact,
    ContextManagement,
    InputTokens,
    ThinkingTurns,
    ToolUses,
    read_edits,
)
from policyctx.integrations.context_management import Exported, exported, imported
from policyctx.policy.findings import findings
from policyctx.policy.loading import loaded, resolved, validated
from policyctx.policy.models import Policy
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicySource
from policyctx.testing.strategies.policies import policies as documented_policies
from tests.policy_strategies import policies

HEAD = "apiVersion: policyctx/v1\nname: p\n"
RESULTS = "items: {tool_result: {offload: true}}\n"
CLEAR = {"type": "clear_tool_uses_20250919"}
TOKENS = {"type": "input_tokens", "value": 30_000}


def export(text: str) -> Exported:
    return exported(*loaded(PolicySource("p.yaml", HEAD + dedent(text)), variables={}))


def edit_of(text: str) -> dict[str, Any]:
    found = export(text)
    assert found.left == ()
    [edit] = found.edits
    return edit.model_dump(exclude_none=True)


def left_of(text: str) -> dict[str, str]:
    return {one.key: one.reason for one in export(text).left}


def read(document: object) -> tuple[Any, ...]:
    return read_edits(PolicySource("request.json", json.dumps(document)))


def policy_of(*edits: dict[str, Any]) -> dict[str, Any]:
    made = imported(read({"edits": list(edits)}), "p")
    assert made.left == ()
    return made.document


@pytest.mark.parametrize(
    ("model", "param"),
    [
        (ClearToolUses, beta.BetaClearToolUses20250919EditParam),
        (ClearThinking, beta.BetaClearThinking20251015EditParam),
        (Compact, beta.BetaCompact20260112EditParam),
        (ContextManagement, beta.BetaContextManagementConfigParam),
        (InputTokens, beta.BetaInputTokensTriggerParam),
        (InputTokens, beta.BetaInputTokensClearAtLeastParam),
        (ToolUses, beta.BetaToolUsesKeepParam),
        (ToolUses, beta.BetaToolUsesTriggerParam),
        (ThinkingTurns, beta.BetaThinkingTurnsParam),
    ],
)
def test_the_keys_are_those_of_the_installed_sdk(model: Any, param: Any) -> None:
    hints = get_type_hints(param)
    assert set(model.model_fields) == set(hints)
    if "type" in hints:
        assert get_origin(hints["type"]) is Literal
        assert get_args(hints["type"]) == get_args(model.model_fields["type"].annotation)


def test_a_step_that_clears_is_exported_with_all_that_the_server_knows() -> None:
    edit = edit_of("""\
        items: {tool_result: {offload: true}}
        tools: {memory: {pin: true}, notes: {offload: false}}
        steps:
        - name: s
          do: clear
          select:
            keep_recent: {items: 4, per: all}
            except_tools: [web_search]
            with_input: [write_file]
          when: {tokens: {at_least: 50%}, frees: {over: 4999}}
        """)
    assert edit == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 99_999},
        "keep": {"type": "tool_uses", "value": 4},
        "clear_at_least": {"type": "input_tokens", "value": 5_000},
        "clear_tool_inputs": ("write_file",),
        "exclude_tools": ("web_search", "memory", "notes"),
    }


@pytest.mark.parametrize(
    ("when", "trigger"),
    [
        ("{tokens: {over: 30000}}", TOKENS),
        ("{tokens: {at_least: 30001}}", TOKENS),
        ("{tokens: {over: 15%}}", TOKENS),
        ("{items: {over: 9, types: [tool_call]}}", {"type": "tool_uses", "value": 9}),
        ("{items: {at_least: 10, types: [tool_result]}}", {"type": "tool_uses", "value": 9}),
        ("[]", {"type": "tool_uses", "value": 0}),
    ],
)
def test_the_trigger_is_what_the_gate_compares(when: str, trigger: object) -> None:
    edit = edit_of(f"{RESULTS}steps: [{{name: s, do: clear, when: {when}}}]\n")
    assert (edit["trigger"], edit["keep"]) == (trigger, {"type": "tool_uses", "value": 0})


def test_thinking_is_exported_before_tool_uses_and_a_compaction_last() -> None:
    found = export("""\
        items: {tool_result: {offload: true}}
        compaction:
          {archive: false, restore: {max_files: 0}, summary: {by: anthropic, rules: [a, b]}}
        steps:
        - {name: results, do: clear}
        - {name: thoughts, do: drop, select: {types: [thinking], keep_recent: {turns: 2}}}
        - {name: sum, do: compact, when: {tokens: {over: 160000}}}
        """)
    assert found.left == ()
    assert [edit.type for edit in found.edits] == [
        "clear_thinking_20251015",
        "clear_tool_uses_20250919",
        "compact_20260112",
    ]
    assert found.edits[0].model_dump() == {
        "type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": 2},
    }
    assert found.edits[2].model_dump(exclude_none=True) == {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 160_000},
        "instructions": "a\nb",
    }


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("on: arrival, do: clear", "before a call"),
        ("do: clear, select: {tools: [Bash]}", "cannot choose"),
        ("do: clear, select: {ephemeral: true}", "ephemeral"),
        ("do: clear, select: {keep_recent: 3}", "of all tools together"),
        ("do: clear, select: {keep_recent: {turns: 3}}", "of all tools together"),
        ("do: clear, select: {types: [user_message]}", "nothing but tool results"),
        ("do: clear, when: [{tokens: {over: 1}}, {turns: {over: 1}}]", "no alternatives"),
        ("do: clear, when: {ratio: {over: 10%}}", "no trigger like `ratio`"),
        ("do: clear, when: {tokens: {under: 9}}", "no upper limit of `tokens`"),
        ("do: clear, when: {tokens: {over: 9}, items: {over: 9}}", "either tokens or tool uses"),
        ("do: clear, when: {items: {over: 9}}", "no other items"),
        ("do: compact", "has a trigger"),
        ("do: compact, when: {messages: {over: 9}}", "no trigger like `messages`"),
        ("do: compact, when: {tokens: {over: 49999}}", "below 50,000 input tokens"),
        ("do: drop, select: {types: [thinking]}, when: {turns: {over: 9}}", "no trigger for"),
        ("do: drop, select: {types: [thinking], keep_recent: 3}", "a number of turns"),
    ],
)
def test_a_step_that_the_server_cannot_make_stays_behind(step: str, reason: str) -> None:
    found = export(f"{RESULTS}steps: [{{name: s, {step}}}]\n")
    assert found.edits == ()
    [left] = found.left
    assert left.key == "steps.s"
    assert reason in left.reason
    assert left.place is not None
    assert (left.place.file, left.place.line) == ("p.yaml", 4)


def test_a_second_step_of_a_kind_stays_behind() -> None:
    text = f"{RESULTS}steps: [{{name: a, do: clear}}, {{name: b, do: offload}}]\n"
    assert [edit.type for edit in export(text).edits] == ["clear_tool_uses_20250919"]
    assert list(left_of(text)) == ["steps.b"]


def test_every_key_that_the_server_does_not_know_is_left_behind() -> None:
    left = left_of("""\
        min_tokens: 100
        placeholder: "[{path}]"
        model: {cache: {breakpoints: auto}}
        items:
          tool_result: {offload: true}
          user_message: {offload: true}
          page: {match: {type: tool_result, tool: fetch}, min_tokens: 9}
        tools:
          Bash: {min_tokens: 9}
          "mcp__*": {pin: true}
        store: {format: envelope}
        steps:
        - name: s
          do: offload
          select: {except_tools: ["x*"], with_input: ["y*"], errors: false, order: largest,
                   until: {frees: {at_least: 9}}}
        """)
    assert list(left) == [
        "steps.s.do",
        "items.user_message.offload",
        "items.page",
        "min_tokens",
        "placeholder",
        "steps.s.select.errors",
        "steps.s.select.order",
        "steps.s.select.until",
        "steps.s.select.with_input",
        "steps.s.select.except_tools",
        "tools.Bash.min_tokens",
        "tools.mcp__*.pin",
        "store.format",
        "model.cache.breakpoints",
    ]
    assert left["tools.mcp__*.pin"] == "the server takes names, and no globs: mcp__*"


def test_the_nearest_threshold_counts_and_zero_is_none() -> None:
    steps = "steps: [{name: s, do: clear}]\n"
    near = "min_chars: 500\nitems: {tool_result: {offload: true, min_tokens: 0}}\n"
    assert left_of(near + steps) == {}
    near = "min_chars: 500\nitems: {tool_result: {offload: true, min_tokens: 9}}\n"
    assert list(left_of(near + steps)) == ["items.tool_result.min_tokens"]
    far = "min_tokens: 1%\n" + RESULTS
    assert list(left_of(far + steps)) == ["min_tokens"]
    assert left_of(far + "steps: [{name: s, do: drop, select: {types: [tool_result]}}]\n") == {
        "steps.s.do": "the server leaves a text in the place of a result"
    }


def test_a_text_that_is_no_name_of_a_tool_is_left_behind() -> None:
    text = f"{RESULTS}steps: [{{name: s, do: clear, select: {{except_tools: ['a b', ok]}}}}]\n"
    found = export(text)
    assert [one.key for one in found.left] == ["steps.s.select.except_tools"]
    assert found.edits[0].model_dump()["exclude_tools"] == ("ok",)


@pytest.mark.parametrize("pinned", ["tool_result", "thinking"])
def test_a_step_that_pins_leave_nothing_to_stays_behind(pinned: str) -> None:
    text = f"""\
        items: {{{pinned}: {{offload: true, pin: true}}}}
        steps: [{{name: s, do: drop, select: {{types: [{pinned}]}}}}]
        """
    assert (list(left_of(text)), export(text).edits) == (["steps.s"], ())


def test_what_a_compaction_does_by_default_is_left_behind_without_a_place() -> None:
    found = export("steps: [{name: s, do: compact, when: {tokens: {over: 80%}}}]\n")
    assert {one.key: one.place for one in found.left} == {
        "compaction.restore": None,
        "compaction.archive": None,
        "compaction.summary.by": None,
    }


def test_the_defaults_of_the_server_are_written_out() -> None:
    assert policy_of(CLEAR) == {
        "apiVersion": "policyctx/v1",
        "name": "p",
        "items": {"tool_result": {"offload": True}},
        "steps": [
            {
                "name": "clear-tool-uses",
                "do": "clear",
                "select": {
                    "types": ["tool_result"],
                    "keep_recent": {"items": 3, "per": "all", "batches": "split"},
                },
                "when": {"tokens": {"over": 100_000}},
            }
        ],
    }


@pytest.mark.parametrize(("given", "tools"), [(True, "*"), (["Write"], ["Write"])])
def test_an_input_is_emptied_as_the_server_does(given: object, tools: object) -> None:
    [step] = policy_of({**CLEAR, "clear_tool_inputs": given})["steps"]
    assert step["select"]["with_input"] == {"tools": tools, "leave": "empty"}


def test_a_compaction_comes_last_and_keeps_its_instructions() -> None:
    document = policy_of({"type": "compact_20260112", "instructions": "Keep paths."}, CLEAR)
    assert [step["name"] for step in document["steps"]] == ["clear-tool-uses", "compact"]
    assert document["steps"][1]["when"] == {"tokens": {"over": 150_000}}
    assert document["compaction"]["summary"] == {"by": "anthropic", "rules": ["Keep paths."]}


@pytest.mark.parametrize("keep", ["all", {"type": "all"}])
def test_all_thinking_is_kept_without_a_step(keep: object) -> None:
    assert policy_of({"type": "clear_thinking_20251015", "keep": keep})["steps"] == []


def test_a_trigger_above_the_default_window_has_a_larger_window() -> None:
    edit = {**CLEAR, "trigger": {"type": "input_tokens", "value": 400_000}}
    assert policy_of(edit)["model"] == {"context_window": 1_000_000}


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        ({"type": "clear_thinking_20251015"}, "clear_thinking_20251015.keep"),
        (
            {"type": "compact_20260112", "pause_after_compaction": True},
            "compact_20260112.pause_after_compaction",
        ),
        (
            {"type": "compact_20260112", "instructions": "${HOME}"},
            "compact_20260112.instructions",
        ),
    ],
)
def test_what_a_policy_cannot_say_stays_behind(edit: dict[str, Any], key: str) -> None:
    [left] = imported(read([edit]), "p").left
    assert left.key == key
    assert left.place is not None
    assert (left.place.file, left.place.line) == ("request.json", 1)


@pytest.mark.parametrize(
    "document",
    [[CLEAR], {"edits": [CLEAR]}, {"model": "m", "context_management": {"edits": [CLEAR]}}],
)
def test_edits_are_found_in_each_form(document: object) -> None:
    [(edit, _)] = read(document)
    assert edit == ClearToolUses(type="clear_tool_uses_20250919")


def test_json_with_tabs_is_read() -> None:
    text = json.dumps({"edits": [CLEAR]}, indent="\t")
    assert len(read_edits(PolicySource("r.json", text))) == 1


def test_a_character_that_json_escapes_as_a_pair_is_read() -> None:
    [(edit, _)] = read([{"type": "compact_20260112", "instructions": "\\ud83d 😀😀"}])
    assert edit.instructions == "\\ud83d 😀😀"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3", "r.json:1:1: PC103: expected a map with `edits`, got 3"),
        ("{}", "r.json:1:1: PC102: there are no `edits`, neither here nor under"),
        ('{"edits": 3}', "r.json:1:11: PC106: input should be a valid tuple, got 3"),
        ('{"edits": [{}]}', "r.json:1:12: PC102: the key 'type' is missing"),
        (
            '{"edits": [{"type": "clear_tool_uses"}]}',
            "r.json:1:21: PC104: 'clear_tool_uses' is none of clear_tool_uses_20250919,",
        ),
        ('{"edits": [{"type": 3}]}', "r.json:1:21: PC104: 3 is none of"),
        (
            '{"edits": [{"type": "clear_tool_uses_20250919", "kep": 3}]}',
            "r.json:1:49: PC101: unknown key 'kep'; did you mean 'keep'?",
        ),
        (
            '{"edits": [{"type": "clear_tool_uses_20250919",\n "keep": {"type": "tool_uses"}}]}',
            "r.json:2:10: PC102: the key 'value' is missing",
        ),
        (
            '{"edits": [{"type": "clear_tool_uses_20250919",\n'
            ' "trigger": {"type": "input_tokens", "value": -1}}]}',
            "r.json:2:47: PC106: input should be greater than or equal to 0, got -1",
        ),
        (
            '{"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["a*"]}]}',
            "r.json:1:67: PC106: string should match pattern",
        ),
        (
            '{"edits": [], "edit": 1}',
            "r.json:1:15: PC101: unknown key 'edit'; did you mean 'edits'",
        ),
        ('{"edits": [', "r.json:2:1: PC002: not YAML"),
        ('{"edits": ' + "[" * 40 + "]" * 40 + "}", "PC006: nested deeper"),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, found: str) -> None:
    with pytest.raises(PolicyError) as error:
        read_edits(PolicySource("r.json", text))
    assert found in str(error.value)


def test_a_second_edit_of_a_kind_is_a_mistake() -> None:
    with pytest.raises(PolicyError, match="a second edit of the type 'clear_tool_uses_20250919'"):
        imported(read([CLEAR, CLEAR]), "p")


def count(least: int = 0) -> st.SearchStrategy[int]:
    return st.integers(least, 2_000_000)


def tokens(least: int = 0) -> st.SearchStrategy[InputTokens]:
    return count(least).map(lambda n: InputTokens(type="input_tokens", value=n))


USES = st.integers(0, 1000).map(lambda n: ToolUses(type="tool_uses", value=n))
NAMES = st.lists(
    st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True), min_size=1, max_size=4, unique=True
).map(tuple)
# JSON leaves U+007F as it is, and YAML does not allow it.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x7f")
TEXTS = st.text(CHARACTERS, min_size=1, max_size=80).filter(
    lambda text: text.strip() and not text.startswith("$")
)
CLEAR_TOOL_USES = st.builds(
    ClearToolUses,
    type=st.just("clear_tool_uses_20250919"),
    trigger=tokens() | USES,
    keep=USES,
    clear_at_least=st.none() | tokens(1),
    clear_tool_inputs=st.none() | st.just(value=True) | NAMES,
    exclude_tools=st.none() | NAMES,
)
CLEAR_THINKING = st.builds(
    ClearThinking,
    type=st.just("clear_thinking_20251015"),
    keep=st.integers(1, 100).map(lambda n: ThinkingTurns(type="thinking_turns", value=n)),
)
COMPACT = st.builds(
    Compact,
    type=st.just("compact_20260112"),
    trigger=tokens(50_000),
    instructions=st.none() | TEXTS,
)


@given(st.tuples(*(st.none() | one for one in (CLEAR_THINKING, CLEAR_TOOL_USES, COMPACT))))
def test_what_can_be_expressed_is_the_same_after_an_import_and_an_export(
    drawn: tuple[Any, ...],
) -> None:
    edits = tuple(edit for edit in drawn if edit is not None)
    document = {"edits": [edit.model_dump(mode="json", exclude_none=True) for edit in edits]}
    made = imported(read(document), "p")
    source = PolicySource("p.yaml", made.text)
    back = exported(*loaded(source, variables={}))
    assert (back.edits, back.left, made.left) == (edits, (), ())
    tree = resolved(source, variables={})
    assert [d for d in findings(tree, validated(tree)) if d.severity == "error"] == []


@given(policies().map(lambda one: one.policy) | documented_policies())
def test_each_step_is_exported_or_left_behind_and_the_edits_can_be_imported(drawn: Policy) -> None:
    found = exported(drawn, Node({}, Location("p.yaml")))
    whole = [one for one in found.left if one.key in {f"steps.{s.name}" for s in drawn.steps}]
    assert len(found.edits) + len(whole) == len(drawn.steps)
    edits = [edit.model_dump(mode="json", exclude_none=True) for edit in found.edits]
    made = imported(read(edits), "p")
    back = exported(*loaded(PolicySource("p.yaml", made.text), variables={}))
    assert back.edits == found.edits
