from __future__ import annotations

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


def test_a_report_is_written_beside_the_tables(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    run = policyctx("replay", "small-context", recorded, "--report", out, "--report-text", "30")
    page = out.read_text(encoding="utf-8")
    assert run.returncode == 0
    assert run.stdout.splitlines()[2].startswith("session ")
    assert run.stderr == f"report: {out}, {out.stat().st_size:,} bytes\n"
    assert "line 3 of some output" in page
    assert "line 3 of some output\\nline 3 of some output" not in page
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
    for one, other in zip(shown["sessions"], values["sessions"], strict=True):
        assert {key: one[key] for key in ("title", "day", "name", "format", "path")} == {
            key: other[key] for key in ("title", "day", "name", "format", "path")
        }
        assert in_json(one, other) == set()
    assert in_json(shown["total"], values["total"]) == set()
    assert shown["total"]["priced"] == len(shown["total"]["checks"]) == 1
    assert shown["total"]["removed"] > 0


# What the page names otherwise than the JSON: the path of each of its figures in the JSON.
OTHERWISE = {
    "without.tokens": "tokens_without",
    "without.largest": "largest_without",
    "without.over_window": "over_window_without",
    "with.tokens": "tokens_with",
    "with.largest": "largest_with",
    "with.over_window": "over_window_with",
    "removed": "removed_items",
    "regretted": "regretted_items",
    "own_compactions": "compactions_of_recordings",
    "dearer": "dearer_sessions",
    "idle": "sessions_never_acted",
    "priced": "priced_sessions",
}
# A session's own, compared above; and `told`, which says in sentences what the JSON has as numbers.
BESIDE = {"title", "day", "name", "format", "path", "told", "unpriced"}


def in_json(shown: dict[str, Any], values: dict[str, Any]) -> set[str]:
    """The figures of a page that the JSON lacks, or has otherwise."""
    known = flat(values)
    lacking = set()
    for path, value in flat(shown).items():
        if path.split(".")[0] in BESIDE:
            continue
        name = OTHERWISE.get(path, renamed(path))
        if name not in known or known[name] != pytest.approx(value, abs=1e-6):
            lacking.add(f"{path}: {value!r} is not {name}: {known.get(name)!r}")
    return lacking


def renamed(path: str) -> str:
    """The path of a figure in the JSON whose name follows a rule."""
    path = re.sub(r"^(cost_\w+)\.tokens\.", r"\1.", path)
    path = re.sub(r"^(cost_\w+)\.dollars\.", r"\1.dollars_", path)
    path = re.sub(r"\.lines\.(\w+)\.output$", r".\1.output_tokens", path)
    path = re.sub(r"\.lines\.", ".", path)
    path = re.sub(r"\bworst$", "worst_session", path)
    path = re.sub(r"\bworst\.(dollars|share)$", r"worst_session.net_\1", path)
    path = re.sub(r"\bworst\.", "worst_session.", path)
    path = re.sub(r"^(baselines\.[\w-]+)\.dearer$", r"\1.dearer_sessions", path)
    return re.sub(r"^checks\.([\w-]+)\.(off|unknown)$", r"checks.\1.tokens_\2", path)


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The plain values in nested ones by their paths; a list goes by the names of its elements."""
    if isinstance(value, dict) and value:
        pairs = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        named = [iter(one.items()) for one in value]
        pairs = [(str(next(rest)[1]), dict(rest)) for rest in named]
    elif isinstance(value, dict | list) and not value:
        return {}
    else:
        return {path: value}
    found: dict[str, Any] = {}
    for key, one in pairs:
        found |= flat(one, f"{path}.{key}" if path else key)
    return found


def overview_of(page: Path) -> dict[str, Any]:
    found = re.search(r'id="overview">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found
    values: dict[str, Any] = json.loads(found[1])
    return values
