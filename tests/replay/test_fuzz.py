"""Garbled files: each is replayed, skipped or listed as failed, and none stops the others.

`HYPOTHESIS_PROFILE=long` replays 20,000 of them.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from policyctx.cli import main
from tests.drawing import IS_LONG
from tests.replay import synthetic
from tests.replay.fuzzing import garbled_file

pytestmark = pytest.mark.slow

PRESETS = (
    "small-context",
    "context-compact",
    "context-filesystem",
    "context-offload",
    "tool-direct-offload",
)
# With so small a window every gate opens.
SMALL = dict.fromkeys(PRESETS, "min_tokens: 20\n") | {
    "context-offload": "",
    "tool-direct-offload": "",
}
OUTPUTS = (
    ("--json", "--regret-details"),
    ("--csv",),
    ("--regret-details", "--sessions"),
    ("--report",),
)
# Files of one replay; a replay for each number below.
FILES = 20 if IS_LONG else 2
ROUNDS = 1_000 if IS_LONG else 20


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The presets as they are, and each with a small window."""
    folder = tmp_path_factory.mktemp("policies")
    for preset, more in SMALL.items():
        text = (
            f"apiVersion: policyctx/v1\nname: small\nextends: {preset}\n"
            "model:\n  context_window: 3000\n"
            f"  price: {{input: 3, cache_write: 4, cache_read: 1, output: 9}}\n{more}"
        )
        (folder / f"{preset}.yaml").write_text(text, encoding="utf-8")
    return [*PRESETS, *(str(folder / f"{preset}.yaml") for preset in PRESETS)]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_no_garbled_file_stops_the_others(
    round_: int,
    policies: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chance = random.Random(round_)  # noqa: S311 - no secret
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:02}").write_bytes(garbled_file(chance))
    good = synthetic.encoded_lines(synthetic.line_records()["claude-code"])
    (folder / "good").write_bytes(good)
    policy = policies[round_ % len(policies)]
    output = OUTPUTS[round_ // len(policies) % len(OUTPUTS)]
    if "--report" in output:
        output = ("--report", str(tmp_path / "report.html"))
    monkeypatch.setattr(sys, "argv", ["policyctx", "replay", policy, str(folder), *output])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert ended.value.code == int("error:" in err)
    assert "good" in out
    # An exception that no code foresaw is listed as such, and would be a defect.
    assert "unexpected" not in err
    if "--json" in output:
        report = json.loads(out)
        listed = {one["path"] for one in (*report["sessions"], *report["failures"])}
        assert listed | {*report["passed_over"]} == {str(path) for path in folder.iterdir()}
