from __future__ import annotations

import tracemalloc

import pytest

from policyctx.definitions.items import BUILT_IN_TYPES
from policyctx.messages.reading import items_of
from policyctx.planning import compiled
from policyctx.planning.compiled import OffloadPolicy, Treatment
from policyctx.planning.decisions import Reason
from policyctx.policy.lookup import matches
from tests.policies import policy


def treatment(text: str, item_type: str = "tool_result", tool: str | None = "Bash") -> Treatment:
    compiled = policy(text)
    found = compiled.treatment(compiled.steps("model_call")[0], item_type, tool)
    assert found is not None
    return found


# The table of the document "context filesystem".
DOCUMENT = {
    **dict.fromkeys(("tool_result", "user_message", "skill_prompt"), True),
    **dict.fromkeys(("assistant_message", "compaction_summary", "system_prompt"), False),
}
STEP = "steps: [{name: s, do: offload, select: {types: ['*']}}]"


@pytest.mark.parametrize(
    ("text", "amount", "unit", "name"),
    [
        (f"min_tokens: 0\n{STEP}", 0, "tokens", "min_tokens"),
        (f"min_chars: 5\n{STEP}", 5, "chars", "min_chars"),
        (f"min_tokens: 10%\n{STEP}", 20_000, "tokens", "min_tokens"),
        (f"model: {{context_window: 1001}}\nmin_tokens: 10%\n{STEP}", 101, "tokens", "min_tokens"),
        (
            f"min_chars: 5\nitems: {{tool_result: {{min_tokens: 6}}}}\n{STEP}",
            6, "tokens", "items.tool_result.min_tokens",
        ),
        (
            "items: {tool_result: {min_tokens: 6}}\ntools: {'B*': {min_chars: 7}, Bash:"
            f" {{min_chars: 8}}}}\n{STEP}",
            8, "chars", "tools.Bash.min_chars",
        ),
        (f"tools: {{'B*': {{min_chars: 7}}, 'Ba*': {{min_chars: 8}}}}\n{STEP}",
         7, "chars", "tools.B*.min_chars"),
        (f"tools: {{'B*': {{pin: true}}, 'Ba*': {{min_chars: 8}}}}\n{STEP}",
         8, "chars", "tools.Ba*.min_chars"),
        ("tools: {Bash: {min_chars: 7}}\n"
         "steps: [{name: s, do: offload, select: {types: ['*'], min_tokens: 9}}]",
         9, "tokens", "steps.s.select.min_tokens"),
    ],
)  # fmt: skip
def test_the_most_specific_threshold_wins_and_is_named(
    text: str, amount: int, unit: str, name: str
) -> None:
    found = treatment(text).threshold
    assert found is not None
    assert (found.amount, found.unit, ".".join(found.rule)) == (amount, unit, name)


@pytest.mark.parametrize(
    ("text", "offload", "name"),
    [
        (STEP, False, "offload"),
        (f"items: {{tool_result: {{offload: true}}}}\n{STEP}", True, "items.tool_result.offload"),
        (f"tools: {{Bash: {{offload: true}}}}\n{STEP}", True, "tools.Bash.offload"),
        (
            "items: {tool_result: {offload: true}}\n"
            f"tools: {{Bash: {{offload: true}}, 'B*': {{offload: false}}}}\n{STEP}",
            False, "tools.B*.offload",
        ),
        (
            "items: {tool_result: {offload: false}}\n"
            f"tools: {{Bash: {{offload: true}}}}\n{STEP}",
            False, "items.tool_result.offload",
        ),
    ],
)  # fmt: skip
def test_offload_is_off_by_default_and_a_false_is_absolute(
    text: str, offload: bool, name: str
) -> None:
    refusal = (Reason("offload_off"), tuple(name.split(".")))
    assert treatment(text).refusal == (None if offload else refusal)


def test_each_key_is_looked_up_on_its_own() -> None:
    text = f"""\
        items: {{tool_result: {{pin: true, keep_recent: 4}}}}
        tools: {{Bash: {{keep_recent: 2}}}}
        {STEP}
        """
    found = treatment(text)
    assert found.pinned == ("items", "tool_result", "pin")
    assert found.kept == 2
    assert found.keep_recent_rule == ("tools", "Bash", "keep_recent")


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        (f"placeholder: top\n{STEP}", "top"),
        (f"placeholder: top\nitems: {{tool_result: {{placeholder: type}}}}\n{STEP}", "type"),
        (
            "items: {tool_result: {placeholder: type}}\n"
            f"tools: {{Bash: {{placeholder: tool}}}}\n{STEP}",
            "tool",
        ),
        (
            "tools: {Bash: {placeholder: tool}}\n"
            "steps: [{name: s, do: offload, placeholder: step, select: {types: ['*']}}]",
            "step",
        ),
    ],
)
def test_the_most_specific_placeholder_wins(text: str, wording: str) -> None:
    assert treatment(text).wording.template.render({}) == wording


