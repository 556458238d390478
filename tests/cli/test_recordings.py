from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.running import policyctx
from tests.replay.readers.test_codex import TURN, beside, counted

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_of_several_recordings_is_taken_and_named(tmp_path: Path) -> None:
    traj = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "so"}]
    path = tmp_path / "results.json"
    path.write_text(json.dumps([{"task_id": n, "traj": traj} for n in (1, 2)]), encoding="utf-8")
    run = policyctx("explain", "coding-agent", path)
    assert run.returncode == 0
    assert "holds several recordings; this is the first, results.json#1" in run.stderr


def test_what_was_billed_shows_for_any_format_with_usage(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    head = beside("session_meta", base_instructions={"text": "You are. " * 100})
    lines = [head, *TURN, counted(900, 900, cached=100)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    report = json.loads(policyctx("tokens", path, "--json").stdout)
    assert [call["billed"] for call in report["billed"]["calls"]] == [900]
    # The system prompt that the recording has is a part of the request.
    assert report["request_tokens"] > report["item_tokens"] + 300


def test_what_is_no_recording_says_what_was_looked_for(tmp_path: Path) -> None:
    for content in ('{"pages": []}', "dear diary"):
        path = tmp_path / "diary"
        path.write_text(content, encoding="utf-8")
        run = policyctx("explain", "coding-agent", path)
        assert (run.returncode, run.stdout) == (1, "")
        assert "nor is it a recording that is known, of claude-code, codex," in run.stderr
