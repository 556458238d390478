"""The bound of a policy: below it no result is taken, whatever the tool and the tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import Session
from policyctx.integrations.arrival_bounds import (
    LeastSize,
    least_size,
    load_and_remember,
    remembered,
)
from policyctx.planning.compiled import OffloadPolicy
from tests.conversations import calls, results
from tests.policies import policy

STEP = "steps: [{{name: a, on: arrival, do: offload, must_shrink: false{more}}}]\n"
ITEMS = "items: {tool_result: {offload: true}}\nplaceholder: x\n"


def bound_of(text: str, tool: str = "Bash", *, more: str = "") -> LeastSize:
    return least_size(policy(ITEMS + text + STEP.format(more=more)), tool)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min_chars: 500\n", LeastSize("chars", 500)),
        ("min_tokens: 500\n", LeastSize("bytes", 499)),
        ("min_tokens: 500\nmodel: {token_scale: 2}\n", LeastSize("bytes", 249)),
        ("min_tokens: 500\nmodel: {tokenizer: anthropic}\n", LeastSize("bytes", 0)),
        ("", LeastSize("chars", 0)),
        ("min_chars: 500\ntools: {Bash: {offload: false}}\n", LeastSize("chars", None)),
        ("min_chars: 500\ntools: {Bash: {min_chars: 70}}\n", LeastSize("chars", 70)),
        ("min_chars: 500\ntools: {Read: {min_chars: 70}}\n", LeastSize("chars", 500)),
        ("min_chars: 500\ntools: {'B*': {min_tokens: 50}}\n", LeastSize("bytes", 49)),
    ],
)
def test_the_bound_is_the_nearest_threshold(text: str, expected: LeastSize) -> None:
    assert bound_of(text) == expected


def test_a_policy_without_a_step_on_arrival_takes_nothing() -> None:
    assert least_size(policy(ITEMS), "Bash") == LeastSize("chars", None)


def test_the_least_of_all_steps_and_types_counts() -> None:
    types = "{match: {type: tool_result, text: {contains: x}}, min_chars: 40}"
    text = (
        f"min_chars: 500\nplaceholder: x\nitems: {{tool_result: {{offload: true}}, t: {types}}}\n"
    )
    own = policy(text + STEP.format(more=""))
    assert least_size(own, "Bash") == LeastSize("chars", 40)


TEXTS = st.text(st.sampled_from("ab \n é中😀\ud800"), max_size=60)


@st.composite
def policies(draw: st.DrawFn) -> OffloadPolicy:
    thresholds = st.sampled_from(["min_chars", "min_tokens"])
    size = st.integers(0, 60)
    text = f"{draw(thresholds)}: {draw(size)}\n"
    if draw(st.booleans()):
        text += f"tools: {{Bash: {{{draw(thresholds)}: {draw(size)}}}}}\n"
    scale = draw(st.sampled_from(["1", "0.3", "1.5", "3"]))
    tokenizer = draw(st.sampled_from(["approximate", "o200k_base"]))
    text += f"model: {{tokenizer: {tokenizer}, token_scale: {scale}}}\nstore: {{state: none}}\n"
    return policy(ITEMS + text + STEP.format(more=""))


@given(policies(), TEXTS)
def test_a_result_below_the_bound_is_never_taken(
    tmp_path_factory: pytest.TempPathFactory, own: OffloadPolicy, text: str
) -> None:
    if least_size(own, "Bash").excludes(text):
        root = tmp_path_factory.getbasetemp() / "never"
        found = Session(own, root=root, session_id="s").on_tool_result(
            results(("a", text)), call=calls(("a", "Bash"))
        )
        assert found.plan.new == ()


def test_a_bound_is_remembered_for_each_tool() -> None:
    assert remembered("claude-code", "Bash") is None
    _, bound = load_and_remember("claude-code", "Bash")
    assert remembered("claude-code", "Bash") == bound == LeastSize("chars", 10_000)
    assert remembered("claude-code", "Read") is None
    load_and_remember("claude-code", "Read")
    assert remembered("claude-code", "Read") == LeastSize("chars", 20_000)
    assert remembered("claude-code", "Bash") == bound


def test_a_link_to_another_policy_is_noticed(tmp_path: Path) -> None:
    for size in (100, 200):
        text = f"apiVersion: policyctx/v1\nname: p\nextends: claude-code\nmin_chars: {size}\n"
        (tmp_path / f"{size}.yaml").write_text(text, encoding="utf-8")
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "100.yaml")
    load_and_remember(str(link), "Bash")
    assert remembered(str(link), "Bash") == LeastSize("chars", 100)
    link.unlink()
    link.symlink_to(tmp_path / "200.yaml")
    assert remembered(str(link), "Bash") is None


def cached(tmp_path: Path) -> Path:
    load_and_remember("claude-code", "Bash")
    [path] = (tmp_path / "cache/policyctx/arrival").iterdir()
    return path


DAMAGED = ["", "{", "[]", "null", "3", '{"policy": "claude-code"}', "[" * 90_000]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_cache_is_replaced(tmp_path: Path, text: str) -> None:
    cached(tmp_path).write_text(text, encoding="utf-8")
    assert remembered("claude-code", "Bash") is None
    load_and_remember("claude-code", "Bash")
    assert remembered("claude-code", "Bash") == LeastSize("chars", 10_000)


@pytest.mark.parametrize(
    ("key", "value"),
    [("tools", {"Bash": ["chars", 3]}), ("tools", None), ("sha256", "x")],
)
def test_a_value_that_no_process_wrote_is_not_believed(
    tmp_path: Path, key: str, value: object
) -> None:
    path = cached(tmp_path)
    found = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**found, key: value}), encoding="utf-8")
    assert remembered("claude-code", "Bash") is None


def test_the_cache_is_private_and_holds_no_value_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "98765")
    text = "apiVersion: policyctx/v1\nname: p\nextends: claude-code\nmin_chars: ${SECRET}\n"
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    load_and_remember(str(tmp_path / "p.yaml"), "Grep")
    [path] = (tmp_path / "cache/policyctx/arrival").iterdir()
    assert "98765" not in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way", encoding="utf-8")
    _, bound = load_and_remember("claude-code", "Bash")
    assert bound == LeastSize("chars", 10_000)
    assert remembered("claude-code", "Bash") is None