def test_an_item_without_a_tool_has_no_tool_rule() -> None:
    found = treatment(f"tools: {{'*': {{min_chars: 7}}}}\n{STEP}", "user_message", None)
    assert found.threshold is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tools: {Bash: {keep_recent: 1}}", 1),
        ("tools: {'B*': {keep_recent: 2}}", 2),
        ("items: {tool_result: {offload: true, keep_recent: 3}}", 3),
        ("", 5),
    ],
)
def test_policy_settings_for_a_tool_or_type_override_a_hint(text: str, kept: int) -> None:
    read = policy(f"{text}\n{STEP}").policy
    compiled = OffloadPolicy(read, hints={"Bash": {"keep_recent": 5}})
    found = compiled.treatment(compiled.steps("model_call")[0], "tool_result", "Bash")
    assert found is not None
    assert found.kept == kept


def test_a_hint_overrides_the_top_level() -> None:
    compiled = OffloadPolicy(
        policy(f"min_chars: 9\n{STEP}").policy, hints={"Bash": {"min_chars": 5}}
    )
    found = compiled.treatment(compiled.steps("model_call")[0], "tool_result", "Bash")
    assert found is not None
    assert found.threshold == (5, "chars", ("hints", "Bash", "min_chars"))
    assert str(compiled.place(("hints", "Bash", "min_chars"))) == "code"


def test_a_hint_is_for_the_tool_of_its_exact_name() -> None:
    compiled = OffloadPolicy(policy(STEP).policy, hints={"Ba*": {"keep_recent": 5}})
    found = compiled.treatment(compiled.steps("model_call")[0], "tool_result", "Bash")
    assert found is not None
    assert found.keep_recent is None


def test_a_step_without_types_takes_every_type_that_is_offloaded() -> None:
    items = "items: {tool_result: {offload: true}, thinking: {pin: true}}"
    compiled = policy(f"{items}\nsteps: [{{name: s, do: offload}}]")
    [step] = compiled.steps("model_call")
    assert [t for t in BUILT_IN_TYPES if compiled.selects(step, t)] == ["tool_result", "recalled"]


def test_a_star_is_every_type() -> None:
    compiled = policy("steps: [{name: s, do: offload, select: {types: ['*']}}]")
    [step] = compiled.steps("model_call")
    assert all(compiled.selects(step, item_type) for item_type in (*BUILT_IN_TYPES, "unknown"))


def test_tool_globs_are_case_sensitive() -> None:
    assert matches("mcp__fs__read", ["mcp__*"])
    assert not matches("Bash", ["bash"])
    assert not matches(None, ["*"])


def test_the_enabled_types_of_the_document_are_those_of_its_table() -> None:
    enabled = OffloadPolicy.load("context-filesystem").type_enabled
    assert {name: enabled[name] for name in DOCUMENT} == DOCUMENT
    off = OffloadPolicy.of("context-filesystem", options={"offload_enabled": False})
    assert not any(off.type_enabled.values())


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("items: {tool_result: {offload: true}}\nsteps: [{name: s, do: offload}]", True),
        (f"items: {{tool_result: {{offload: true}}}}\n{STEP}", True),
        (STEP, False),
        (f"items: {{tool_result: {{offload: true, pin: true}}}}\n{STEP}", False),
        ("items: {tool_result: {offload: true}}\nsteps: [{name: s, do: clear}]", False),
        ("steps: [{name: s, on: arrival, do: drop, select: {types: ['*']}}]", True),
        ("steps: [{name: s, do: compact}]", False),
        ("items: {tool_result: {offload: true}, web: {match: {type: tool_result, tool: web_*},"
         " offload: false}}\nsteps: [{name: s, do: offload}]", True),
    ],
)  # fmt: skip
def test_a_type_is_enabled_if_a_step_saves_its_items(text: str, enabled: bool) -> None:
    compiled = policy(text)
    assert compiled.type_enabled["tool_result"] is enabled
    assert compiled.type_enabled.get("web", False) is False
    assert not compiled.type_enabled["system_prompt"]


def test_the_digest_is_that_of_what_the_policy_says() -> None:
    said = "steps: [{name: retire, do: offload, select: {keep_recent: 3}}]"
    without = policy(said)
    assert policy(f"{said}\nstore: {{on_failure: keep}}").digest == without.digest
    assert policy(said.replace("3", "4")).digest != without.digest
    assert len(without.digest) == 16


def test_names_of_tools_that_a_client_invents_take_no_more_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_MOST_LOOKED_UP", 20)
    loaded = OffloadPolicy.load("coding-agent")
    [invented] = items_of([{"role": "assistant", "content": "go"}])

    def peak(names: range) -> int:
        tracemalloc.reset_peak()
        for name in map(str, names):
            loaded.typed(invented._replace(tool=name))
            loaded.wordings_naming_files(name, of_calls=False)
            for step in loaded.all_steps:
                loaded.treatment(step, "tool_result", name)
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        assert 1.5 * peak(range(50)) > peak(range(50, 250))
    finally:
        tracemalloc.stop()
