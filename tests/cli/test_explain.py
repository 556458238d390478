from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from policyctx import Session
from policyctx.cli.app import app
from tests.cli.running import policyctx
from tests.cli.test_audit import claude
from tests.conversations import call, results, session_of, user
from tests.recordings import each_recording

POLICY = """\
apiVersion: policyctx/v1
name: mine
items:
  tool_result: {offload: true}
placeholder: "[{relative_path}]"
steps:
  - name: retire
    do: offload
    select: {types: [tool_result], min_chars: 100, keep_recent: 1}
  - name: room
    do: drop
    when: {tokens: {over: 100000}}
    select: {types: [tool_result]}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(session_of("word " * 500, "short", "new")), encoding="utf-8")
    return path


def report(*arguments: str | Path) -> Any:
    run = policyctx("explain", *arguments, "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("when", "rule", "lines"),
    [
        (
            "[{tokens: {over: 100000}},\n           {messages: {over: 9}, tokens: {over: 200000}}]",
            "steps.room.when.0.tokens.over",
            {(0, "tokens"): 12, (1, "messages"): 13, (1, "tokens"): 13},
        ),
        ("[{tokens: {over: 100000}}]", "steps.room.when.tokens.over", {(0, "tokens"): 12}),
        ("{tokens: {over: 100000}}", "steps.room.when.tokens.over", {(0, "tokens"): 12}),
    ],
    ids=["two alternatives", "one alternative", "a map"],
)
def test_a_gate_is_named_with_its_line_among_alternatives(
    when: str, rule: str, lines: dict[tuple[int, str], int], policy: Path, messages: Path
) -> None:
    policy.write_text(POLICY.replace("{tokens: {over: 100000}}", when), encoding="utf-8")
    found = report(policy, messages)
    places = {(gate["alternative"], gate["gate"]): gate["place"] for gate in found["gates"]}
    assert places == {name: f"{policy}:{line}" for name, line in lines.items()}
    [named] = {v["rule"] for one in found["items"] for v in one["verdicts"] if "when" in v["rule"]}
    assert named == rule


@pytest.mark.slow
def test_each_step_reports_its_verdict_on_an_item_and_the_policy_line(
    policy: Path, messages: Path, tmp_path: Path
) -> None:
    run = policyctx("explain", policy, messages, "--item", "2", "--root", tmp_path / "root")
    assert f"step retire ({policy}:7): open, no gates; takes 1" in run.stdout
    assert "tool_result Bash, message 2, 501 tokens: offload" in run.stdout
    [item] = report(policy, messages, "--item", "2")["items"]
    assert [(v["step"], v["taken"], v["reason"]["code"], v["place"]) for v in item["verdicts"]] == [
        ("retire", True, "old_and_large", f"{policy}:9"),
        ("room", False, "gate_closed", f"{policy}:12"),
    ]


@pytest.mark.slow
def test_items_that_no_step_looks_at_are_counted_beside_the_count_of_plan(
    policy: Path, messages: Path
) -> None:
    planned = policyctx("plan", policy, messages).stdout.splitlines()[0]
    explained = policyctx("explain", policy, messages).stdout.splitlines()
    assert "1 of 3 items would be offloaded" in planned
    assert "1 of 3 items would be offloaded" in explained[0]
    [others] = [line for line in explained if line.startswith("no step")]
    assert others == "no step looks at 4 of all 7 items"


@pytest.mark.slow
def test_why_not_lists_kept_items_with_reasons(policy: Path, messages: Path) -> None:
    found = report(policy, messages, "--why-not", "--largest", "0")
    assert {item["decision"] for item in found["items"]} == {"keep"}
    reasons = {
        item["item_id"]: [v["reason"]["code"] for v in item["verdicts"]]
        for item in found["items"]
        if item["type"] == "tool_result"
    }
    assert reasons == {"c1": ["below_threshold", "gate_closed"], "c2": ["recent", "gate_closed"]}


def test_the_largest_items_come_first_and_omitted_items_are_counted(
    policy: Path, messages: Path
) -> None:
    run = policyctx("explain", policy, messages, "--largest", "1")
    assert "tool_result Bash, message 2, 501 tokens" in run.stdout
    assert run.stdout.splitlines()[-1] == "6 smaller items are not shown; --largest 0 shows all"


def test_an_unknown_item_error_states_the_valid_values(policy: Path, messages: Path) -> None:
    run = policyctx("explain", policy, messages, "--item", "nothing")
    assert run.returncode == 1
    assert "no item 'nothing': give a number below 7 or an id" in run.stderr


@pytest.mark.parametrize(("hour", "write"), [(0, 6.25), (20_000, 10.0)], ids=["5m", "1h"])
def test_pays_back_has_the_price_of_the_writes_that_a_recording_was_billed_for(
    tmp_path: Path, hour: int, write: float
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in bash_session(hour)))
    gated = tmp_path / "gated.yaml"
    when = "when: {pays_back: {at_most: 1}}\n    select"
    gated.write_text(POLICY.replace("select", when, 1).replace("recent: 1", "recent: 2"))
    [gate] = [one for one in report(gated, path)["gates"] if one["gate"] == "pays_back"]
    cost, saved = map(float, re.findall(r"\$([\d.]+)", gate["sentence"]))
    # As many tokens leave as stay behind them, which are written anew.
    assert cost / saved == pytest.approx((write - 0.5) / 0.5, rel=0.02)


def bash_session(hour: int) -> Iterator[dict[str, Any]]:
    """Yield the records of a session of Claude Code with two results of 10,000 tokens each."""
    usage = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 20_000,
        "cache_creation": {
            "ephemeral_1h_input_tokens": hour,
            "ephemeral_5m_input_tokens": 20_000 - hour,
        },
        "output_tokens": 10,
    }
    parent = None
    for number, message in enumerate(session_of("word " * 10_000, "word " * 10_000, "new")):
        if message["role"] == "assistant":
            message |= {"id": f"m{number}", "model": "claude-opus-4-8", "usage": usage}
        yield {
            "type": message["role"], "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s",
            "timestamp": f"2026-11-01T14:{number:02}:00Z", "message": message,
        }  # fmt: skip
        parent = f"u{number}"


@each_recording(
    "claude-code", "codex", "gemini", "inspect", "mini-swe", "openai-chat", "openhands", "pi",
    "swe-agent", "tau-bench", "tau2",
)  # fmt: skip
def test_the_largest_kept_items_of_a_recording_are_explained(path: Path, tmp_path: Path) -> None:
    """Each of the ten has a reason from each step, in words, with the line of the rule."""
    arguments = ["explain", "small-context", str(path), "--why-not", "--root", str(tmp_path)]
    run = CliRunner().invoke(app, [*arguments, "--json"])
    assert run.exit_code == 0, run.stderr
    found = json.loads(run.stdout)["items"]
    assert 0 < len(found) <= 10
    assert found == sorted(found, key=lambda item: -item["tokens"])
    for item in found:
        assert item["verdicts"]
        for verdict in item["verdicts"]:
            assert not verdict["taken"]
            assert verdict["reason"]["sentence"]
            assert (
                verdict["place"].startswith(("small-context.yaml:", "coding-agent.yaml:"))
                or not verdict["rule"]
            )


def test_what_was_read_back_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "apiVersion: policyctx/v1\nname: p\n"
        "items: {tool_result: {offload: true}, recalled: {keep_recent: 0}}\n"
        "steps: [{name: s, do: offload, select: {types: [tool_result], min_chars: 300}}]\n",
        encoding="utf-8",
    )
    large = "x" * 400
    messages = session_of(large)
    root = tmp_path / "root"
    Session(str(file), root=root, session_id="s").apply(messages)
    for call_id, tool, given, found in (
        ("r", "read_offloaded", {"path": "c0"}, large),
        ("f", "search_offloaded", {"query": "x"}, f"tool_result/Bash/c0.md:1: {large}"),
    ):
        messages += [call(call_id, tool, given), results((call_id, found))]
    (tmp_path / "m.json").write_text(json.dumps(messages), encoding="utf-8")
    options = (file, tmp_path / "m.json", "--root", root, "--session-id", "s")
    shown = policyctx("explain", *options).stdout
    assert ": offload, without a copy: it was read from tool_result/Bash/c0.md\n" in shown
    assert ": clear, without a copy: the call can be made again\n" in shown
    report = json.loads(policyctx("explain", *options, "--json").stdout)["items"]
    decided = {(i["item_id"], i["decision"]): i["read_back"] for i in report}
    assert decided["r", "offload"]
    assert not decided["f", "clear"]


def test_a_number_of_results_from_code_is_shown_as_such(tmp_path: Path, messages: Path) -> None:
    given = ("context-filesystem", messages, "--root", tmp_path / "root")
    run = policyctx("explain", *given, "--ephemeral", "Bash=1", "--item", "2")
    assert "retire  takes it  old: 3rd newest of Bash, 1 kept  code" in re.sub(
        " {2,}", "  ", run.stdout
    )
    [item] = report(*given, "--ephemeral", "Bash=1", "--item", "2")["items"]
    verdict = next(v for v in item["verdicts"] if v["step"] == "retire")
    assert (verdict["rule"], verdict["place"]) == ("hints.Bash.keep_recent", "code")


@pytest.mark.parametrize("given", ["Bash", "=2", "Bash=two"])
def test_a_wrong_number_of_results_is_an_error(messages: Path, given: str) -> None:
    run = policyctx("explain", "context-filesystem", messages, "--ephemeral", given)
    assert run.returncode == 2
    assert "expected TOOL=N" in run.stderr


def test_what_would_be_carried_is_listed_with_its_line(policy: Path, tmp_path: Path) -> None:
    policy.write_text(f"{POLICY}carry: {{files: 1}}\n", encoding="utf-8")
    order = tmp_path / "order.json"
    order.write_text(json.dumps([{"role": "user", "content": "Never push to main."}]))
    printed = policyctx("explain", policy, order).stdout
    assert printed.splitlines()[-1] == (
        "carried if a summary of the host lacks it: message 0, order: Never push to main."
        f" ({policy}:14)"
    )
    [point] = report(policy, order)["carry"]
    assert (point["kind"], point["message"]) == ("order", 0)
    said = ("Never push to main.", "Never delete a tag.")
    order.write_text(json.dumps([{"role": "user", "content": text} for text in said]))
    policy.write_text(f"{POLICY}carry: {{max_tokens: 10}}\n", encoding="utf-8")
    assert policyctx("explain", policy, order).stdout.splitlines()[-1] == (
        f"not carried: 1 more, for which carry has no room, 10 tokens and 10 files ({policy}:14)"
    )
    assert report(policy, order)["not_carried"] == 1
    policy.write_text(POLICY, encoding="utf-8")
    assert report(policy, order)["carry"] == []


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_what_is_repaired_is_said_with_its_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "p.yaml").write_text(f"{POLICY}on_broken: repair\n", encoding="utf-8")
    (tmp_path / "m.json").write_text(json.dumps([user("go"), call("c1", "Bash", {}), user("on")]))
    run = policyctx(command, tmp_path / "p.yaml", tmp_path / "m.json")
    said = "repaired: the call c1 has no result right after it; dropped"
    assert f"{said} ({tmp_path}/p.yaml:14)" in run.stdout.splitlines()
    as_json = policyctx(command, tmp_path / "p.yaml", tmp_path / "m.json", "--json")
    assert json.loads(as_json.stdout)["repaired"] == [f"{said} ({tmp_path}/p.yaml:14)"]


def test_what_was_said_before_a_compaction_is_carried_behind_the_next(tmp_path: Path) -> None:
    said = claude(tmp_path / "s.jsonl", "Never push to main.", summary="The work went on.")
    shown = policyctx("explain", "claude-code", said).stdout
    assert (
        "carried if a summary of the host lacks it: message 0 of the whole conversation, order:"
        " Never push to main."
    ) in shown
