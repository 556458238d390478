from __future__ import annotations

import pytest

from policyctx.planning.offload_policy import ItemRule, matches
from policyctx.policy.models import BUILT_IN_TYPES
from tests.policies import policy


def rule(text: str, item_type: str = "tool_result", tool: str | None = "Bash") -> ItemRule:
    compiled = policy(text)
    return compiled.rule(compiled.steps("model_call")[0], item_type, tool)


STEP = "steps: [{name: s, do: offload}]"


@pytest.mark.parametrize(
    ("text", "amount", "unit", "name"),
    [
        (STEP, 0, "tokens", "min_tokens"),
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
        ("tools: {Bash: {min_chars: 7}}\nsteps: [{name: s, do: offload, select: {min_tokens: 9}}]",
         9, "tokens", "steps.s.select.min_tokens"),
    ],
)  # fmt: skip
def test_the_nearest_threshold_wins_and_is_named(
    text: str, amount: int, unit: str, name: str
) -> None:
    assert rule(text).threshold == (amount, unit, name)


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
    found = rule(text)
    assert (found.offload, found.offload_rule) == (offload, name)


def test_each_key_is_looked_up_on_its_own() -> None:
    text = f"""\
        items: {{tool_result: {{pin: true, keep_recent: 4}}}}
        tools: {{Bash: {{keep_recent: 2}}}}
        {STEP}
        """
    found = rule(text)
    assert (found.pin, found.pin_rule) == (True, "items.tool_result.pin")
    assert found.keep_recent is not None
    assert (found.keep_recent.items, found.keep_recent_rule) == (2, "tools.Bash.keep_recent")


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
            "steps: [{name: s, do: offload, placeholder: step}]",
            "step",
        ),
    ],
)
def test_the_nearest_wording_wins(text: str, wording: str) -> None:
    assert rule(text).placeholder.template.render({}) == wording


def test_an_item_without_a_tool_has_no_tool_rule() -> None:
    found = rule(f"tools: {{'*': {{min_chars: 7}}}}\n{STEP}", "user_message", None)
    assert found.threshold.amount == 0


def test_a_step_without_types_takes_every_type_that_is_offloaded() -> None:
    compiled = policy(f"items: {{tool_result: {{offload: true}}, thinking: {{pin: true}}}}\n{STEP}")
    [step] = compiled.steps("model_call")
    assert [t for t in BUILT_IN_TYPES if compiled.selects(step, t)] == ["tool_result"]


def test_a_star_is_every_type() -> None:
    compiled = policy("steps: [{name: s, do: offload, select: {types: ['*']}}]")
    [step] = compiled.steps("model_call")
    assert all(compiled.selects(step, item_type) for item_type in (*BUILT_IN_TYPES, "unknown"))


def test_tool_globs_tell_case_apart() -> None:
    assert matches("mcp__fs__read", ["mcp__*"])
    assert not matches("Bash", ["bash"])
    assert not matches(None, ["*"])
