"""Where the commands show cache breakpoints, and where `apply` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.drawing import rotated

POLICY = """\
apiVersion: policyctx/v1
name: p
model: {cache: {breakpoints: auto}}
min_tokens: 100
items: {tool_result: {offload: true}}
steps: [{name: s, do: offload, select: {keep_recent: 2}}]
"""
MARKER = {"type": "ephemeral"}
WORDS = [
    "cache breakpoint after tool 1 (5m): the end of the tools",
    "cache breakpoint after system block 1 (5m): the end of the system prompt",
    "cache breakpoint after tool_call c1 (5m): the anchor: the next edit comes behind it",
    "cache breakpoint after tool_result c2 (5m): the end of this request",
]


@pytest.fixture
def given(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a policy and of a request body."""
    policy, body = tmp_path / "p.yaml", tmp_path / "body.json"
    policy.write_text(POLICY, encoding="utf-8")
    messages = session_of(*["word " * 500] * 3)
    request: dict[str, Any] = {"system": "be good", "messages": messages, "cache_control": MARKER}
    request["tools"] = [{"name": "Bash", "input_schema": {"type": "object"}}]
    body.write_text(json.dumps(request), encoding="utf-8")
    return policy, body


@pytest.mark.parametrize("command", ["plan", "explain", "apply"])
def test_each_breakpoint_is_shown_with_its_reason(
    command: str, given: tuple[Path, Path], tmp_path: Path
) -> None:
    run = policyctx(command, *given, "--root", tmp_path / "r")
    lines = (run.stderr if command == "apply" else run.stdout).splitlines()
    assert [line for line in lines if line.startswith("cache breakpoint")] == WORDS


@pytest.mark.parametrize("command", ["plan", "explain", "apply"])
def test_the_json_option_has_the_breakpoints(
    command: str, given: tuple[Path, Path], tmp_path: Path
) -> None:
    run = policyctx(command, *given, "--root", tmp_path / "r", "--json")
    found = json.loads(run.stderr if command == "apply" else run.stdout)["breakpoints"]
    assert [each["place"] for each in found] == [0, 0, "tool_call c1", "tool_result c2"]
    assert found[2] == {
        "part": "messages",
        "place": "tool_call c1",
        "ttl": "5m",
        "why": ["anchor"],
    }


def test_apply_writes_the_markers_into_the_whole_request_body(
    given: tuple[Path, Path], tmp_path: Path
) -> None:
    policyctx("apply", *given, "--root", tmp_path / "r", "-o", tmp_path / "new.json")
    body = json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))
    assert body["system"] == [{"type": "text", "text": "be good", "cache_control": MARKER}]
    assert body["tools"][0]["cache_control"] == MARKER
    assert "cache_control" not in body
    marked = [i for i, message in enumerate(body["messages"]) if "cache_control" in str(message)]
    assert marked == [3, 6]


def test_a_policy_that_keeps_the_callers_markers_shows_none(
    given: tuple[Path, Path], tmp_path: Path
) -> None:
    policy, body = given
    policy.write_text(POLICY.replace("auto", "keep"), encoding="utf-8")
    run = policyctx("plan", policy, body, "--root", tmp_path / "r")
    assert "breakpoint" not in run.stdout
    assert "markers" not in run.stdout


PLAIN = [{"role": "user", "content": "List."}]
FUNCTIONS = [{"type": "function", "function": {"name": "Bash"}}]
CONTENTS = [{"role": "user", "parts": [{"text": "List."}]}]


WITHOUT_MARKERS: list[tuple[dict[str, Any], str]] = [
    (
        {"messages": PLAIN},
        "no model is named, and nothing in the request shows that its API takes them",
    ),
    (
        {"messages": PLAIN, "model": "a-model-of-ours"},
        "the model a-model-of-ours is not in the table of models, and nothing in the request"
        " shows that its API takes them",
    ),
    ({"messages": PLAIN, "model": "gpt-4o"}, "the API of gpt-4o takes none"),
    ({"input": PLAIN, "model": "gpt-4o"}, "the API of the request takes none"),
    ({"contents": CONTENTS}, "the API of the request takes none"),
    (
        {"messages": [*PLAIN, {"role": "assistant", "tool_calls": []}]},
        "a message is of an API that takes none",
    ),
    (
        {"messages": [{"role": "system", "content": "be good"}, *PLAIN]},
        "the list begins with the system prompt, as only OpenAI's lists do",
    ),
    (
        {"messages": PLAIN, "tools": FUNCTIONS},
        "the tools are functions, as only OpenAI's are",
    ),
    ({"messages": []}, "the list is empty"),
]


@pytest.mark.parametrize(
    ("case", "command"), rotated(WITHOUT_MARKERS, ["plan", "explain", "apply"], one_in=3)
)
def test_the_commands_say_why_a_request_gets_no_marker(
    command: str, case: tuple[dict[str, Any], str], given: tuple[Path, Path], tmp_path: Path
) -> None:
    (body, why), (policy, file) = case, given
    file.write_text(json.dumps(body), encoding="utf-8")
    run = policyctx(command, policy, file, "--root", tmp_path / "r")
    lines = (run.stderr if command == "apply" else run.stdout).splitlines()
    assert f"no cache markers: {why}" in lines
    run = policyctx(command, policy, file, "--root", tmp_path / "r", "--json")
    report = json.loads(run.stderr if command == "apply" else run.stdout)
    assert (report["breakpoints"], report["why_no_breakpoints"]) == ([], why)


@pytest.mark.parametrize(
    ("body", "is_marked"),
    [
        ({"messages": PLAIN}, False),
        ({"messages": PLAIN, "model": "gpt-4o"}, False),
        ({"input": PLAIN, "instructions": "be good", "model": "gpt-4o"}, False),
        ({"input": PLAIN, "model": "claude-sonnet-4-5"}, False),
        ({"messages": PLAIN, "system": "be good"}, True),
        ({"messages": PLAIN, "model": "claude-sonnet-4-5"}, True),
    ],
)
@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_body_has_breakpoints_if_its_fields_or_its_model_show_such_an_api(
    command: str, body: dict[str, Any], given: tuple[Path, Path], tmp_path: Path, *, is_marked: bool
) -> None:
    policy, file = given
    file.write_text(json.dumps(body), encoding="utf-8")
    run = policyctx(command, policy, file, "--root", tmp_path / "r")
    assert ("cache breakpoint" in run.stdout + run.stderr) == is_marked
