"""Commands on request bodies of OpenAI's Responses API, such as Codex sends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.replay.reading import recordings_in
from tests.cli.running import policyctx
from tests.recordings import each_recording

pytestmark = pytest.mark.slow

LONG = "a long result " * 100
RESULTS = """\
apiVersion: policyctx/v1
name: results
store: {sync: never}
min_chars: 100
items: {tool_result: {offload: true}}
placeholder: "see {path}"
steps: [{name: s, do: offload, must_shrink: false, select: {types: [tool_result]}}]
"""
SHELL = {
    "type": "function",
    "name": "shell",
    "description": "Runs a command.",
    "strict": False,
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
}


def body_with(given: Any, **more: Any) -> dict[str, Any]:
    """The body of a request as Codex sends it."""
    return {
        "model": "gpt-5-codex",
        "instructions": "You are a coding agent.",
        "input": given,
        "tools": [SHELL, {"type": "web_search"}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199-abcd",
        **more,
    }


def items() -> list[dict[str, Any]]:
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo" * 30},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": LONG},
    ]


def written(folder: Path, value: Any, name: str = "body.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return written(tmp_path, RESULTS, "results.yaml")


def test_apply_changes_only_the_input_of_a_body(results: Path, tmp_path: Path) -> None:
    path = written(tmp_path, body_with(items()))
    run = policyctx("apply", results, path, "--root", tmp_path / "r")
    assert (run.returncode, run.stderr.splitlines()[0][:23]) == (0, "1 of 1 items offloaded ")
    new = json.loads(run.stdout)
    assert list(new) == list(body_with([]))
    placeholder = {**items()[3], "output": f"see {tmp_path}/r/tool_result/shell/call_1.md"}
    assert new == body_with([*items()[:3], placeholder])


def test_plan_and_explain_read_a_body(results: Path, tmp_path: Path) -> None:
    path = written(tmp_path, body_with(items()))
    planned = policyctx("plan", results, path, "--root", tmp_path / "r", "--json")
    assert planned.returncode == 0, planned.stderr
    (decision,) = json.loads(planned.stdout)["decisions"]
    assert (decision["type"], decision["tool"]) == ("tool_result", "shell")
    explained = policyctx("explain", results, path, "--root", tmp_path / "r")
    assert explained.returncode == 0, explained.stderr
    assert "offload" in explained.stdout
    assert "note" not in explained.stderr


def test_instructions_and_tools_count(results: Path, tmp_path: Path) -> None:
    def sizes(body: dict[str, Any]) -> tuple[int, int]:
        path = written(tmp_path, body)
        counted = policyctx("tokens", path, "--json")
        planned = policyctx("plan", results, path, "--root", tmp_path / "r", "--json")
        return (
            json.loads(counted.stdout)["request_tokens"],
            json.loads(planned.stdout)["tokens_before"],
        )

    whole = sizes(body_with(items()))
    for longer in (
        {"instructions": "You are a coding agent. " * 50},
        {"tools": [SHELL, {**SHELL, "name": "other"}]},
    ):
        assert all(a > b for a, b in zip(sizes(body_with(items(), **longer)), whole, strict=True))


@pytest.mark.parametrize("text", ["go", "", LONG])
def test_an_input_that_is_a_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, body_with(text))
    run = policyctx("apply", "small-context", path, "--root", tmp_path / "r")
    assert (run.returncode, json.loads(run.stdout)) == (0, body_with(text))


@pytest.mark.parametrize("command", ["plan", "apply", "explain"])
@pytest.mark.parametrize(
    ("body", "note"),
    [
        (body_with(items(), previous_response_id="resp_1"), '"previous_response_id" continues'),
        (body_with(items(), conversation="conv_1"), '"conversation" continues a history'),
        (body_with(items(), messages=[{"role": "user", "content": "go"}]), 'both "messages" and'),
    ],
)
def test_what_a_body_does_not_show_is_noted(
    results: Path, tmp_path: Path, command: str, body: dict[str, Any], note: str
) -> None:
    path = written(tmp_path, body)
    run = policyctx(command, results, path, "--root", tmp_path / "r")
    assert run.returncode == 0, run.stderr
    assert "note: " in run.stderr
    assert note in run.stderr


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (body_with(5), 'expected "input" to be a string or a list, got a number'),
        (body_with(None), 'expected "input" to be a string or a list, got nothing'),
        (body_with({"a": 1}), 'expected "input" to be a string or a list, got an object'),
        (body_with([*items(), {"type": "function_call", "arguments": 5}]), "message 4: expected"),
        (body_with([*items(), {"call_id": "a"}]), "message 4: expected"),
        ({"model": "m"}, "expected a list of messages or a request body, got an object without"),
    ],
)
def test_an_input_of_another_type_is_an_error(
    results: Path, tmp_path: Path, body: dict[str, Any], error: str
) -> None:
    path = written(tmp_path, body)
    run = policyctx("plan", results, path, "--root", tmp_path / "r")
    assert run.returncode == 1
    assert f"{path}: {error}" in run.stderr.replace("\n", " ")


@each_recording("codex")
@pytest.mark.parametrize("policy", ["small-context", "context-offload"])
def test_the_body_of_a_recorded_request_goes_through_every_command(
    path: Path, policy: str, tmp_path: Path
) -> None:
    (recording,) = recordings_in(path)
    messages = recording.messages()
    body = body_with(messages, instructions=recording.calls[-1].system)
    given = written(tmp_path, body)
    for command in ("plan", "explain"):
        run = policyctx(command, policy, given, "--root", tmp_path / "r", "--json")
        assert run.returncode == 0, run.stderr
    run = policyctx("tokens", given, "--json")
    assert json.loads(run.stdout)["request_tokens"] > 10_000
    run = policyctx("apply", policy, given, "--root", tmp_path / "r")
    assert run.returncode == 0, run.stderr
    new = json.loads(run.stdout)
    assert list(new) == list(body)
    assert {**new, "input": messages} == body
    again = policyctx("apply", policy, written(tmp_path, new, "new.json"), "--root", tmp_path / "r")
    assert json.loads(again.stdout) == new
