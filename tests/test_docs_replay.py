"""What the pages on replay say in code is what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from policyctx.replay.accuracy import MEANINGS
from tests.replay.test_running import claude_code

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
RULES = (ROOT / "policyctx" / "replay" / "README.md").read_text(encoding="utf-8")


def test_the_example_in_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    claude_code(tmp_path / "session.jsonl", *[f"{i} some output\n" * 500 for i in range(7)])
    monkeypatch.chdir(tmp_path)
    exec(found.group(1), {})  # noqa: S102 - the page's own example
    assert re.fullmatch(r"session\.jsonl \d+% \[\]\n", capsys.readouterr().out)


def test_every_reason_of_the_forecast_has_its_meaning_on_the_page() -> None:
    told = dict(re.findall(r"^\| `([a-z ]+)` \| (.+) \|$", RULES, re.MULTILINE))
    for cause, meaning in MEANINGS.items():
        assert told[cause].replace("`", "") == meaning
