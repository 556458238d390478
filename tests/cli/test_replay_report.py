from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx
from tests.policies import KEEP_FIVE
from tests.replay.test_running import claude_code


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "long.jsonl"
    claude_code(path, *[f"line {i} of some output\n" * 300 for i in range(8)])
    return path


def texts_in(page: str, element_id: str) -> str:
    """What an element of a page holds compressed."""
    [held] = re.findall(rf'id="{element_id}">([^<]*)<', page)
    return gzip.decompress(base64.b64decode(held)).decode()


def test_a_report_is_written_beside_the_tables(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    run = policyctx("replay", "small-context", recorded, "--report", out, "--report-text", "30")
    page = out.read_text(encoding="utf-8")
    assert run.returncode == 0
    assert run.stdout.splitlines()[2].startswith("session ")
    assert run.stderr == f"report: {out}, {out.stat().st_size:,} bytes\n"
    said = texts_in(page, "said-0")
    assert "line 3 of some output" in said
    assert "line 3 of some output\\nline 3 of some output" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.jsonl", "out.html"]


@pytest.mark.parametrize(
    ("name", "why"), [("missing/out.html", "there is no folder"), (".", "it is a folder")]
)
def test_nothing_is_replayed_if_the_report_cannot_be_written(
    recorded: Path, tmp_path: Path, name: str, why: str
) -> None:
    run = policyctx("replay", "small-context", recorded, "--report", tmp_path / name)
    assert run.returncode == 1
    assert run.stdout == ""
    assert why in run.stderr
    assert str(tmp_path) in run.stderr


def test_a_report_covers_readable_files_and_names_unreadable_files(
    recorded: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{", encoding="utf-8")
    run = policyctx("replay", "small-context", recorded, broken, "--report", tmp_path / "out.html")
    assert run.returncode == 1
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert f'"missing":["error: {broken}: ' in page
    assert '"name":"long.jsonl"' in page


PRICED = KEEP_FIVE + "model: {price: {input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}}\n"


@pytest.fixture
def billed(recorded: Path) -> Path:
    """The recording with the usage of each reply."""
    records = [json.loads(line) for line in recorded.read_text(encoding="utf-8").splitlines()]
    for i, record in enumerate(records):
        if record["type"] == "assistant":
            usage = {"cache_creation_input_tokens": 2_000, "cache_read_input_tokens": 900 * i}
            record["message"]["usage"] = usage | {"input_tokens": 10, "output_tokens": 20}
    recorded.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return recorded


def test_the_json_of_a_replay_has_the_figures_of_its_page(billed: Path, tmp_path: Path) -> None:
    out, policy = tmp_path / "out.html", tmp_path / "priced.yaml"
    policy.write_text(PRICED, encoding="utf-8")
    run = policyctx("replay", policy, billed, "--report", out, "--json", "--regret-details")
    values = json.loads(run.stdout)
    shown = overview_of(out)
    assert shown["answer"] == values["answer"]
    assert shown["prices_of"] == values["prices_of"]
    told = {"told", "audited", "regrets"}
    pairs = [*zip(shown["sessions"], values["sessions"], strict=True)]
    for one, other in [*pairs, (shown["total"], values["total"])]:
        assert {key: one[key] for key in other.keys() - told} == {
            key: other[key] for key in other.keys() - told
        }
        assert one.keys() - other.keys() <= told
    assert shown["total"]["priced_sessions"] == len(shown["total"]["checks"]) == 1
    assert shown["total"]["removed_items"] > 0


def overview_of(page: Path) -> dict[str, Any]:
    found = re.search(r'id="overview">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found
    values: dict[str, Any] = json.loads(found[1])
    return values
