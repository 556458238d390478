from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.tokens.counter import counter_for
from tests.cli.running import policyctx
from tests.conversations import calls, results, session_of, user
from tests.tokens.counting_server import counting_server
from tests.tokens.requests import request_tokens
from tests.tokens.test_image_sizes import png
from tests.tokens.test_media import image

COUNTER = counter_for("o200k_base")


def written(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def recorded(tmp_path: Path, replies: int, *, scale: float = 1.5, hidden: int = 20_000) -> Path:
    """Write a session as Claude Code does, in which each reply is billed by a line."""
    messages: list[Any] = [user("start")]
    lines: list[str] = []

    def write(message: dict[str, Any]) -> None:
        parent = f"u{len(lines)}" if lines else None
        links = {"uuid": f"u{len(lines) + 1}", "parentUuid": parent, "sessionId": "s"}
        lines.append(json.dumps({"type": message["role"], "message": message, **links}))

    write(messages[0])
    for i in range(replies):
        counted = request_tokens(messages)
        usage = {"input_tokens": round(scale * counted) + hidden, "output_tokens": 1}
        reply = {**calls((f"c{i}", "Read")), "id": f"m{i}", "model": "claude-opus-4-8"}
        write({**reply, "usage": usage})
        messages += [calls((f"c{i}", "Read")), results((f"c{i}", f"line {i} " * 400))]
        write(messages[-1])
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def table_rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_tables_show_the_tokens_by_type_and_by_tool(tmp_path: Path) -> None:
    path = written(tmp_path, session_of("word " * 500, "short"))
    run = policyctx("tokens", path)
    assert (run.returncode, run.stderr) == (0, "")
    rows = table_rows(run.stdout)
    assert rows[0] == ["type", "items", "tokens", "share"]
    assert ["tool_result", "2", "502", "72.4", "%"] in rows
    assert ["tool", "items", "tokens", "share"] in rows
    assert ["Bash", "4", "504", "72.7", "%"] in rows
    assert "items: 506 tokens" in run.stdout


def test_the_largest_groups_come_first(tmp_path: Path) -> None:
    messages = [user("word " * 50), calls(("a", "Read"), ("b", "Bash"))]
    messages += [results(("a", "x"), ("b", "word " * 100))]
    report = json.loads(policyctx("tokens", written(tmp_path, messages), "--json").stdout)
    assert [row["type"] for row in report["types"]] == ["tool_result", "user_message", "tool_call"]
    assert [row["tool"] for row in report["tools"]] == ["Bash", "Read"]


def test_the_json_report_has_the_sums(tmp_path: Path) -> None:
    messages, system, tools = session_of("word " * 500), "be kind", [{"name": "Bash"}]
    body = {"messages": messages, "system": system, "tools": tools}
    report = json.loads(policyctx("tokens", written(tmp_path, body), "--json").stdout)
    total = request_tokens(messages, tools, system)
    assert report["request_tokens"] == total
    assert report["item_tokens"] == sum(row["tokens"] for row in report["types"])
    assert (report["tokenizer"], report["constants"]) == ("o200k_base", "anthropic")
    assert (report["estimated"], report["billed"]) == (None, None)


def test_images_are_counted_by_their_size(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "seen"}, image(png(280, 280) + b"\0" * 9_000)]
    messages = [
        {"role": "user", "content": [image(png(28, 28))]},
        calls(("a", "Look")),
        results(("a", parts)),
    ]
    report = json.loads(policyctx("tokens", written(tmp_path, messages), "--json").stdout)
    by_type = {row["type"]: row["tokens"] for row in report["types"]}
    assert by_type["image"] == 1
    assert 100 < by_type["tool_result"] < 120


def test_the_tokenizer_and_the_language_model_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, [user("字" * 40)])
    options = ("--tokenizer", "approximate", "--model", "gpt-4o", "--json")
    report = json.loads(policyctx("tokens", path, *options).stdout)
    assert (report["item_tokens"], report["constants"]) == (10, "openai")


def test_a_recording_shows_counted_and_billed_tokens(tmp_path: Path) -> None:
    run = policyctx("tokens", recorded(tmp_path, 14))
    rows = table_rows(run.stdout)
    assert ["call", "counted", "predicted", "billed", "error"] in rows
    assert [row[0] for row in rows if row and row[0].isdigit()] == [str(i) for i in range(5, 15)]
    assert "the last 10 of 14 calls" in run.stdout
    assert "prediction from call 10 on: median error 0." in run.stdout


def test_the_json_report_has_every_call(tmp_path: Path) -> None:
    report = json.loads(policyctx("tokens", recorded(tmp_path, 12), "--json").stdout)
    billed = report["billed"]
    assert [call["call"] for call in billed["calls"]] == list(range(1, 13))
    last = billed["calls"][-1]
    assert last["billed"] == round(1.5 * last["counted"]) + 20_000
    assert abs(last["error"]) < 0.01
    assert last["language_model"] == "claude-opus-4-8"
    assert billed["median_error"] <= billed["error_of_95_percent"] <= billed["largest_error"] < 0.05


def test_a_short_recording_shows_no_accuracy(tmp_path: Path) -> None:
    shown = policyctx("tokens", recorded(tmp_path, 3)).stdout
    assert "billed: 3 calls of the model" in shown
    assert "prediction" not in shown


def test_an_empty_list_counts_the_tokens_of_a_request(tmp_path: Path) -> None:
    run = policyctx("tokens", written(tmp_path, []))
    assert run.stdout.startswith("items: 0 tokens\nrequest: 3 tokens")


def test_a_document_without_messages_is_rejected(tmp_path: Path) -> None:
    run = policyctx("tokens", written(tmp_path, {"prompt": "hi"}))
    assert (run.returncode, run.stdout) == (1, "")
    assert "messages.json: expected a list of messages" in run.stderr


@pytest.mark.slow
def test_texts_that_the_provider_did_not_count_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anthropic")
    with counting_server() as server:
        server.statuses = [401, 401]
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "not a key")
        path = written(tmp_path, [user("hello")])
        run = policyctx("tokens", path, "--tokenizer", "anthropic")
    assert "items: 1 tokens" in run.stdout
    assert run.stderr == "1 text was counted locally: AuthenticationError 401\n"
